"""How a custom element is put together from its JavaScript and style sheets."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from visualizer import colors
from visualizer.glossary import AXES

COMPONENTS = Path(__file__).parent
SHARED_SCRIPTS = ("shared/dom.js", "shared/theme.js", "shared/payload.js", "shared/hover.js", "shared/define.js")
SHARED_STYLE = "shared/base.css"
ROOT_HTML = '<div class="headlight"></div>'


def register(name: str, *scripts: str, **constants: object) -> ComponentRenderer:
    """Register the element `name` and return the function that mounts it.

    scripts: paths relative to this folder, in order; they form one ES module after the shared scripts and the
        constants `COLORS` and `AXES`. The last holds `export default function (component)`. A style sheet beside a
        script, with the same stem, belongs to it.
    constants: what JSON can say, for this element's scripts by name.
    Raises FileNotFoundError for a script that does not exist.
    """
    return st.components.v2.component(
        name, html=ROOT_HTML, css=style_sheet(scripts), js=module_source(scripts, constants)
    )


def module_source(scripts: tuple[str, ...], constants: Mapping[str, object] = MappingProxyType({})) -> str:
    """The text of the ES module: the constants, shared scripts, then `scripts`."""
    values = {"COLORS": colors.as_json(), "AXES": dict(AXES), **constants}
    declared = (f"const {name} = {json.dumps(value)};" for name, value in values.items())
    return "\n".join([*declared, *(_read(script) for script in (*SHARED_SCRIPTS, *scripts))])


def style_sheet(scripts: tuple[str, ...]) -> str:
    """The shared style sheet followed by those beside `scripts`."""
    beside = (Path(script).with_suffix(".css").as_posix() for script in scripts)
    return "\n".join(_read(path) for path in (SHARED_STYLE, *beside) if (COMPONENTS / path).exists())


def _read(relative_path: str) -> str:
    return (COMPONENTS / relative_path).read_text(encoding="utf-8")
