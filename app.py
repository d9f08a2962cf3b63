"""Headlight: a Transformer made visible. Run with ``streamlit run app.py``.

The server imports this file and finds ``app``; for each visitor it runs the file again as the script of the page.
"""

import streamlit as st

from visualizer import page, state
from visualizer.sidebar import sidebar
from visualizer.warming import warmed


@st.fragment(key=state.PICTURE)
def picture() -> None:
    """All below the header. Runs by itself where a change leaves the controls as they are."""
    choices = state.load()
    page.remarks(choices)
    with page.loading():
        from visualizer.show import show  # brings torch, which takes a second, when the page already stands
    show(choices)


def page_of_visitor() -> None:
    """The page from top to bottom."""
    st.set_page_config(page_title="Headlight", page_icon=page.ICON, layout="wide")
    chosen = state.load()
    sidebar(chosen.settings, chosen.selection, chosen.width)
    page.header()
    picture()


if __name__ == "__main__":
    page_of_visitor()
else:
    app = st.App(__file__, lifespan=warmed)
