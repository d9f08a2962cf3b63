"""Adding a mask, a view and an intention as CONTRIBUTING says: tried in a copy, whose pages then have them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

VIEW = '''"""The number of tokens."""

import streamlit as st


def render(run, selection):
    """Draw the view."""
    st.metric("Tokens", len(run.tokens["source"].ids))
'''

OPENED = """
from streamlit.testing.v1 import AppTest

for link in {links}:
    app = AppTest.from_file("app.py", default_timeout=300)
    for name, value in link.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception and not app.error, (app.exception, app.error)
    options = [option for each in (*app.button_group, *app.selectbox) for option in each.options]
    print([each.value for each in app.metric], options)
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the sources, which can be changed."""
    for name in ("model", "headlight", "visualizer", ".streamlit"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", tmp_path)
    return tmp_path


def add_line(file: Path, line: str) -> None:
    """Put a line at the end of the mapping that closes in a file."""
    text = file.read_text(encoding="utf-8")
    assert text.count("\n}\n") == 1
    file.write_text(text.replace("\n}\n", f"\n    {line}\n}}\n"), encoding="utf-8")


def add_mask(copy: Path) -> None:
    """Add a mask: its function, its record and its word."""
    masks = copy / "model" / "masks.py"
    line = '    "custom": lambda inputs'
    own = '    "own": lambda inputs: torch.eye(inputs.n_queries, inputs.n_keys, dtype=torch.bool),\n'
    masks.write_text(masks.read_text(encoding="utf-8").replace(line, own + line, 1), encoding="utf-8")
    kinds = copy / "visualizer" / "masks.py"
    line = '    "custom": MaskKind('
    record = '    "own": MaskKind("Its own token", "own token", (1, 0.1, 300), "k == q"),\n'
    kinds.write_text(kinds.read_text(encoding="utf-8").replace(line, record + line, 1), encoding="utf-8")
    with (copy / "visualizer" / "glossary.toml").open("a", encoding="utf-8") as glossary:
        glossary.write('\n[[term]]\nname = "own token"\ntext = "A [mask] that leaves each query its own key."\n')


def add_view(copy: Path) -> None:
    """Add a view: a module and its record."""
    (copy / "visualizer" / "views" / "count.py").write_text(VIEW, encoding="utf-8")
    add_line(copy / "visualizer" / "settings" / "views.py", '"count": View("Count the tokens", "count"),')


def add_intention(copy: Path) -> None:
    """Add an intention: its line."""
    line = '"own": IntentKind("Its own key", "", lambda n, at: "each token sees itself", "k == {q}"),'
    add_line(copy / "headlight" / "masks" / "intent_kinds.py", line)


def opened(folder: Path, *views: dict[str, str]) -> list[str]:
    """Open views in the app of a folder, and return the metrics of each and everything that can be chosen."""
    links = [{"text": "a b c", "architecture": "decoder", **view} for view in views]
    script = [sys.executable, "-c", OPENED.format(links=links)]
    done = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_added_is_on_the_pages(copy):
    add_mask(copy)
    add_view(copy)
    add_intention(copy)
    masked, count, painted, intended = opened(
        copy,
        {"view": "step", "mask": "own"},
        {"view": "count"},
        {"view": "lab", "mask": "own"},
        {"view": "lab", "intent": "own"},
    )
    assert "Its own token" in masked
    assert "['3']" in count
    assert "Count the tokens" in count
    assert "Its own token: k == q" in painted
    assert "Its own key" in intended
