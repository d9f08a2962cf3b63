"""Pictures on the page: the one place where components and Streamlit meet, with ``mount.js`` in the browser."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from visualizer.components.bundle import bundled, every_picture
from visualizer.components.javascript_modules import style_sheet
from visualizer.components.page import TEMPLATE, page_style
from visualizer.components.picture import Picture
from visualizer.state import state

_FOLDER = Path(__file__).parent
_ROOT = '<div class="headlight"></div>'
_ENTRY = """import { mounting } from "./mount.js";
import { show } from "../components/page.js";
export const mount = mounting(PICTURES, { ...HOST, colors: COLORS });
"""
"""The script draws the pictures of the app, and of the pages that are saved, which hold it whole."""
_IN_APP = 'import { mounting } from "./mount.js";\n'
_LOADER = """const script = import(new URL({address}, document.baseURI).href);
export default async (call) => (await script).mount(call);
"""
"""The code that a message carries in place of the script, imported by its address: a browser loads it once.

It is one for all pictures: while a module is being loaded for the first time, Chromium keeps no order among the
imports of it, and an older message could be drawn after a newer one.
"""


def mount(
    picture: Picture, *, width: Literal["stretch", "content"] = "stretch", **heard: Callable[[object], None]
) -> None:
    """Put a picture on the page.

    heard: by the name of one of the picture's events, what hears of it before the next run.

    Raises:
        TypeError: the picture has no event of a name.
    """
    if unknown := heard.keys() - set(picture.events):
        raise TypeError(f"{picture.module} has no event {', '.join(sorted(unknown))}: {', '.join(picture.events)}")
    # Streamlit gives a component only the events that have a callback.
    callbacks: dict[str, Any] = {
        f"on_{event}_change": state.on_event(picture.key, event, heard.get(event, _ignore))
        for event in picture.events
    }
    _renderer(picture.module)(key=picture.key, data=picture.data, width=width, **callbacks)


@dataclass(frozen=True)
class Script:
    """The script that the browser runs.

    Attributes:
        name: another one for another text.
        text: an ES module.
    """

    name: str
    text: str

    @property
    def address(self) -> str:
        """The script's address on the server, from the page's own address."""
        return f"scripts/{self.name}"

    @cached_property
    def packed(self) -> bytes:
        """The text, made small once: the server would do it again for every browser."""
        return gzip.compress(self.text.encode())


@cache
def script() -> Script:
    """Return the script that draws every picture of the page, in this version of the app."""
    host = {
        "style": style_sheet(_IN_APP, _FOLDER),
        "page": {"template": TEMPLATE, "style": page_style()},
        "modules": {component_of(module): module for module in every_picture()},
    }
    of_host = f"const HOST = {json.dumps(host)};\nHOST.page.script = import.meta.url;\n"
    text = bundled(f"{of_host}{_ENTRY}", every_picture(), _FOLDER, to_components="../components")
    return Script(f"pictures-{hashlib.sha256(text.encode()).hexdigest()[:16]}.js", text)


@cache
def _renderer(module: str) -> ComponentRenderer:
    loader = _LOADER.format(address=json.dumps(script().address))
    return st.components.v2.component(component_of(module), html=_ROOT, js=loader)


def component_of(module: str) -> str:
    """The name that Streamlit knows a picture's module by."""
    return f"headlight_{module.removesuffix('.js').removesuffix('/element').replace('/', '_')}"


def _ignore(event: object) -> None:
    """For events that nobody listens to."""
