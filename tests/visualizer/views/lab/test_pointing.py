"""The mark stands below the part of an expression that is wrong, also in a long line or in one of several."""

from __future__ import annotations

import pytest

from headlight.masks.language import MaskExpressionError
from visualizer.views.lab.pointing import pointed_at


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("k <= query", "query"),
        ("row", "row"),
        ("return a & b\nreturn nothing & c\n", "nothing"),
        (" and ".join(["k <= q"] * 9) + " and wrong and " + " and ".join(["k <= q"] * 9), "wrong"),
        ("k <= q and " * 9 + "wrong", "wrong"),
        ("\tk\t<= wrong", "wrong"),
    ],
)
def test_the_mark_is_below_the_part(text, part):
    start = text.index(part)
    line, marks = pointed_at(text, MaskExpressionError("", start, start + len(part))).split("\n")
    assert line[marks.index("^") :][: marks.count("^")] == part
    assert len(line) <= 40


def test_a_part_of_several_lines_is_marked_to_the_end_of_its_first():
    text = "def f(q, k):\n    return q"
    assert pointed_at(text, MaskExpressionError("", 0, len(text))) == "def f(q, k):\n^^^^^^^^^^^^"


def test_what_is_missing_at_the_end_is_marked_after_it():
    assert pointed_at("k <=", MaskExpressionError("", 4, 4)) == "k <=\n    ^"
