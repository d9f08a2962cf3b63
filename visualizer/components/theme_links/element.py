"""The theme as three links: Streamlit takes it from the address, and only when the page is loaded."""

from __future__ import annotations

from visualizer.components.packing import pack
from visualizer.components.picture import Picture

PARAMETER = "embed_options"
"""The parameter of the address that Streamlit reads."""

THEMES = (("", "System"), ("light_theme", "Light"), ("dark_theme", "Dark"))
"""The values of the parameter, none for what the system has, and what they are called."""


def theme_links(*, key: str) -> Picture:
    """A link for each theme, to the same page. It has no event."""
    header = {"key": key, "parameter": PARAMETER, "themes": [list(theme) for theme in THEMES]}
    return Picture("theme_links/element.js", pack(header, {}), key)
