"""What a teacher sets for a room: whether results are hidden, and whether a class is counted."""

from __future__ import annotations

import streamlit as st

from visualizer.safe_text import markdown_safe
from visualizer.session import state, widgets
from visualizer.session.classroom import new_code
from visualizer.settings.settings import View

COVERED = ("step", "heads", "compare", "generate")
"""The views whose results can be hidden."""


def audience_menu(view: View) -> None:
    """A button that opens the settings, beside the token strip."""
    with st.popover("", icon=":material/co_present:", type="tertiary", width="content", key="audience"):
        widgets.switch("hidden")
        if view not in COVERED:
            st.caption("Nothing is covered in this view.")
        _class(state.chosen().selection.class_code)


def _class(code: str) -> None:
    """The code of a class, or the button that makes one."""
    if not code:
        st.button(
            "Count a class's answers",
            icon=":material/groups:",
            key="begin_class",
            on_click=lambda: state.select(hidden=True, class_code=new_code()),
            help="Puts a short code in the link. What everybody expects who opens that link on this server is "
            "counted: without names, for an hour.",
        )
        return
    st.caption(
        f"Class **{markdown_safe(code)}**: send the address of this page. What everybody expects who opens it "
        "on this server is counted, without names, for an hour."
    )
    leave = {"class_code": ""}
    st.button("Leave the class", key="leave_class", on_click=state.select, kwargs=leave, type="tertiary")
