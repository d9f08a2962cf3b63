"""Every text of the pictures is said with all that it leaves open, and no sentence stands in JavaScript."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.model.test_texts import left_open
from visualizer.components.javascript_modules import ROOT

FOLDER = ROOT / "components"
TEXTS: dict[str, dict[str, str]] = json.loads((FOLDER / "texts.json").read_text(encoding="utf-8"))
SCRIPTS = sorted(ROOT.rglob("*.js"))

_SAYS = re.compile(r'^const say = textsOf\("(.+)"\);$', re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|(?:^|\s)//[^\n]*", re.DOTALL)
_CALL = re.compile(r'\bsay(?:\.parts)?\("(\w+)"(?:, (?=\{)|(?=\)))')
_STRING = re.compile(r'"[^"\n]*"|`[^`]*`')
_FILLED = re.compile(r"\$\{[^{}]*\}")
_SENTENCE = re.compile(r"(?=.*[^\W\d_]{3})(?<![\w-])(?:[^\W_]+(?:['’][^\W_]+)*[,;:.]? ){3}[^\W_]+(?![\w(=-])")
"""Four words in a row, or words and numbers. Code, formulas and names of classes have signs between theirs."""

IN_CODE = {
    "layer 7 has not arrived": "an error in the picture, which no person reads",
    "a section names no module": "the same",
    "no stroke is under way": "the same",
}
"""Four words in a row that may stand in JavaScript, and what they are."""


def test_a_module_says_the_texts_that_have_its_name() -> None:
    said = {script: _SAYS.findall(script.read_text(encoding="utf-8")) for script in SCRIPTS}
    names = {script.relative_to(FOLDER).with_suffix("").as_posix(): name for script, name in said.items() if name}
    assert names == {module: [module] for module in TEXTS}


@pytest.mark.parametrize("module", TEXTS)
def test_every_text_is_said_with_all_that_it_leaves_open(module: str) -> None:
    code = _code_of(FOLDER / f"{module}.js")
    calls = [(call[1], _given(code[call.end() :])) for call in _CALL.finditer(code)]
    assert len(calls) == len(re.findall(r"\bsay(?:\.parts)?\(", code)), "a name, and what is given by name"
    assert {name for name, _ in calls} == set(TEXTS[module])
    for name, given in calls:
        assert given == left_open(TEXTS[module][name]), name


def _given(code: str) -> set[str]:
    """The names in the object with which some code begins, ``{ n, all: all.length })``; none where it has none."""
    if not code.startswith("{"):
        return set()
    depth, names = 0, [""]
    for sign in code:
        depth += (sign in "{[(") - (sign in "}])")
        if depth == 0:
            break
        if depth == 1 and sign == ",":
            names.append("")
        else:
            names[-1] += sign
    return {name.lstrip("{").partition(":")[0].strip() for name in names}


def test_no_sentence_stands_in_javascript() -> None:
    found = {str(script): [text for text in _strings_of(script) if _SENTENCE.search(text)] for script in SCRIPTS}
    unexplained = {name: [text for text in texts if text not in IN_CODE] for name, texts in found.items()}
    assert {name: texts for name, texts in unexplained.items() if texts} == {}
    assert IN_CODE.keys() == {text for texts in found.values() for text in texts}


def _strings_of(script: Path) -> list[str]:
    """The strings of a module, with a 7 for what is put into them."""
    code = _code_of(script)
    while (filled := _FILLED.sub("7", code)) != code:
        code = filled
    return [string[1:-1] for string in _STRING.findall(code)]


def _code_of(script: Path) -> str:
    return _COMMENT.sub("", script.read_text(encoding="utf-8"))
