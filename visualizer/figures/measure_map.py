"""The measures of all heads as squares, layer by head: they can be clicked, as cells of a heatmap cannot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from model.texts import texts_of
from visualizer.colors import N_STEPS, ROLES, SEQUENTIAL, ThemeName, contrast
from visualizer.safe_text import plotly_safe

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]

N_COLUMNS = 2
_WIDTH = 150
_SMALLEST, _LARGEST = 7, 34
_LEAST_WITH_TEXT = 30
_BETWEEN = 84  # pixels between two rows of panels: the axis of the upper and the title of the lower


@dataclass(frozen=True, eq=False)
class Measured:
    """One measure of all heads.

    Attributes:
        title: what is measured.
        values: (L, H); NaN where it does not apply.
    """

    title: str
    values: Numbers


def measure_map(
    measures: Sequence[Measured], names: Sequence[str], *, layer: int, head: int, theme: ThemeName
) -> go.Figure:
    """One panel for each measure, in two columns; each square carries its layer and head as ``customdata``.

    Args:
        measures: at least one.
        names: one for each head.
        layer: that of the head to mark.
        head: the head to mark.
        theme: whose colours are used.
    """
    n_layers, n_heads = measures[0].values.shape
    side = min(max(_WIDTH // n_heads, _SMALLEST), _LARGEST)
    n_rows = -(-len(measures) // N_COLUMNS)
    panel = n_layers * (side + 8)
    inside = n_rows * panel + (n_rows - 1) * _BETWEEN
    figure = make_subplots(
        rows=n_rows,
        cols=N_COLUMNS,
        subplot_titles=[plotly_safe(measure.title) for measure in measures],
        vertical_spacing=_BETWEEN / inside,
        horizontal_spacing=0.12,
    )
    for index, measure in enumerate(measures):
        place = {"row": index // N_COLUMNS + 1, "col": index % N_COLUMNS + 1}
        figure.add_trace(_mark(layer, head, side, theme), **place)
        figure.add_trace(_squares(measure, names, side, theme), **place)
    plain = {"title_standoff": 6, "zeroline": False, "showgrid": False}
    figure.update_xaxes(title=say("head"), range=[-0.6, n_heads - 0.4], tickvals=_ticks(n_heads), **plain)
    figure.update_yaxes(title=say("layer"), range=[n_layers - 0.4, -0.6], tickvals=_ticks(n_layers), **plain)
    figure.update_annotations(font_size=12)
    margin = {"l": 0, "r": 0, "t": 60, "b": 50}
    figure.update_layout(height=inside + margin["t"] + margin["b"], margin=margin, showlegend=False)
    return figure


def _squares(measure: Measured, names: Sequence[str], side: int, theme: ThemeName) -> go.Scatter:
    n_layers, n_heads = measure.values.shape
    places = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    values = [float(measure.values[place]) for place in places]
    top = max([1.0, *(value for value in values if math.isfinite(value))])
    scale = SEQUENTIAL[theme]
    colors = [_color(value / top, scale) for value in values]
    written = [_number(value, 2) if side >= _LEAST_WITH_TEXT else "" for value in values]
    title = plotly_safe(measure.title)
    return go.Scatter(
        x=[head for _, head in places],
        y=[layer for layer, _ in places],
        customdata=[list(place) for place in places],
        hovertext=[
            say("place", layer=layer, head=plotly_safe(names[head]), measure=title, value=_number(value, 3))
            for (layer, head), value in zip(places, values, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        mode="markers+text",
        text=written,
        textfont={"size": 10, "color": [_ink(color) for color in colors]},
        marker={
            "symbol": "square",
            "size": side,
            "color": colors,
            "line": {"width": 1, "color": ROLES[theme]["residual"]},
        },
        unselected={"marker": {"opacity": 1}},
    )


def _ticks(n_places: int) -> list[int]:
    return list(range(0, n_places, 1 if n_places <= 8 else 3))


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def _mark(layer: int, head: int, side: int, theme: ThemeName) -> go.Scatter:
    ring = {"symbol": "square-open", "size": side + 7, "color": ROLES[theme]["neutral"], "line": {"width": 3}}
    return go.Scatter(x=[head], y=[layer], mode="markers", marker=ring, hoverinfo="skip")


def _color(share: float, scale: Sequence[str]) -> str:
    return "rgba(0, 0, 0, 0)" if math.isnan(share) else scale[int(min(max(share, 0.0), 1.0) * (N_STEPS - 1))]


def _ink(color: str) -> str:
    """Black or white, whichever reads better on a colour; grey where there is none."""
    if not color.startswith("#"):
        return "#808080"
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, color))
