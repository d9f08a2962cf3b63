"""The theme that the page is drawn in, and how each theme looks."""

from __future__ import annotations

import streamlit as st

from visualizer.colors import ThemeName

_SHARED = {"font": "bodyFont", "codeFont": "codeFont", "baseRadius": "baseRadius", "baseFontSize": "baseFontSize"}
"""The options of both themes, and what the browser calls them."""

_COLORS = ("primaryColor", "backgroundColor", "secondaryBackgroundColor", "textColor", "borderColor", "linkColor")
_OF_SIDEBAR = ("backgroundColor", "secondaryBackgroundColor")


def theme() -> ThemeName:
    """Light or dark, as the browser says."""
    return "dark" if st.context.theme.type == "dark" else "light"


def look_of(name: ThemeName) -> dict[str, object]:
    """Return the options of a theme in the configuration, by the browser's names."""
    shared = {called: st.get_option(f"theme.{option}") for option, called in _SHARED.items()}
    colors = {option: st.get_option(f"theme.{name}.{option}") for option in _COLORS}
    sidebar = {option: st.get_option(f"theme.{name}.sidebar.{option}") for option in _OF_SIDEBAR}
    return {"base": int(name == "dark"), **shared, **colors, "sidebar": sidebar}
