"""Every text of the screen that stands in a file is said somewhere, with all that it leaves open."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from string import Formatter

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("model", "visualizer")
SAID = {
    (path, module): texts
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("texts.toml"))
    for module, texts in tomllib.loads(path.read_text(encoding="utf-8")).items()
    if module.islower()  # not the texts of the fields of a class
}


@pytest.mark.parametrize(("path", "module"), SAID, ids=lambda part: getattr(part, "parent", Path(part)).name)
def test_every_text_is_said_with_all_that_it_leaves_open(path: Path, module: str) -> None:
    calls = _calls_of_say(path.with_name(f"{module}.py"))
    assert set(calls) == set(SAID[path, module])
    for name, text in SAID[path, module].items():
        assert calls[name] == [_left_open(text)] * len(calls[name]), name


def _calls_of_say(module: Path) -> dict[str, list[set[str]]]:
    """The names of what is given with each text that a module says."""
    found: dict[str, list[set[str]]] = {}
    for call in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "say":
            assert isinstance(call.args[0], ast.Constant), (
                f"{module.name} line {call.lineno}: a name, not a rule for one"
            )
            found.setdefault(call.args[0].value, []).append({str(given.arg) for given in call.keywords})
    return found


def _left_open(text: str) -> set[str]:
    return {str(name) for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_the_files_hold_only_tables_of_modules() -> None:
    for path, module in SAID:
        assert path.with_name(f"{module}.py").exists(), f"{path} has a table {module}"
