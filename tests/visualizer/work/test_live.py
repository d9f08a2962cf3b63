"""Pictures of what moves by itself: its address answers what is newest, until there is nothing more to come."""

from __future__ import annotations

import gc
from threading import Event
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from visualizer.components.packing import header_of
from visualizer.components.picture import Picture
from visualizer.routes.served import ROUTES
from visualizer.work import live

HAS_BEGUN, GO_ON, HAS_ENDED = Event(), Event(), Event()


def picture_at(address: str) -> Picture | None:
    """The newest picture at an address, which a page has."""
    moving = live.moving_at(address.removeprefix("jobs/"))
    assert moving is not None
    return moving.picture


def page_with_a_job() -> None:
    import streamlit as st

    from tests.visualizer.work.test_live import GO_ON, HAS_BEGUN, HAS_ENDED
    from visualizer.state import drafts
    from visualizer.work import live
    from visualizer.work.jobs import Job

    def work(report):
        report("first", 0.25)
        HAS_BEGUN.set()
        GO_ON.wait(60)
        report("second", 0.5)
        HAS_ENDED.wait(60)

    job: Any = drafts.put_by_before("job")
    if job is None:
        job = Job("", work)
        drafts.put_by("job", job)
        HAS_BEGUN.wait(60)
    if job.peek().is_running:
        live.show_job("counting", job, "Counting", lambda seen: f"the {seen.value}")
    else:
        st.caption("It has ended")


def drawn(app: AppTest) -> list[dict[str, object]]:
    assert not app.exception
    return [header_of(one.proto.bytes) for one in app.get("bidi_component")]


def test_an_address_answers_what_is_newest_and_nothing_once_it_has_ended():
    HAS_BEGUN.clear()
    GO_ON.clear()
    HAS_ENDED.clear()
    app = AppTest.from_function(page_with_a_job, default_timeout=60).run()
    (first,) = drawn(app)
    assert first["bars"] == [{"label": "Counting", "text": "the first", "fraction": 0.25}]
    (again,) = drawn(app.run())
    assert again["address"] == first["address"], "a page that is drawn anew goes on asking where it was"
    with TestClient(Starlette(routes=ROUTES)) as client:
        address = f"/{first['address']}"
        answer = client.get(address)
        assert header_of(answer.content) == first
        assert answer.headers["cache-control"] == "no-store"
        GO_ON.set()
        while (header := header_of(client.get(address).content)) == first:
            pass
        assert header == first | {"bars": [{"label": "Counting", "text": "the second", "fraction": 0.5}]}
        HAS_ENDED.set()
        while (answer := client.get(address)).status_code == 200:
            pass
        assert (answer.status_code, answer.content) == (204, b"")
        assert app.run().caption[0].value == "It has ended"


def test_what_ends_while_the_script_draws_it_is_drawn_as_ended():
    def page() -> None:
        import streamlit as st

        from visualizer.work import live

        if "was_drawn" in st.session_state:
            st.caption("It has ended")
        else:
            st.session_state.was_drawn = True
            live.show("counting", "sheep", lambda address: None)

    app = AppTest.from_function(page).run()
    assert not app.exception
    assert app.caption[0].value == "It has ended"


def test_of_a_name_that_no_page_has_any_more_nothing_is_to_come():
    with TestClient(Starlette(routes=ROUTES)) as client:
        answer = client.get("/jobs/none")
        assert (answer.status_code, answer.text) == (204, "")  # a browser would log a 404 as an error of the page


def test_what_a_page_showed_is_forgotten_with_its_session(monkeypatch):
    kept: dict[str, object] = {}
    monkeypatch.setattr(live.drafts, "put_by", kept.__setitem__)
    monkeypatch.setattr(live.drafts, "put_by_before", kept.get)
    monkeypatch.setattr(live, "mount", lambda picture: addresses.append(picture.key))
    addresses: list[str] = []
    live.show("counting", "sheep", lambda address: Picture("progress/element.js", b"", address))
    (address,) = addresses
    assert picture_at(address) is not None
    kept.clear()
    gc.collect()
    assert live.moving_at(address.removeprefix("jobs/")) is None
