"""Positional encodings over the positions: single dimensions, and how alike two positions are by their distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.colors import N_STEPS, ROLES, SEQUENTIAL_NEUTRAL, ThemeName
from visualizer.figures.styling import LEGEND_BELOW, MARGIN, hover_names, token_ticks

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]

MOST_CURVES = 8
_MOST_SWINGS = 20
_HEIGHT = 380


def curves_shown(n_positions: int, n_dimensions: int, selected: int) -> list[int]:
    """At most ``MOST_CURVES`` dimensions, ascending, and the selected one.

    They come in pairs, with more of the fast ones, which differ most over a short text; the fastest sinusoid among
    them swings so seldom over the text that its waves can be seen.
    """
    n_pairs, n_drawn = -(-n_dimensions // 2), MOST_CURVES // 2
    swings = (n_positions / (math.tau * 10_000 ** (2 * pair / n_dimensions)) for pair in range(n_pairs))
    fastest = next((pair for pair, count in enumerate(swings) if count <= _MOST_SWINGS), 0)
    firsts = (2 * (fastest + int((place / n_drawn) ** 2 * (n_pairs - fastest))) for place in range(n_drawn))
    pairs = {dimension for first in firsts for dimension in (first, first + 1)}
    return sorted({dimension for dimension in pairs if dimension < n_dimensions} | {selected})


def position_curves(encoding: Numbers, labels: Sequence[str], *, selected: int, theme: ThemeName) -> go.Figure:
    """One curve for each of some dimensions: its value at every position.

    Even dimensions are solid and odd ones dashed, low ones strong and high ones faint; the selected one is thick.

    Args:
        encoding: (T, D).
        labels: one for each position.
        selected: a dimension that is drawn in any case.
        theme: whose colours are used.
    """
    n_positions, n_dimensions = encoding.shape
    names = hover_names(labels)
    figure = go.Figure()
    for dimension in curves_shown(n_positions, n_dimensions, selected):
        figure.add_scatter(
            x=np.arange(n_positions),
            y=encoding[:, dimension],
            customdata=names,
            mode="lines",
            name=say("dimension", dimension=dimension),
            line=_line(dimension, n_dimensions, is_selected=dimension == selected, theme=theme),
            hovertemplate=say("value_at", dimension=dimension, position="%{customdata}", value="%{y:.4f}"),
        )
    figure.update_xaxes(title=say("position"), **token_ticks(labels))
    figure.update_yaxes(title=say("value"), zeroline=True)
    figure.update_layout(height=_HEIGHT, margin=MARGIN, legend=LEGEND_BELOW | {"y": -0.35}, hovermode="closest")
    return figure


def _line(dimension: int, n_dimensions: int, *, is_selected: bool, theme: ThemeName) -> dict[str, Any]:
    if is_selected:
        return {"color": ROLES[theme]["neutral"], "width": 4, "dash": _dash(dimension)}
    strength = 0.95 - 0.5 * (dimension / n_dimensions) ** 0.5
    return {"color": SEQUENTIAL_NEUTRAL[theme][int(strength * (N_STEPS - 1))], "width": 2, "dash": _dash(dimension)}


def _dash(dimension: int) -> str:
    return "dash" if dimension % 2 else "solid"


def products_by_distance(encoding: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The dot products of all pairs of positions, by how far apart they are.

    Args:
        encoding: (T, D).

    Returns:
        For each distance from 0 to T - 1 the mean, the least and the greatest, (T,) each.
    """
    products = encoding @ encoding.T
    diagonals = [np.diagonal(products, distance) for distance in range(len(encoding))]
    mean, least, greatest = (
        np.array([reduce(diagonal) for diagonal in diagonals]) for reduce in (np.mean, np.min, np.max)
    )
    return mean, least, greatest


def product_curve(mean: Numbers, least: Numbers, greatest: Numbers, *, theme: ThemeName) -> go.Figure:
    """The mean dot product over the distance, in a band from the least to the greatest.

    Args:
        mean: (T,), as ``products_by_distance`` returns it.
        least: (T,).
        greatest: (T,).
        theme: whose colours are used.
    """
    distance = np.arange(len(mean))
    color = ROLES[theme]["residual"]
    edge: dict[str, Any] = {"x": distance, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    figure = go.Figure()
    figure.add_scatter(y=least, **edge)
    figure.add_scatter(y=greatest, fill="tonexty", fillcolor=f"{color}40", **edge)
    figure.add_scatter(
        x=distance,
        y=mean,
        customdata=np.stack([least, greatest], axis=1),
        mode="lines+markers" if len(mean) <= 64 else "lines",
        line={"color": color, "width": 2.5},
        hovertemplate=say(
            "apart", distance="%{x}", mean="%{y:.4f}", least="%{customdata[0]:.4f}", greatest="%{customdata[1]:.4f}"
        ),
    )
    figure.update_xaxes(title=say("distance"))
    figure.update_yaxes(title=say("product"), zeroline=True)
    figure.update_layout(height=_HEIGHT, margin=MARGIN, showlegend=False, hovermode="closest")
    return figure
