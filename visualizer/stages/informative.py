"""The number that says most of a row, where nobody has chosen one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.runs.paths import with_layer
from visualizer.runs.run import Run
from visualizer.settings.settings import Selection
from visualizer.stages.derivations import Cell
from visualizer.stages.panels import matrix

say = texts_of(__name__)

_WINNERS = ("logits", "probabilities")
_SCORES = ("scores", "scaled_scores", "modified_scores", "masked_scores")
_PALE = 0.1
"""A largest score below this share of the distance to the lowest one has next to no colour."""
_AS_TELLING = 0.5
"""A number of at least this share of the largest one of its row is left as it is."""
TIE = 0.02
"""Weights that are no further apart look alike: of these, none is the one that is looked at most."""


def cell_at(run: Run, path: str, selection: Selection) -> Cell:
    """The selected number, or the nearest one that the stage has; where no column was chosen, a telling one."""
    n_rows, n_columns = (1, 1, *run.trace[path].value.shape)[-2:]
    sizes = dict(run.trace[path].dims)
    nearest = Cell(
        path,
        batch=min(selection.batch, run.batch_size(path) - 1),
        head=min(selection.head, (run.n_heads(path) or sizes.get("I") or most_heads(run)) - 1),
        row=min(selection.query, n_rows - 1),
        column=min(selection.key, n_columns - 1),
    )
    if selection.cell or selection.key != Selection().key:
        return nearest
    place = {"batch": nearest.batch, "head": nearest.head, "row": nearest.row, "column": nearest.column}
    return replace(nearest, column=informative_column(run, path, **place))


def most_heads(run: Run) -> int:
    """The number of heads that can be chosen where a stage has none: it leads to stages that have."""
    return run.settings.n_heads if run.seen is None else max((one.n_heads for one in run.seen.trace), default=1)


def informative_column(run: Run, path: str, *, batch: int, head: int, row: int, column: int) -> int:
    """The column of a row to look at: ``column``, or that of the row's largest number where this one says little.

    In an attention the largest is that of the weights, so that the same key is looked at from the scores to the
    weights; of logits and probabilities it is the winner, and elsewhere the number furthest from zero.
    """
    shown = _telling_row(run, path, batch=batch, head=head, row=row)
    winner = int(shown.argmax())
    if path in _WINNERS or shown[column] < _AS_TELLING * shown[winner]:
        return winner
    return column


def clear_row(run: Run, selection: Selection) -> int:
    """The query looked at or, where its largest weights tie, the nearest whose largest is ahead the most."""
    path = with_layer(run.trace, selection.stage, selection.layer)
    weights = f"{run.trace[path].module_path}.weights"
    if weights not in run.trace:
        return selection.query
    cell = cell_at(run, weights, selection)
    ordered = np.sort(matrix(run.trace[weights].value, head=cell.head, batch=cell.batch), axis=1)[:, ::-1]
    lead = (ordered[:, 0] - ordered[:, 1:].max(axis=1, initial=0)).round(2)
    if lead[cell.row] > TIE:
        return cell.row
    return max(range(len(lead)), key=lambda row: (lead[row], -abs(row - cell.row)))


def largest_score(run: Run, cell: Cell) -> str:
    """Name the key with the largest score of a row, where only far lower ones have a strong colour."""
    stage = run.trace[cell.path]
    if stage.name not in _SCORES:
        return ""
    row = matrix(stage.value, head=cell.head, batch=cell.batch)[cell.row]
    largest, least = float(row.max()), float(row[np.isfinite(row)].min(initial=0.0))
    if not math.isfinite(largest) or largest >= -_PALE * least:
        return ""
    queries, keys = run.axes(cell.path)
    key = int(row.argmax())
    return say(
        "largest",
        label=queries.labels[cell.row],
        query=cell.row,
        which=say("below_zero") if largest < 0 else say("above_zero"),
        largest=largest + 0.0,  # -0 is 0
        key_label=keys.labels[key],
        key=key,
    ).replace(" -", " −")


def _telling_row(run: Run, path: str, *, batch: int, head: int, row: int) -> NDArray[np.float32]:
    """Return for each column of the row how much there is to see in it."""
    stage = run.trace[path]
    weights = run.trace.get(f"{stage.module_path}.weights")
    if weights is not None and weights.dims[-2:] == stage.dims[-2:]:
        stage = weights
    values: NDArray[np.float32] = matrix(stage.value, head=head, batch=batch)[row]
    return values if path in _WINNERS else np.abs(values)
