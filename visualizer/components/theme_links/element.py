"""The theme as three links: Streamlit is told at once by its host protocol, and by the address on loading."""

from __future__ import annotations

from collections.abc import Mapping

from model.texts import texts_of
from visualizer.colors import ThemeName
from visualizer.components.packing import pack
from visualizer.components.picture import Picture

say = texts_of(__name__)

PARAMETER = "embed_options"
"""The parameter of the address that Streamlit reads when the page is loaded."""

THEMES = (("", say("system")), ("light_theme", say("light")), ("dark_theme", say("dark")))
"""The values of the parameter, none for what the system has, and what they are called."""


def theme_links(looks: Mapping[ThemeName, Mapping[str, object]], *, key: str) -> Picture:
    """A link for each theme, to the same page. It has no event.

    Args:
        looks: the colours and letters of the page in each theme, by Streamlit's names of them.
        key: what the page calls it.
    """
    header = {"key": key, "parameter": PARAMETER, "themes": THEMES, "looks": looks}
    return Picture("theme_links/element.js", pack(header, {}), key)
