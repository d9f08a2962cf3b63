"""The theme that the page is drawn in."""

import streamlit as st

from visualizer.colors import ThemeName


def theme() -> ThemeName:
    """Light or dark, as the browser says."""
    return "dark" if st.context.theme.type == "dark" else "light"
