"""What a teacher sets for a room: whether results are hidden."""

from __future__ import annotations

import streamlit as st

from visualizer.session import widgets
from visualizer.settings.settings import View

COVERED = ("step", "heads", "compare", "generate")
"""The views whose results can be hidden."""


def audience_menu(view: View) -> None:
    """A button that opens the settings, beside the token strip."""
    with st.popover("", icon=":material/co_present:", type="tertiary", width="content", key="audience"):
        widgets.switch("hidden")
        if view not in COVERED:
            st.caption("Nothing is covered in this view.")
