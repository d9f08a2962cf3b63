"""Headlight: a Transformer made visible. Run with ``streamlit run app.py``."""

import streamlit as st

from visualizer import page, state
from visualizer.sidebar import sidebar

st.set_page_config(page_title="Headlight", page_icon=page.ICON, layout="wide")

choices = state.load()
state.save(choices)
sidebar(choices.settings, choices.selection)
page.header(choices)
with page.loading():
    from visualizer.show import show  # brings torch, which takes a second, when the page already stands
show(choices)
