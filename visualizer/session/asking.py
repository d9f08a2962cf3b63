"""What asks beside the page for the numbers that it draws next."""

from __future__ import annotations

import streamlit as st

from visualizer.components.ask_ahead.element import ask_ahead
from visualizer.session import drafts
from visualizer.session.mount import asking_script, mount
from visualizer.session.on_the_way import belongs


def line_of_page() -> str:
    """The name of the line on which this page is told what comes, and asks for it."""
    return drafts.secret_of_session()


def have_asked() -> None:
    """Have the browser ask for what this page is told, and for what it foresees itself."""
    line = line_of_page()
    if connection := st.context.headers.get("Sec-Websocket-Key"):
        belongs(connection, line)
    mount(ask_ahead(f"ahead/{line}", script=asking_script().address, key="ask_ahead"))
