"""One true sentence on what a person expected and what was computed."""

from __future__ import annotations

import numpy as np

from model.texts import capitalized, listed, texts_of
from visualizer.components.axis import Axis
from visualizer.safe_text import markdown_safe
from visualizer.shares import percent
from visualizer.views.predict.questions import (
    AS_EXPECTED,
    MISSED,
    NOT_SO,
    CellQuestion,
    Codes,
    Flags,
    TokenQuestion,
    codes,
)

say = texts_of(__name__)

_MOST_NAMED = 4
"""So many places that share the largest number are named, more are counted."""


def verdict(question: CellQuestion, expected: Flags) -> str:
    """Say how many cells or rows are as expected, and the first that is not; in Markdown."""
    found = codes(question, expected)
    return _on_seen(question, found) if question.kind == "seen" else _on_most(question, expected, found)


def verdict_on_token(question: TokenQuestion, expected: int | None) -> str:
    """Say whether the most likely token is the expected one; in Markdown."""
    best = question.best
    likeliest = f"“{markdown_safe(question.labels[best])}” ({percent(float(question.shares[best]), 1)})"
    if expected is None:
        return say("no_token", likeliest=likeliest)
    token, share = markdown_safe(question.labels[expected]), float(question.shares[expected])
    probability = percent(share, 1)
    if share >= float(question.shares[best]):
        return say("likeliest_expected", token=token, share=probability)
    place = 1 + sum(float(question.shares[other]) > share for other in question.offered)
    count = len(question.offered)
    return say("another_expected", likeliest=likeliest, token=token, share=probability, place=place, count=count)


def answer_in_words(question: CellQuestion, expected: Flags) -> str:
    """Return the answer in the row that is looked at, as plain text: ``key 0 “the”, key 2 “sat”``; else ""."""
    columns = question.panel.columns
    return ", ".join(
        position(columns, int(column), is_markdown=False) for column in np.flatnonzero(expected[question.row])
    )


def cells_in_words(question: CellQuestion, text: str) -> Flags:
    """The cells that ``answer_in_words`` said, of one row; none where it was cut or a comma stands in a token."""
    found = np.zeros(question.right.shape, np.bool_)
    said = text.split(", ")
    columns = question.panel.columns
    found[question.row] = [position(columns, i, is_markdown=False) in said for i in range(len(columns.labels))]
    return found if answer_in_words(question, found) == text else np.zeros_like(found)


def right_answers(question: CellQuestion | TokenQuestion) -> frozenset[str]:
    """The right answers in words: of several largest numbers of a row each one, of what is seen all together."""
    if isinstance(question, TokenQuestion):
        best = question.shares[question.best]
        return frozenset(question.labels[token] for token in question.offered if question.shares[token] >= best)
    row = question.right[question.row]
    each = [row] if question.kind == "seen" else [np.arange(len(row)) == place for place in np.flatnonzero(row)]
    alone = (np.where(np.arange(len(question.right))[:, None] == question.row, one, False) for one in each)
    return frozenset(answer_in_words(question, flags) for flags in alone)


def _on_seen(question: CellQuestion, found: Codes) -> str:
    cells = _counted(found.size, say("cell"))
    wrong = np.argwhere((found == NOT_SO) | (found == MISSED))
    if not len(wrong):
        return say("all_cells", cells=cells)
    row, column = min(wrong.tolist(), key=lambda place: (place[0] != question.row, place))
    query, key = position(question.panel.rows, row), position(question.panel.columns, column)
    if found[row, column] == MISSED:
        return say("sees", n_right=found.size - len(wrong), cells=cells, row=query, column=key)
    return say("does_not_see", n_right=found.size - len(wrong), cells=cells, row=query, column=key)


def _on_most(question: CellQuestion, expected: Flags, found: Codes) -> str:
    answered = np.flatnonzero(expected.any(axis=1))
    row_name = question.panel.rows.name
    if not len(answered):
        return say("nothing_marked", answer=capitalized(_largest_of(question, question.row)))
    is_right = (found[answered] == AS_EXPECTED).any(axis=1)
    if is_right.all():
        tied = [row for row in answered.tolist() if question.right[row].sum() > 1]
        said = f" {capitalized(_largest_of(question, _of_these(tied, question.row)))}." if tied else ""
        if len(answered) == 1:
            return say("one_row", row=row_name) + said
        return say("all_rows", rows=_counted(len(answered), row_name)) + said
    wrong = answered[~is_right].tolist()
    row = _of_these(wrong, question.row)
    return say(
        "some_rows",
        n_right=int(is_right.sum()),
        rows=_counted(len(answered), row_name),
        answer=_largest_of(question, row),
        said=position(question.panel.columns, int(expected[row].argmax())),
    )


def _largest_of(question: CellQuestion, row: int) -> str:
    """Find the largest number of a row."""
    panel = question.panel
    subject = position(panel.rows, row)
    places = np.flatnonzero(question.right[row])
    if not len(places):
        return say("none_left", row=subject, column=panel.columns.name)
    values = panel.array[row, places]
    each = [f"{float(value):.3g}".replace("-", "−") for value in (values.max(), values.min())]
    value = say("to").join(dict.fromkeys(reversed(each)))
    if len(places) > _MOST_NAMED:
        where = _counted(len(places), panel.columns.name)
    else:
        where = listed(position(panel.columns, int(place)) for place in places)
    if len(places) > 1:
        value = say("tie", value=value)
    if question.of_weights:
        return say("looks_most", row=subject, where=where, value=value)
    return say("largest", row=subject, where=where, value=value)


def _of_these(rows: list[int], preferred: int) -> int:
    """The row that is looked at where it is one of these, else the first."""
    return preferred if preferred in rows else rows[0]


def position(axis: Axis, index: int, *, is_markdown: bool = True) -> str:
    """A position by name: ``query 3 “cat”``, or ``feature 5`` where a position has no name of its own."""
    label = axis.labels[index]
    if label in ("", str(index)):
        return f"{axis.name} {index}"
    return f"{axis.name} {index} “{markdown_safe(label) if is_markdown else label}”"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun not in ("key",) else f"{noun}s"
