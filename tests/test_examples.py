"""Every notebook of ``examples/`` runs, and gives what is stored in it."""

from __future__ import annotations

import ast
import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))


def shown_by(source: str, names: dict[str, object]) -> str:
    """Run a cell, and give what it prints and the value that stands last, as text."""
    *before, last = ast.parse(source).body
    printed, value = StringIO(), None
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(before, []), "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        else:
            exec(compile(source, "cell", "exec"), names)
    return printed.getvalue() + ("" if value is None else f"{value!r}")


def stored_in(cell: dict) -> str:
    """The text that a cell gave when the notebook was saved."""
    parts = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return "".join("".join(part) for part in parts)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_is_stored_in_it(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        shown = shown_by("".join(cell["source"]), names)
        assert "".join(shown.split()) == "".join(
            stored_in(cell).split()
        )  # a notebook breaks long values into lines
    assert any("image/png;base64" in "".join(str(output)) for cell in cells for output in cell["outputs"])
