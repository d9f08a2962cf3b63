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

app = AppTest.from_file("app.py", default_timeout=300)
for name, value in {link}.items():
    app.query_params[name] = value
app.run()
assert not app.exception and not app.error, (app.exception, app.error)
print([each.value for each in app.metric])
print([option for each in (*app.button_group, *app.selectbox) for option in each.options])
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


def opened(folder: Path, **link: str) -> str:
    """Open a link in the app of a folder, and return its metrics and everything that can be chosen."""
    script = [sys.executable, "-c", OPENED.format(link=link)]
    done = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_mask_is_its_function_its_record_and_its_word(copy):
    masks = copy / "model" / "masks.py"
    line = '    "custom": lambda given'
    own = '    "own": lambda given: torch.eye(given.n_queries, given.n_keys, dtype=torch.bool),\n'
    masks.write_text(masks.read_text(encoding="utf-8").replace(line, own + line, 1), encoding="utf-8")
    kinds = copy / "visualizer" / "masks.py"
    line = '    "custom": MaskKind('
    record = '    "own": MaskKind("Its own token", "own token", (1, 0.1, 300), "k == q"),\n'
    kinds.write_text(kinds.read_text(encoding="utf-8").replace(line, record + line, 1), encoding="utf-8")
    with (copy / "visualizer" / "glossary.toml").open("a", encoding="utf-8") as glossary:
        glossary.write('\n[[term]]\nname = "own token"\ntext = "A [mask] that leaves each query its own key."\n')
    assert "Its own token" in opened(copy, view="step", text="a b c", architecture="decoder", mask="own")
    assert "Its own token: k == q" in opened(copy, view="lab", text="a b c", architecture="decoder", mask="own")


def test_a_view_is_a_module_and_its_record(copy):
    (copy / "visualizer" / "views" / "count.py").write_text(VIEW, encoding="utf-8")
    add_line(copy / "visualizer" / "settings" / "views.py", '"count": View("Count the tokens", "count"),')
    shown = opened(copy, view="count", text="a b c", architecture="decoder")
    assert "['3']" in shown
    assert "Count the tokens" in shown


def test_an_intention_is_its_line(copy):
    line = '"own": IntentKind("Its own key", "", lambda n, at: "each token sees itself", "k == {q}"),'
    add_line(copy / "headlight" / "masks" / "intent_kinds.py", line)
    shown = opened(copy, view="lab", text="a b c", architecture="decoder", intent="own")
    assert "Its own key" in shown
