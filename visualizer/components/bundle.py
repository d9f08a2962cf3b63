"""Pictures as the text of one script: their modules, what they share once, and the style sheets of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from visualizer import colors
from visualizer.components.javascript_modules import module_text, style_sheet

FOLDER = Path(__file__).parent

_RENDER = "export const render = "


def every_picture() -> tuple[str, ...]:
    """The modules that draw a picture, relative to this folder."""
    found = (path for path in FOLDER.glob("*/*.js") if _RENDER in path.read_text(encoding="utf-8"))
    return tuple(sorted(path.relative_to(FOLDER).as_posix() for path in found))


def bundled(entry: str, modules: Sequence[str], folder: Path, *, to_components: str = ".") -> str:
    """The text of an ES module that holds some pictures and ``entry``.

    Args:
        entry: the source of a module in ``folder``. It finds the pictures in ``PICTURES``, {render, style} by the
            names of their modules, and the colours of the pictures in ``COLORS``.
        modules: the pictures' modules, relative to this folder.
        folder: where ``entry`` would stand.
        to_components: the way from there to this folder.
    """
    names = {module: f"render{index}" for index, module in enumerate(dict.fromkeys(modules))}
    imports = {
        module: f'import {{ render as {name} }} from "{to_components}/{module}";\n'
        for module, name in names.items()
    }
    renderers = (
        f"{json.dumps(module)}: {{ render: {name}, style: {json.dumps(style_sheet(imports[module], folder))} }}"
        for module, name in names.items()
    )
    known = f"const PICTURES = {{ {', '.join(renderers)} }};\nconst COLORS = {json.dumps(colors.as_json())};\n"
    return module_text(f"{''.join(imports.values())}{known}{entry}", folder)
