"""How a custom element is put together from its JavaScript and style sheets."""

import json
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from visualizer import colors

COMPONENTS = Path(__file__).parent
SHARED_SCRIPTS = ("shared/dom.js", "shared/theme.js", "shared/payload.js", "shared/hover.js")
SHARED_STYLE = "shared/base.css"
ROOT_HTML = '<div class="headlight"></div>'


def register(name: str, *scripts: str) -> ComponentRenderer:
    """Register the element `name` and return the function that mounts it.

    scripts: paths relative to this folder, in order; they form one ES module after the shared scripts and the
        constant `COLORS`. The last holds `export default function (component)`. A style sheet beside a script, with
        the same stem, belongs to it.
    Raises FileNotFoundError for a script that does not exist.
    """
    return st.components.v2.component(name, html=ROOT_HTML, css=style_sheet(scripts), js=module_source(scripts))


def module_source(scripts: tuple[str, ...]) -> str:
    """The text of the ES module: colour tables, shared scripts, then `scripts`."""
    constant = f"const COLORS = {json.dumps(colors.as_json())};"
    return "\n".join([constant, *(_read(script) for script in (*SHARED_SCRIPTS, *scripts))])


def style_sheet(scripts: tuple[str, ...]) -> str:
    """The shared style sheet followed by those beside `scripts`."""
    beside = (Path(script).with_suffix(".css").as_posix() for script in scripts)
    return "\n".join(_read(path) for path in (SHARED_STYLE, *beside) if (COMPONENTS / path).exists())


def _read(relative_path: str) -> str:
    return (COMPONENTS / relative_path).read_text(encoding="utf-8")
