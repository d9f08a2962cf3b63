"""The names of a model's outputs, and their grids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.components.axis import Axis, SequenceName
from visualizer.components.tensor_grid.element import Panel
from visualizer.runs.paths import layer_of
from visualizer.stages.panels import bounds
from visualizer.views.lab.case import Case

say = texts_of(__name__)


def output_title(path: str) -> str:
    """``after layer 1`` or ``logits``."""
    return say("after_layer", layer=layer_of(path)) if "layers." in path else path


def influence_panel(
    case: Case,
    measured: Sequence[int],
    title: str,
    norms: NDArray[np.floating],
    hatched: NDArray[np.bool_] | None = None,
    why: str = "",
    *,
    sequence: SequenceName,
    subtitle: str,
) -> Panel:
    """A grid of Jacobian norms.

    Args:
        case: the case that was measured.
        measured: the rows that were measured, where they are a sample.
        title: what stands above.
        norms: (rows, T).
        hatched: (rows, T), the cells that are hatched, if any.
        why: what their tooltip says.
        sequence: whose embeddings the columns are.
        subtitle: the second line above.
    """
    run = case.run
    row_sequence: SequenceName = "target" if "target" in run.tokens and not case.of_encoder else "source"
    rows = run.tokens[row_sequence].labels
    if measured:
        rows = tuple(rows[row] for row in measured)
    return Panel(
        name="influence",
        title=title,
        subtitle=subtitle,
        array=norms,
        rows=Axis("query", rows, None if measured else row_sequence),
        columns=Axis("key", run.tokens[sequence].labels, sequence),
        role="residual",
        palette="sequential",
        bounds=bounds(norms, "distribution"),
        blocked=None if hatched is None else hatched.astype(np.uint8),
        blocked_by=(why,),
    )
