"""The ways to put the mask into effect: one row under every way of masking, in every number type."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from headlight.masks.application import APPLICATIONS, DTYPES, AppliedRow, applied
from model.texts import texts_of
from visualizer.components.row_bars import BarCell, BarRow, Remark, row_bars
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.views.lab.case import Case

_KEY = "row_bars"
say = texts_of(__name__)


def render(case: Case) -> None:
    """Draw the row of the query that is looked at."""
    selection = case.selection
    allowed = case.allowed[selection.query]
    scores = case.scores[0, selection.head, selection.query]
    found = applied(scores, allowed)
    rows, keys = case.axes
    st.markdown(
        say(
            "row",
            scores=say("modified_scores") if case.has_changed_scores else say("scaled_scores"),
            query=selection.query,
            label=markdown_safe(rows.labels[selection.query]),
            layer=selection.layer,
            head=markdown_safe(case.run.head_label(selection.head)),
            n_ways=len(APPLICATIONS),
        )
    )
    n_types, has_key = len(DTYPES), bool(allowed.any())
    reference = [row.weights.numpy() for row in found if row.application == _RIGHT]
    mount(
        row_bars(
            [_row(found[start : start + n_types], has_key=has_key) for start in range(0, len(found), n_types)],
            columns=[str(dtype).removeprefix("torch.") for dtype in DTYPES],
            keys=keys,
            blocked=(~allowed).numpy(),
            reference=np.stack(reference),
            key=_KEY,
        )
    )


_RIGHT = "minus_infinity_then_zero"


def _row(cells: tuple[AppliedRow, ...], *, has_key: bool) -> BarRow:
    application = APPLICATIONS[cells[0].application]
    bars = tuple(_cell(cell, has_key=has_key) for cell in cells)
    return BarRow(application.title, application.code, application.note, bars)


def _cell(cell: AppliedRow, *, has_key: bool) -> BarCell:
    return BarCell(
        weights=cell.weights.numpy(),
        remarks=tuple(_remarks(cell, has_key=has_key)),
        fully_blocked=cell.fully_blocked.numpy(),
        outcome=_OUTCOMES[cell.outcome],
    )


def _remarks(cell: AppliedRow, *, has_key: bool) -> list[Remark]:
    """Say how much leaks through one row, and what else is wrong with it."""
    found = [Remark(say("leak", amount=_number(cell.leak)), warning=cell.leak != 0)]
    if cell.taken and not cell.leak:
        found.append(Remark(say("taken", amount=_number(cell.taken)), warning=True))
    if has_key and not cell.sums_to_one:
        found.append(Remark(say("row_sum", amount=_number(cell.row_sum)), warning=True))
    if cell.fill_overflows:
        found.append(Remark(say("fill_refused") if cell.refusal else say("fill"), warning=True))
    return found


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.3g}"


_OUTCOMES = {
    "NaN": Remark(say("outcome_nan"), warning=True),
    "zero": Remark(say("outcome_zero")),
    "uniform": Remark(say("outcome_uniform"), warning=True),
    "unmasked": Remark(say("outcome_unmasked"), warning=True),
    "other": Remark(say("outcome_other"), warning=True),
}
"""The words for the outcome of a row without a key."""
