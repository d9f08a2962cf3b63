"""The examples in the docstrings of the model are run, and say what comes out."""

import doctest
import importlib
from pathlib import Path

import pytest

MODEL = Path(__file__).resolve().parents[2] / "model"
WITH_EXAMPLES = sorted(
    ".".join(("model", *source.relative_to(MODEL).with_suffix("").parts))
    for source in MODEL.rglob("*.py")
    if ">>> " in source.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_come_out(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("name", ["attention", "decoding", "masks", "positional_encoding", "tracing"])
def test_what_reads_like_the_paper_has_examples(name):
    assert f"model.{name}" in WITH_EXAMPLES
