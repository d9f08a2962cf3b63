"""Headlight: a Transformer made visible. Run with ``streamlit run app.py``.

The server imports this file and finds ``app``; for each visitor it runs the file again as the script of the page.
"""

from contextlib import nullcontext

import streamlit as st

from visualizer.page import header, opening_picture, sidebar
from visualizer.page.warming import is_warm, warmed
from visualizer.routes.served import ROUTES
from visualizer.server.tuning import PAGES, freeze_imports
from visualizer.state import state


def page_of_visitor() -> None:
    """The page. Its picture is sent before what stands around it, unless it waits for PyTorch to be loaded."""
    is_first = opening_picture.is_known(state.load()) or is_warm()
    header.style()
    sidebar.title()
    top = st.container(key="top")
    if is_first:
        picture()
    sidebar.controls()
    header.header(top)
    if not is_first:
        picture()
    state.show_link()
    freeze_imports()


@header.failure_said()
def picture() -> None:
    """All below the header."""
    header.remarks(choices := state.chosen())
    if opening_picture.is_known(choices):
        opening_picture.show(choices)
        return
    with nullcontext() if is_warm() else header.loading():
        from visualizer.page.show import show  # brings torch, which takes a second, when the page already stands
    show(choices)


if __name__ == "__main__":
    with PAGES.turn():
        page_of_visitor()
else:
    app = st.App(__file__, lifespan=warmed, routes=ROUTES)
