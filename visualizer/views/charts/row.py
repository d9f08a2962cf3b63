"""One query's row of an attention: its scores and weights as bars, and the softmax at other temperatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.texts import listed, texts_of
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.runs.seen import rounding_of
from visualizer.safe_text import markdown_safe
from visualizer.settings.settings import name_of_mask
from visualizer.settings.temperature import temperature_of
from visualizer.stages.derivations import Cell
from visualizer.stages.panels import blocked_cells, to_array
from visualizer.state.theme import theme

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]


def draw_bars(run: Run, cell: Cell) -> None:
    """Draw scores and weights of the selected query."""
    from visualizer.figures.score_bars import score_bars
    from visualizer.figures.styling import config  # figures bring Plotly, which nothing else waits for

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
    st.caption(say("bars", row=_whose(run, cell), note=_said(run, cell)))
    alt = say("bars_alt", row=_whose(run, cell))
    st.plotly_chart(figure, key="chart_row", config=config("row"), alt=alt)


def draw_temperature(run: Run, cell: Cell) -> None:
    """Draw the softmax of the selected query's scores over the temperature."""
    allowed = np.flatnonzero(np.isfinite(_row(run, cell, "masked_scores")))
    if not len(allowed):
        st.caption(say("no_softmax", row=_whose(run, cell)))
        return
    if not _is_softmax(run, cell):
        st.caption(f"{_whose(run, cell)}. {say('no_softmax_of_these')}")
        return

    from visualizer.figures.styling import config
    from visualizer.figures.temperature_curves import softmax_at, temperature_curves

    own = divisor(run, cell)
    scores = undivided_scores(run, cell)[allowed]
    labels = run.axes(f"{cell.path.rpartition('.')[0]}.weights")[1].labels
    figure = temperature_curves(scores, [f"{key} {labels[key]}" for key in allowed], own=own, theme=theme())
    here, unscaled = softmax_at(scores, np.array([own, 1.0])).entropy
    most, n_keys = math.log2(len(allowed)), len(allowed)
    entropy = say("entropy", bits=here, most=most, n_keys=n_keys)
    if not divisors(run, cell):
        said = say("changed", entropy=entropy)
    elif own == 1:
        said = say("not_scaled", entropy=entropy)
    else:
        said = say("scaled", tau=product_in_words(*divisors(run, cell)), entropy=entropy, undivided=unscaled)
    st.caption(f"{_whose(run, cell)}. {said}")
    alt = say("temperature_alt", row=_whose(run, cell))
    st.plotly_chart(figure, key="chart_temperature", config=config("temperature"), alt=alt)


def name_of_head(run: Run, cell: Cell) -> str:
    """``Layer 1, head 2 · same token``; without the layer where there is but one attention."""
    label = run.head_label(cell.head, cell.path.rpartition(".")[0])
    return say("head", layer=layer_of(cell.path), head=label) if "layers." in cell.path else f"H{label[1:]}"


def undivided_scores(run: Run, cell: Cell) -> Numbers:
    """(Tk,), what enters the softmax of the selected query times its divisor: minus infinity where blocked."""
    return _row(run, cell, "masked_scores") * divisor(run, cell)


def divisor(run: Run, cell: Cell) -> float:
    """The number τ that the scores are divided by: the product of ``divisors``."""
    return math.prod(divisors(run, cell))


def divisors(run: Run, cell: Cell) -> tuple[float, ...]:
    """The number that the model divides the scores by, and the temperature that is chosen.

    Empty where more is done to the scores, or a bias is added: τ then divides what comes of that.
    """
    module = cell.path.rpartition(".")[0]
    is_changed = f"{module}.modified_scores" in run.trace
    chosen = temperature_of(run.settings.score) if is_changed else 1.0
    has_bias = module in run.attentions and run.attentions[module].bias is not None
    return () if chosen is None or has_bias else (run.temperature(module), chosen)


def product_in_words(of_model: float, chosen: float) -> str:
    """``√16 × 1.5 = 6``, of which one is not 1."""
    square = of_model**2
    is_root = of_model != 1 and math.isclose(square, round(square), rel_tol=1e-6)
    own = f"√{square:.0f}" if is_root else f"{of_model:.4g}"
    factors = [own] * (of_model != 1) + [f"{chosen:g}"] * (chosen != 1)
    return " × ".join(factors) + (f" = {of_model * chosen:.4g}" if is_root or len(factors) > 1 else "")


def reasons(run: Run, cell: Cell) -> list[str]:
    """Return what blocks each key of the selected query: the masks' names, empty where none does."""
    module = cell.path.rpartition(".")[0]
    bits, names = blocked_cells(run, module, cell.batch)
    n_keys = run.trace[f"{module}.weights"].value.shape[-1]
    if bits is None:
        return [""] * n_keys
    titles = list(map(name_of_mask, names))
    row = bits[min(cell.head, len(bits) - 1), cell.row]
    return [listed(title for bit, title in enumerate(titles) if value >> bit & 1) for value in row.tolist()]


def _row(run: Run, cell: Cell, stage: str) -> Numbers:
    module = cell.path.rpartition(".")[0]
    return to_array(run.trace[f"{module}.{stage}"].value[cell.batch, cell.head, cell.row])


def _whose(run: Run, cell: Cell) -> str:
    queries, _ = run.axes(f"{cell.path.rpartition('.')[0]}.weights")
    label = markdown_safe(queries.labels[cell.row])
    return say("row", head=name_of_head(run, cell), query=cell.row, label=label)


def _said(run: Run, cell: Cell) -> str:
    """Return the sentences that the reader of the bars needs, as far as they hold of this row."""
    masked = _row(run, cell, "masked_scores")
    blocked = [bool(reason) for reason in reasons(run, cell)]
    hatched = ""
    if any(blocked):
        left_out = np.isneginf(masked[blocked]).all()
        hatched = say("hatched", count=sum(blocked)) if left_out else say("hatched_counts", count=sum(blocked))
    weights = _row(run, cell, "weights")
    if not np.isfinite(masked).any() and not np.nan_to_num(weights).any():
        return f"{hatched}{say('no_key_nan') if np.isnan(weights).any() else say('no_key')}"
    return f"{hatched}{say('one_more') if _is_softmax(run, cell) else say('no_softmax_of_these')}"


def _is_softmax(run: Run, cell: Cell) -> bool:
    """True if the weights of the selected query are the softmax of its masked scores, or zero without a key."""
    masked = _row(run, cell, "masked_scores").astype(np.float64)
    weights = np.nan_to_num(_row(run, cell, "weights"))
    exponentials = np.exp(masked - masked.max(initial=np.finfo(np.float64).min))
    attention = run.attentions.get(cell.path.rpartition(".")[0])
    rounding = rounding_of(attention) if attention else 1e-5
    return np.allclose(exponentials / (exponentials.sum() or 1), weights, atol=rounding)
