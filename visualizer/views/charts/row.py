"""One query's row of an attention: its scores and weights as bars, and the softmax at other temperatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.session.theme import theme
from visualizer.settings.settings import FIELDS
from visualizer.stages.derivations import Cell
from visualizer.stages.panels import blocked_cells, to_array

Numbers = NDArray[np.floating[Any]]


def draw_bars(run: Run, cell: Cell) -> None:
    """Draw scores and weights of the selected query."""
    from visualizer.figures.looks import config  # figures bring Plotly, which nothing else waits for
    from visualizer.figures.score_bars import score_bars

    module, _, name = cell.path.rpartition(".")
    changed = name != "scaled_scores" and f"{module}.modified_scores" in run.trace
    score = "scores" if name == "scores" else "modified_scores" if changed else "scaled_scores"
    _, keys = run.axes(f"{module}.weights")
    figure = score_bars(
        _row(run, cell, score),
        _row(run, cell, "weights"),
        keys.labels,
        blocked_by=reasons(run, cell),
        score_name=score.removesuffix("s").replace("_", " "),
        selected=cell.column,
        theme=theme(),
    )
    st.caption(f"{_whose(run, cell)}: the scores, and the weights that softmax makes of them. {_said(run, cell)}")
    alt = f"{_whose(run, cell)}: scores above and weights below, a bar for each key"
    st.plotly_chart(figure, key="chart_row", config=config("row"), alt=alt)


def draw_temperature(run: Run, cell: Cell) -> None:
    """Draw the softmax of the selected query's scores over the temperature."""
    allowed = np.flatnonzero(np.isfinite(_row(run, cell, "masked_scores")))
    if not len(allowed):
        st.caption(f"{_whose(run, cell)}: no key is left, so there is no softmax to draw.")
        return

    from visualizer.figures.looks import config
    from visualizer.figures.temperature_curves import softmax_at, temperature_curves

    own = temperature_of(run, cell)
    scores = undivided_scores(run, cell)[allowed]
    labels = run.axes(f"{cell.path.rpartition('.')[0]}.weights")[1].labels
    figure = temperature_curves(scores, [f"{key} {labels[key]}" for key in allowed], own=own, theme=theme())
    here, unscaled = softmax_at(scores, np.array([own, 1.0])).entropy
    divided = f"√{own**2:.0f} = {own:.4g}" if own != 1 else "1, since the scores are not scaled"
    said = (
        f"Softmax of the scores divided by τ. This run has τ = {divided}: {here:.2f} of at most "
        f"{math.log2(len(allowed)):.2f} bits, which is {len(allowed)} keys alike."
    )
    if own != 1:
        said += f" Undivided, τ = 1, it would be {unscaled:.2f}."
    st.caption(f"{_whose(run, cell)}. {said}")
    alt = f"{_whose(run, cell)}: the weights of its keys and their entropy over the temperature, as curves"
    st.plotly_chart(figure, key="chart_temperature", config=config("temperature"), alt=alt)


def name_of_head(run: Run, cell: Cell) -> str:
    """``Layer 1, head 2 · same token``; without the layer where there is but one attention."""
    label = run.head_label(cell.head)
    return f"Layer {layer_of(cell.path)}, {label}" if "layers." in cell.path else f"H{label[1:]}"


def temperature_of(run: Run, cell: Cell) -> float:
    """What the run divides the scores of an attention by."""
    module = cell.path.rpartition(".")[0]
    width: int = run.trace[f"{module}.q"].value.shape[-1]
    return math.sqrt(width) if run.scales_scores(module) else 1.0


def undivided_scores(run: Run, cell: Cell) -> Numbers:
    """(Tk,), what enters the softmax of the selected query times the temperature: minus infinity where blocked."""
    return _row(run, cell, "masked_scores") * temperature_of(run, cell)


def reasons(run: Run, cell: Cell) -> list[str]:
    """What blocks each key of the selected query: the masks' names, empty where none does."""
    module = cell.path.rpartition(".")[0]
    bits, names = blocked_cells(run, module, cell.batch)
    n_keys = run.trace[f"{module}.weights"].value.shape[-1]
    if bits is None:
        return [""] * n_keys
    titles = [FIELDS["mask"].choices.get(name, name).lower() for name in names]
    row = bits[min(cell.head, len(bits) - 1), cell.row]
    return [" and ".join(title for bit, title in enumerate(titles) if value >> bit & 1) for value in row.tolist()]


def _row(run: Run, cell: Cell, stage: str) -> Numbers:
    module = cell.path.rpartition(".")[0]
    return to_array(run.trace[f"{module}.{stage}"].value[cell.batch, cell.head, cell.row])


def _whose(run: Run, cell: Cell) -> str:
    queries, _ = run.axes(f"{cell.path.rpartition('.')[0]}.weights")
    label = markdown_safe(queries.labels[cell.row])
    return f"{name_of_head(run, cell)}, query {cell.row} “{label}”"


def _said(run: Run, cell: Cell) -> str:
    """What must be known to read the bars, as far as it holds of this row."""
    masked, weights = _row(run, cell, "masked_scores").astype(np.float64), _row(run, cell, "weights")
    blocked = [bool(reason) for reason in reasons(run, cell)]
    counts = "" if np.isneginf(masked[blocked]).all() else ", which count all the same"
    hatched = f"Hatched: the scores of blocked keys ({sum(blocked)}){counts}. " if any(blocked) else ""
    if not np.isfinite(masked).any():
        return f"{hatched}No key is left, so every weight is zero."
    exponentials = np.exp(masked - masked.max())
    if np.allclose(exponentials / exponentials.sum(), weights, atol=1e-5):
        return f"{hatched}One more in the number that enters softmax is {math.e:.2f} times the weight."
    return f"{hatched}These weights are not the softmax of the masked scores."
