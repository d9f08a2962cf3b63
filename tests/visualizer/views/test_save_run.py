"""The link that saves a run as a recording."""

import re
from html import unescape

from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.test_app import open_app
from visualizer.routes.served import ROUTES
from visualizer.runs.compute import compute_run
from visualizer.runs.saved import as_file
from visualizer.settings.settings import Settings


def saved_at(app):
    """The addresses of recordings on a page."""
    found = (re.search(r'href="(numbers/run[^"]*)"', html.proto.body) for html in app.get("html"))
    return [unescape(one[1]) for one in found if one]


def test_the_recording_is_the_run_that_is_looked_at():
    (address,) = saved_at(open_app(text="a b\nc", mask="causal,padding", batch="1", view="heads"))
    with TestClient(Starlette(routes=ROUTES)) as client:
        found = client.get(f"/{address}")
    assert found.status_code == 200
    assert found.headers["content-disposition"] == "attachment; filename=run.headlight"
    run = compute_run(Settings(text="a b\nc", mask=("causal", "padding"))).at(1).alone()
    assert found.content == as_file(run).getvalue()


def test_what_no_link_carries_is_not_offered():
    assert not saved_at(open_app(text="donaudampfschifffahrt " * 400, view="heads"))
