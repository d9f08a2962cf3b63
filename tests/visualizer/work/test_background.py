"""Work that a button begins: a click counts, and what refuses it says so."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest
from streamlit.testing.v1 import AppTest

from tests.controls import hear_as_first_drawn
from visualizer.components.packing import header_of
from visualizer.safe_text import markdown_safe
from visualizer.work import background
from visualizer.work.jobs import Jobs

IS_BEGUN, MAY_END = Event(), Event()


def page_with_an_offer() -> None:
    import streamlit as st

    from tests.visualizer.work.test_background import IS_BEGUN, MAY_END
    from visualizer.state import state, widgets
    from visualizer.work import background

    state.load()
    widgets.text("text")

    def work(report):
        report("Counting …", 0.25)
        IS_BEGUN.set()
        MAY_END.wait(60)

    if st.session_state.get("breaks_off"):
        st.stop()  # as when the page says something newer meanwhile
    subject = st.session_state.get("subject", "sheep"), state.chosen().settings.text
    background.offer("counting", subject, "Count", work)


@pytest.fixture(autouse=True)
def knows_of_no_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(background, "_JOBS", Jobs())
    IS_BEGUN.clear()
    MAY_END.clear()
    yield
    MAY_END.set()


def opened() -> AppTest:
    return AppTest.from_function(page_with_an_offer, default_timeout=60).run()


def bars(app: AppTest) -> list[str]:
    assert not app.exception
    return [bar["text"] for one in app.get("bidi_component") for bar in header_of(one.proto.bytes)["bars"]]


def test_a_click_begins_the_work_also_where_the_run_after_it_is_broken_off():
    app = opened()
    app.session_state["breaks_off"] = True
    app.button(key="begin_counting").click().run()
    assert IS_BEGUN.wait(60)


@pytest.mark.parametrize("is_drawn", [True, False], ids=["drawn, but heard as before", "in one message"])
def test_work_is_begun_on_the_text_that_was_typed_right_before(monkeypatch, is_drawn):
    begun: list[object] = []
    start = background._JOBS.start
    monkeypatch.setattr(background._JOBS, "start", lambda of, make: begun.append(of) or start(of, make))
    hear_as_first_drawn(monkeypatch, "callback", "ask")
    app = opened()
    typed = app.text_area(key="text").set_value("a new text")
    if is_drawn:
        typed.run()
    app.button(key="begin_counting").click().run()
    assert begun == [("counting", ("sheep", "a new text"))]
    assert bars(app) == ["Counting … 25%"]


def test_sessions_share_work_and_it_goes_on_until_the_last_of_them_stops_it():
    app = opened()
    app.button(key="begin_counting").click().run()
    assert IS_BEGUN.wait(60)
    other = opened()
    assert bars(other) == bars(app.run()) == ["Counting … 25%"]
    job = app.session_state["_counting"]
    app.button(key="stop_counting").click().run()
    assert app.button(key="begin_counting"), "whoever has stopped it can begin it again"
    assert bars(other.run()) == ["Counting … 25%"]
    assert job.peek().is_running
    other.button(key="stop_counting").click().run()
    assert job.peek().phase == "stopped"


def test_a_session_that_begins_other_work_of_the_kind_leaves_what_it_did_before():
    app = opened()
    app.button(key="begin_counting").click().run()
    assert IS_BEGUN.wait(60)
    before = app.session_state["_counting"]
    app.session_state["subject"] = "goats"
    app.run().button(key="begin_counting").click().run()
    assert before.peek().phase == "stopped"
    assert app.session_state["_counting"].peek().is_running


def test_what_failed_says_why_and_can_be_begun_again(monkeypatch):
    monkeypatch.setattr(MAY_END, "wait", lambda _: 1 / 0)
    app = opened()
    app.button(key="begin_counting").click().run()
    app.session_state["_counting"]._thread.join()
    app.run()
    assert [error.value for error in app.error] == ["division by zero"]
    assert app.button(key="begin_counting")


def test_what_is_not_begun_says_why(monkeypatch):
    def refuse(*_, **__):
        raise ValueError("There is **no** room.")

    monkeypatch.setattr(background._JOBS, "start", refuse)
    app = opened()
    app.button(key="begin_counting").click().run()
    assert not app.exception
    assert [error.value for error in app.error] == [markdown_safe("There is **no** room.")]
    assert app.button(key="begin_counting")
