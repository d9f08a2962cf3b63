"""The distance at which each head looks: its weight by the distance from the query to the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.colors import DASHES, HEADS, N_HEAD_COLORS, ThemeName
from visualizer.figures.styling import LEGEND_BELOW, MARGIN
from visualizer.safe_text import plotly_safe

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]

_SYMBOLS = ("circle", "square", "diamond", "triangle-up")
_FEW = 64


def weight_by_distance(weights: Numbers, counted: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Numbers]:
    """The mean weight of the queries at every distance.

    Args:
        weights: (H, Tq, Tk).
        counted: (H, Tq), the queries of which the mean is taken.

    Returns:
        The distances k - q, ascending, (Tq + Tk - 1,), and for each head the weight at each, which sum to one where
        every counted row does; NaN for a head without a counted query.
    """
    n_queries, n_keys = weights.shape[1:]
    distances = np.arange(-(n_queries - 1), n_keys)
    queries = counted.sum(axis=1).astype(np.float64)
    mean = np.where(counted[:, :, None], weights, 0).astype(np.float64)
    totals = np.stack([np.trace(mean, offset=distance, axis1=1, axis2=2) for distance in distances], axis=1)
    return distances, totals / np.where(queries > 0, queries, np.nan)[:, None]


def attention_distance(
    distances: NDArray[np.intp], means: Numbers, names: Sequence[str], *, selected: int, theme: ThemeName
) -> go.Figure:
    """One curve for each head; the selected head's is thick.

    Args:
        distances: (n,), as ``weight_by_distance`` returns them.
        means: (H, n).
        names: one for each head.
        selected: a head.
        theme: whose colours are used.
    """
    places = np.flatnonzero((np.nan_to_num(means) > 0).any(axis=0))
    low, high = (places[0], places[-1] + 1) if len(places) else (0, len(distances))
    figure = go.Figure()
    for head, name in enumerate(map(plotly_safe, names)):
        figure.add_scatter(
            x=distances[low:high],
            y=means[head, low:high],
            mode="lines+markers" if high - low <= _FEW else "lines",
            line={
                "color": HEADS[theme][head % N_HEAD_COLORS],
                "dash": _dash(head),
                "width": 4 if head == selected else 2,
            },
            marker={"symbol": _SYMBOLS[head % len(_SYMBOLS)], "size": 7},
            name=name,
            hovertemplate=f"%{{x:+d}}: %{{y:.4f}}<extra>{name}</extra>",
        )
    figure.update_xaxes(title=say("distance"), zeroline=True)
    figure.update_yaxes(title=say("mean_weight"), rangemode="tozero")
    figure.update_layout(height=400, margin=MARGIN, legend=LEGEND_BELOW, hovermode="closest", showlegend=True)
    return figure


def _dash(head: int) -> str:
    return ",".join(f"{length}px" for length in DASHES[head % len(DASHES)]) or "solid"
