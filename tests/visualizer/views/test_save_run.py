"""The drawer that saves a run: files by their addresses, and code."""

import re
from html import unescape

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.test_app import assert_healthy, open_app
from visualizer.routes.served import ROUTES
from visualizer.runs.compute import compute_run
from visualizer.runs.saved import as_file
from visualizer.settings.settings import Settings


def open_drawer(**link):
    """The app on a link, with the drawer open."""
    app = open_app(**link)
    app.session_state["save_menu"] = True
    return app.run()


def saved_at(app):
    """The addresses of files on a page, by the names under which they are saved."""
    found = (re.findall(r'href="(numbers/[^"]*)" download="([^"]*)"', html.proto.body) for html in app.get("html"))
    return {name: unescape(address) for each in found for address, name in each}


def test_the_recording_is_the_run_that_is_looked_at():
    app = open_drawer(text="a b\nc", mask="causal,padding", batch="1", view="heads")
    assert_healthy(app)
    address = saved_at(app)["run.headlight"]
    with TestClient(Starlette(routes=ROUTES)) as client:
        found = client.get(f"/{address}")
    assert found.status_code == 200
    assert found.headers["content-disposition"] == "attachment; filename=run.headlight"
    run = compute_run(Settings(text="a b\nc", mask=("causal", "padding"))).at(1).alone()
    assert found.content == as_file(run).getvalue()


@pytest.mark.parametrize("view", ["heads", "step"])
def test_every_file_and_script_is_there_and_the_code_is_what_is_saved(view):
    app = open_drawer(text="a b c", view=view, stage="encoder.self_attention.weights", layer="1")
    assert_healthy(app)
    path = "encoder.layers.1.self_attention.weights"
    addresses = saved_at(app)
    names = {"run.headlight", "run.npz", "run.safetensors", f"{path}.npy", f"{path}.csv", f"{path}.ipynb"}
    assert set(addresses) == names | {f"{path}_numpy.py", f"{path}_torch.py"}
    with TestClient(Starlette(routes=ROUTES)) as client:
        answers = {name: client.get(f"/{address}") for name, address in addresses.items()}
    assert {answer.status_code for answer in answers.values()} == {200}
    code = [f"{each.value}\n" for each in app.code if "run = " in each.value]
    assert code == [answers[f"{path}_{library}.py"].text for library in ("numpy", "torch")]


def test_the_drawer_costs_nothing_while_it_is_closed():
    assert not saved_at(open_app(text="a b c", view="heads"))


def test_what_no_link_carries_is_not_offered():
    assert not saved_at(open_drawer(text="donaudampfschifffahrt " * 400, view="heads"))
