"""The ways to put the mask into effect: one row under every way of masking, in one type of number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray

from headlight.masks.application import APPLICATIONS, AppliedRow, applied
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.state import widgets
from visualizer.views.lab.case import Case

say = texts_of(__name__)


def render(case: Case) -> None:
    """Draw the row of the query that is looked at."""
    selection = case.selection
    allowed = case.allowed[selection.query]
    scores = case.scores[0, selection.head, selection.query]
    queries, keys = case.axes
    st.markdown(
        say(
            "row",
            scores=say("modified_scores") if case.has_changed_scores else say("scaled_scores"),
            query=selection.query,
            label=markdown_safe(queries.labels[selection.query]),
            layer=selection.layer,
            head=markdown_safe(case.run.head_label(selection.head)),
            n_ways=len(APPLICATIONS),
        )
    )
    widgets.segments("number_type", required=True, label_visibility="collapsed")
    found = applied(scores, allowed, [getattr(torch, selection.lab.number_type)])
    masked = _panel("masked", say("masked"), [row.weights.numpy() for row in found], keys)
    leaks = ~allowed.numpy() & (masked.array != 0)
    hatched = (~allowed.numpy() & ~leaks).astype(np.uint8)
    masked = replace(masked, blocked=hatched, blocked_by=(say("mask"),), marked=leaks)
    mount(tensor_grid([masked], key="applied_masked"))
    if leaks.any():
        st.caption(say("outlined"))
    without_key = _panel("without_key", say("without_key"), [row.fully_blocked.numpy() for row in found], keys)
    mount(tensor_grid([without_key], key="applied_without_key"))
    has_key = bool(allowed.any())
    st.caption("\n\n".join(_in_words(row, has_key=has_key) for row in found))


def _panel(name: str, title: str, weights: Sequence[NDArray[np.float32]], keys: Axis) -> Panel:
    """The weights by way and key."""
    return Panel(
        name=name,
        title=title,
        array=np.stack(weights),
        rows=Axis("way", tuple(way.title for way in APPLICATIONS.values()), None),
        columns=keys,
        role="weights",
        bounds=(0.0, 1.0),
    )


def _in_words(row: AppliedRow, *, has_key: bool) -> str:
    way = APPLICATIONS[row.application]
    remarks = ", ".join(_remarks(row, has_key=has_key))
    outcome = _warning(_OUTCOMES[row.outcome], is_wrong=row.outcome != "zero")
    return say("way", title=way.title, remarks=remarks, outcome=outcome, code=way.code, note=way.note)


def _remarks(row: AppliedRow, *, has_key: bool) -> list[str]:
    """Say how much leaks through one row, and what else is wrong with it."""
    found = [_warning(say("leak", amount=_number(row.leak)), is_wrong=row.leak != 0)]
    if row.taken and not row.leak:
        found.append(_warning(say("taken", amount=_number(row.taken))))
    if has_key and not row.sums_to_one:
        found.append(_warning(say("row_sum", amount=_number(row.row_sum))))
    if row.fill_overflows:
        found.append(_warning(say("fill_refused") if row.refusal else say("fill")))
    return found


def _warning(text: str, *, is_wrong: bool = True) -> str:
    return f":red[{text}]" if is_wrong else text


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.3g}"


_OUTCOMES = {
    "NaN": say("outcome_nan"),
    "zero": say("outcome_zero"),
    "uniform": say("outcome_uniform"),
    "unmasked": say("outcome_unmasked"),
    "other": say("outcome_other"),
}
"""The words for the outcome of a row without a key."""
