"""Pictures on the page: the one place where components and Streamlit meet, with ``mount.js`` in the browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from visualizer import colors
from visualizer.components.modules import module_text, style_sheet
from visualizer.components.picture import Picture

_FOLDER = Path(__file__).parent
_ROOT = '<div class="headlight"></div>'
_ENTRY = """
import {{ mounting }} from "./mount.js";
import {{ render }} from "../components/{module}";
export default mounting(render, {colors});
"""


def mount(
    picture: Picture, *, width: Literal["stretch", "content"] = "stretch", **heard: Callable[[], None] | None
) -> None:
    """Put a picture on the page.

    heard: by the name of one of the picture's events, what is called before the next run when a person did it;
        ``st.session_state[picture.key]`` then holds the event under this name.

    Raises:
        TypeError: the picture has no event of a name.
    """
    if unknown := heard.keys() - set(picture.events):
        raise TypeError(f"{picture.module} has no event {', '.join(sorted(unknown))}: {', '.join(picture.events)}")
    # Streamlit gives a component only the events that have a callback.
    callbacks: dict[str, Any] = {f"on_{event}_change": heard.get(event) or _nothing for event in picture.events}
    _renderer(picture.module)(key=picture.key, data=picture.data, width=width, **callbacks)


@cache
def _renderer(module: str) -> ComponentRenderer:
    entry = _ENTRY.format(module=module, colors=json.dumps(colors.as_json()))
    name = module.removesuffix(".js").removesuffix("/element").replace("/", "_")
    return st.components.v2.component(
        f"headlight_{name}", html=_ROOT, css=style_sheet(entry, _FOLDER), js=module_text(entry, _FOLDER)
    )


def _nothing() -> None:
    """For events that nobody listens to."""
