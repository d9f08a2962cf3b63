"""Work that a button begins: a click counts, and what refuses it says so."""

from __future__ import annotations

from threading import Event

from streamlit.testing.v1 import AppTest

from visualizer.safe_text import markdown_safe
from visualizer.work import background

IS_BEGUN, MAY_END = Event(), Event()


def page_with_an_offer() -> None:
    import streamlit as st

    from tests.visualizer.work.test_background import IS_BEGUN, MAY_END
    from visualizer.work import background

    def work(progress: background.Progress) -> None:
        progress(0.0)
        IS_BEGUN.set()
        MAY_END.wait(60)

    if st.session_state.get("breaks_off"):
        st.stop()  # as when the page says something newer meanwhile
    background.offer("counting", "sheep", "Count", work, "Counting …")


def test_a_click_begins_the_work_also_where_the_run_after_it_is_broken_off():
    IS_BEGUN.clear()
    MAY_END.clear()
    app = AppTest.from_function(page_with_an_offer, default_timeout=60).run()
    app.session_state["breaks_off"] = True
    app.button(key="begin_counting").click().run()
    assert IS_BEGUN.wait(60)
    MAY_END.set()


def test_what_is_not_begun_says_why(monkeypatch):
    monkeypatch.setattr(background, "Job", _Refused)
    app = AppTest.from_function(page_with_an_offer, default_timeout=60).run()
    app.button(key="begin_counting").click().run()
    assert not app.exception
    assert [error.value for error in app.error] == [markdown_safe("There is **no** room.")]
    assert app.button(key="begin_counting")


class _Refused:
    def __class_getitem__(cls, _kind: object) -> type[_Refused]:
        return cls

    def __init__(self, *_given: object) -> None:
        raise ValueError("There is **no** room.")
