"""The course of a training over its steps: the loss, and the share of right answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from model.texts import texts_of
from visualizer.safe_text import plotly_safe

say = texts_of(__name__)

_HEIGHT = 250
_HIGHEST_SHARE = 1.05  # room for a line at 100%
_GREY = "#858b97"

MOST_SAID = 12
"""The most points of a curve that are put into words."""


@dataclass(frozen=True)
class Curve:
    """One training.

    Attributes:
        name: in the legend; empty for the only one, which needs none.
        color: as CSS writes it.
        dash: of the line, as Plotly names it.
        steps: after which steps there is a value.
        values: one for each of ``steps``.
    """

    name: str
    color: str
    dash: str
    steps: Sequence[int]
    values: Sequence[float]


def loss_curve(curves: Sequence[Curve], *, n_steps: int, guessing: float, moment: int | None) -> go.Figure:
    """The loss over the steps.

    Args:
        curves: one for each training, in nats per token.
        n_steps: how many steps there will be: where the axis ends.
        guessing: the loss of a model for which all tokens are equally likely.
        moment: the step to mark; None for none.
    """
    figure = _over_steps(curves, n_steps, moment, mode="lines", number="%{y:.3f}")
    figure.add_hline(
        guessing,
        line={"dash": "dot", "width": 1, "color": _GREY},
        annotation={"text": say("guessing", loss=guessing), "font_size": 11, "yanchor": "bottom"},
    )
    figure.update_yaxes(title=say("loss"), rangemode="tozero")
    return figure


def match_curve(curves: Sequence[Curve], *, n_steps: int, moment: int | None) -> go.Figure:
    """The share of held-out texts that are answered without a mistake, from 0 to 1, over the steps.

    Args:
        curves: one for each training.
        n_steps: how many steps there will be: where the axis ends.
        moment: the step to mark; None for none.
    """
    figure = _over_steps(curves, n_steps, moment, mode="lines+markers", number="%{y:.1%}")
    figure.update_yaxes(title=say("held_out"), range=[0, _HIGHEST_SHARE], tickformat=".0%", tickvals=[0, 0.5, 1])
    return figure


def in_words(what: str, curves: Sequence[Curve], number: str) -> str:
    """The curves for who does not see them: one line each, with up to ``MOST_SAID`` points from first to last.

    Args:
        what: what the curves are of.
        curves: as they are drawn.
        number: how a value is written, such as ``.3f``.
    """
    lines = []
    for curve in curves:
        last = len(curve.steps) - 1
        n_said = min(len(curve.steps), MOST_SAID)
        places = sorted({round(i * last / max(1, n_said - 1)) for i in range(n_said)})
        points = ", ".join(say("point", step=curve.steps[i], value=format(curve.values[i], number)) for i in places)
        lines.append(f"{what}{f', {curve.name}' if curve.name else ''}: {points}")
    return ". ".join(lines)


def _over_steps(curves: Sequence[Curve], n_steps: int, moment: int | None, *, mode: str, number: str) -> go.Figure:
    figure = go.Figure()
    for curve in curves:
        figure.add_scatter(
            x=list(curve.steps),
            y=list(curve.values),
            mode=mode,
            line={"color": curve.color, "dash": curve.dash, "width": 2.5},
            marker={"size": 5},
            name=plotly_safe(curve.name),
            hovertemplate=f"{number}<extra>{plotly_safe(curve.name)}</extra>",
        )
    if moment is not None:
        figure.add_vline(moment, line={"width": 1.5, "color": _GREY})
    figure.update_xaxes(title=say("step"), title_standoff=4, range=[0, n_steps], showgrid=False)
    has_names = any(curve.name for curve in curves)
    figure.update_layout(
        height=_HEIGHT,
        margin={"l": 0, "r": 8, "t": 62 if has_names else 36, "b": 0},
        showlegend=has_names,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        hovermode="x",
    )
    return figure
