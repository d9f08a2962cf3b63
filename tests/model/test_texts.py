"""Every text of a file is said somewhere with all that it leaves open, and no sentence stands in code."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest

from model.texts import Texts

ROOT = Path(__file__).parents[2]
PACKAGES = ("headlight/masks", "model", "visualizer")
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
        assert calls[name] == [left_open(text)] * len(calls[name]), name


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


def left_open(text: str) -> set[str]:
    """The names of what a text leaves open."""
    return {str(name) for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_the_files_hold_only_tables_of_modules() -> None:
    for path, module in SAID:
        assert path.with_name(f"{module}.py").exists(), f"{path} has a table {module}"


SENTENCE = re.compile(r"(?<!\w)(?:[^\W\d_]+(?:['’-][^\W\d_]+)*[,;:.]? ){4}[^\W\d_]+(?![\w(=])")
"""Five words in a row. Code, formulas, patterns and HTML have signs between theirs."""

FOR_PROGRAMMERS = {
    *("AttributeError", "IndexError", "RuntimeError", "TypeError", "ValueError"),
    *("MissingStageError", "TraceError"),
}
"""Errors whose sentences name parameters and shapes: the wrong use of a function. Other errors refuse what a person
did, and so do some of these: which ones, a test cannot tell."""

IN_CODE = {
    "The cat sat on the mat": "a text that a model reads at first",
    "Die Katze saß auf der Matte": "the same",
    "When Mary and John went to the store": "the same",
    "purple elephants quietly dance": "a text that an example repeats",
    "if no key is left}": "words of a formula",
    "planes = [x for rows in pictures]": "Python for people",
    "from torch.nn import functional": "the same",
    "# (B * H, Tq, Tk), here for one sequence": "the same",
    "of the held-out texts": "what a maintainer reads who trains the models again",
}
"""Five words in a row that may stand in code, and what they are."""


def test_no_sentence_stands_in_code() -> None:
    modules = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    found = {path.relative_to(ROOT).as_posix(): _sentences_in(path) for path in modules}
    others = {
        name: [text for text in texts if not any(part in text for part in IN_CODE)] for name, texts in found.items()
    }
    assert {name: texts for name, texts in others.items() if texts} == {}
    assert all(any(part in text for texts in found.values() for text in texts) for part in IN_CODE)


def _sentences_in(module: Path) -> list[str]:
    """The sentences of a module that are neither docstrings nor errors for programmers."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    unread: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                unread.add(node.value)
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name in FOR_PROGRAMMERS:
                unread |= set(ast.walk(node))
            case ast.JoinedStr(values=parts):
                unread |= set(parts)
    strings = [
        node for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr) and node not in unread
    ]
    return [text for text in map(_text_of, strings) if SENTENCE.search(text)]


def _text_of(node: ast.Constant | ast.JoinedStr) -> str:
    """A string, with an x for what is put into it."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)


@pytest.mark.parametrize(("count", "said"), [(0, "0 heads"), (1, "1 head"), (1_200, "1,200 heads")])
def test_a_number_stands_with_its_word(count: int, said: str) -> None:
    texts = Texts({"heads": "{n:head|heads} of {width:.1f}, {names}"})
    assert texts("heads", n=count, width=2, names="a|b") == f"{said} of 2.0, a|b"
