"""The softmax of one row of scores at every temperature: how weight moves between the keys, and its entropy."""

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
from visualizer.colors import N_STEPS, ROLES, SEQUENTIAL, ThemeName
from visualizer.figures.styling import LEGEND_BELOW, MARGIN
from visualizer.safe_text import plotly_safe

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]

MOST_KEYS = 6
"""The most keys that have a curve of their own; all others share one."""

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_OCTAVES = 5
_PER_OCTAVE = 8


@dataclass(frozen=True, eq=False)
class Softmax:
    """The softmax of n scores at m temperatures.

    Attributes:
        temperatures: (m,), what the scores are divided by.
        weights: (m, n), each row summing to one.
        entropy: (m,), in bits.
    """

    temperatures: Numbers
    weights: Numbers
    entropy: Numbers


def softmax_at(scores: Numbers, temperatures: Numbers) -> Softmax:
    """Softmax and its entropy at every temperature.

    Args:
        scores: (n,), finite, n at least one.
        temperatures: (m,), above zero.
    """
    divided = (scores - scores.max())[None, :].astype(np.float64) / temperatures[:, None]
    weights = np.exp(divided)
    weights /= weights.sum(axis=1, keepdims=True)
    bits = -np.where(weights > 0, weights * np.log2(np.where(weights > 0, weights, 1)), 0).sum(axis=1)
    return Softmax(temperatures, weights, bits)


def temperatures_around(own: float) -> Numbers:
    """Five octaves below and above a temperature, which is the middle one."""
    steps = np.arange(-_OCTAVES * _PER_OCTAVE, _OCTAVES * _PER_OCTAVE + 1)
    return np.asarray(own * 2.0 ** (steps / _PER_OCTAVE))


def temperature_curves(scores: Numbers, names: Sequence[str], *, own: float, theme: ThemeName) -> go.Figure:
    """The weight of each key over the temperature, and below the entropy; the run's own temperature is a line.

    Args:
        scores: (n,), those of the keys that may be attended to, not yet divided by anything.
        names: one for each of these keys.
        own: what the run divides them by.
        theme: whose colours are used.
    """
    found = softmax_at(scores, temperatures_around(own))
    at_own = softmax_at(scores, np.array([own]))
    order = np.argsort(-scores, kind="stable")
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.6, 0.4])
    for rank, key in enumerate(order[:MOST_KEYS]):
        color = SEQUENTIAL[theme][int((0.95 - 0.5 * rank / MOST_KEYS) * (N_STEPS - 1))]
        line = {"color": color, "dash": _DASHES[rank], "width": 2.5}
        _add_curve(figure, 1, plotly_safe(names[key]), found.temperatures, found.weights[:, key], line, ".4f")
    if len(others := order[MOST_KEYS:]):
        line = {"color": ROLES[theme]["residual"], "dash": "solid", "width": 1.5}
        name = say("others", count=len(others))
        _add_curve(figure, 1, name, found.temperatures, found.weights[:, others].sum(axis=1), line, ".4f")
    line = {"color": ROLES[theme]["neutral"], "dash": "solid", "width": 2.5}
    _add_curve(figure, 2, say("entropy"), found.temperatures, found.entropy, line, ".3f", in_legend=False)
    highest = math.log2(len(scores))
    for row, top in ((1, 1.0), (2, highest or 1.0)):
        _add_own(figure, row, own, top, theme)
    figure.add_scatter(
        x=[own],
        y=at_own.entropy,
        mode="markers",
        marker={"color": ROLES[theme]["neutral"], "size": 10},
        hovertemplate=say("entropy_here", tau=own, bits="%{y:.3f}"),
        showlegend=False,
        row=2,
        col=1,
    )
    figure.add_hline(highest, line={"dash": "dot", "width": 1, "color": ROLES[theme]["residual"]}, row=2, col=1)
    figure.update_xaxes(type="log", dtick="D2")
    figure.update_xaxes(title=say("temperature"), row=2, col=1)
    figure.update_yaxes(title=say("weight"), range=[-0.02, 1.04], row=1, col=1)
    figure.update_yaxes(title=say("bits"), rangemode="tozero", row=2, col=1)
    figure.update_layout(height=480, margin=MARGIN, legend=LEGEND_BELOW, hovermode="closest")
    return figure


def _add_curve(
    figure: go.Figure,
    row: int,
    name: str,
    x: Numbers,
    y: Numbers,
    line: dict[str, Any],
    digits: str,
    *,
    in_legend: bool = True,
) -> None:
    hover = f"{name}<br>τ = %{{x:.3g}}: %{{y:{digits}}}<extra></extra>"
    curve = go.Scatter(x=x, y=y, mode="lines", name=name, line=line, hovertemplate=hover, showlegend=in_legend)
    figure.add_trace(curve, row=row, col=1)


def _add_own(figure: go.Figure, row: int, own: float, top: float, theme: ThemeName) -> None:
    """A line at the run's own temperature: a trace, since shapes and notes misplace themselves on log axes."""
    figure.add_scatter(
        x=[own, own],
        y=[0, top],
        mode="lines",
        name=say("this_run"),
        line={"color": ROLES[theme]["neutral"], "width": 1.5, "dash": "dot"},
        hovertemplate=say("here", tau=own),
        showlegend=row == 1,
        row=row,
        col=1,
    )
