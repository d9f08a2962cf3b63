"""The cover in the place of a result that is hidden and not asked about where it would be shown."""

from __future__ import annotations

from typing import Any

import streamlit as st

from model.texts import texts_of
from visualizer.state import state
from visualizer.work.membership import is_student

say = texts_of(__name__)


def covered(what: str, *, ask: str = "", there: dict[str, Any] | None = None) -> None:
    """One sentence, and the ways out of it.

    Args:
        what: what is covered, as the beginning of a sentence, in Markdown.
        ask: what the button says that leads to a question about it; "" without one.
        there: what that button chooses.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="covered"):
        say_covered(what)
        if ask:
            st.button(
                ask, key="to_the_question", on_click=state.callback(state.select, **(there or {})), type="tertiary"
            )
        hide_nothing()


def say_covered(what: str) -> None:
    """The sentence alone, where the ways out stand already."""
    st.caption(say("covered", what=what), width="content")


def hide_nothing() -> None:
    """The button that uncovers everything, which a teacher keeps from a class."""
    if is_student():
        return
    st.button(say("stop"), key="hide_nothing", on_click=state.callback(state.select, hidden=False), type="tertiary")
