"""JavaScript modules as one text: their imports are followed, so that nobody lists scripts or runs a build step.

A browser and Node load the same files by the same imports. Where only one text will do, each module becomes a
function that returns what it exports, and a JSON file a value.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[^"]+)";\n', re.MULTILINE)
_DATA = re.compile(r'^import (\w+) from "(\.{1,2}/[^"]+\.json)" with \{ type: "json" \};$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)
_UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def module_text(entry: str, folder: Path) -> str:
    """The text of one ES module that holds ``entry`` and everything that it imports.

    entry: the source of a module in ``folder``, with imports of the form ``import { a, b as c } from "./x.js";`` at
        the beginning of lines. What it exports stays exported.

    Raises:
        FileNotFoundError: an imported file does not exist.
        ValueError: modules import each other in a circle, or one has an import or export of another form.
    """
    scopes = (_scope(path) for path in _imported(entry, folder))
    return "\n".join((*scopes, _IMPORT.sub(lambda found: _taken(found, folder), entry)))


def style_sheet(entry: str, folder: Path) -> str:
    """The style sheets beside everything that ``entry`` imports; each has the name of its module."""
    sheets = (path.with_suffix(".css") for path in _imported(entry, folder))
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets if sheet.exists())


def _imported(entry: str, folder: Path) -> dict[Path, None]:
    """The modules that a source needs, each after those that it needs itself."""
    found: dict[Path, None] = {}
    for path in _imports(entry, folder):
        _add(path, found, ())
    return found


def _add(path: Path, found: dict[Path, None], importers: tuple[Path, ...]) -> None:
    if path in importers:
        raise ValueError(f"{_name(path)} imports itself through {', '.join(map(_name, importers))}")
    if path in found:
        return
    for other in _imports_of(path):
        _add(other, found, (*importers, path))
    found[path] = None


def _imports(source: str, folder: Path) -> tuple[Path, ...]:
    return tuple((folder / found[2]).resolve() for found in _IMPORT.finditer(source))


@cache
def _imports_of(path: Path) -> tuple[Path, ...]:
    return _imports(_read(path), path.parent)


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _scope(path: Path) -> str:
    """A module as a function that is called at once and returns what the module exports."""
    source = _IMPORT.sub(lambda found: _taken(found, path.parent), _read(path))
    source = _DATA.sub(lambda found: f"const {found[1]} = {_read(path.parent / found[2])};", source)
    exported = ", ".join(_EXPORT.findall(source))
    body = _EXPORT.sub("", source)
    if unknown := _UNKNOWN.search(body):
        raise ValueError(f"{path}: write {unknown[0]!r} as an import or export of names")
    return f"const {_name(path)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _taken(found: re.Match[str], folder: Path) -> str:
    """An import as the taking of names from the scope of another module."""
    names = found[1].replace(" as ", ": ")
    return f"const {{{names}}} = {_name((folder / found[2]).resolve())};\n"


def _name(path: Path) -> str:
    """``visualizer/components/shared/dom.js`` as the name of a variable: ``$components_shared_dom_js``."""
    return "$" + re.sub(r"\W", "_", os.path.relpath(path, ROOT))
