"""Headlight: a Transformer made visible. Run with ``streamlit run app.py``."""

import streamlit as st

from visualizer import page, state
from visualizer.sidebar import sidebar

st.set_page_config(page_title="Headlight", page_icon=page.ICON, layout="wide")


@st.fragment(key=state.PICTURE)
def picture() -> None:
    """All below the header. Runs by itself where a change leaves the controls as they are."""
    choices = state.load()
    page.remarks(choices)
    with page.loading():
        from visualizer.show import show  # brings torch, which takes a second, when the page already stands
    show(choices)


chosen = state.load()
sidebar(chosen.settings, chosen.selection, chosen.width)
page.header()
picture()
