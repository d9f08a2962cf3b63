"""One query's row of an attention: its scores and the weights that softmax makes of them, as bars over the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from model.texts import texts_of
from visualizer.colors import HATCH, ROLES, ThemeName
from visualizer.figures.styling import MARGIN, hover_names, token_ticks

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]


def score_bars(
    scores: Numbers,
    weights: Numbers,
    labels: Sequence[str],
    *,
    blocked_by: Sequence[str],
    score_name: str,
    selected: int,
    theme: ThemeName,
) -> go.Figure:
    """The scores above, the weights below. The scores of blocked keys, which do not count, are hatched.

    Args:
        scores: (Tk,), before the mask.
        weights: (Tk,).
        labels: one for each key.
        blocked_by: what blocks each key; empty where it may be attended to.
        score_name: what the scores are called.
        selected: the key to mark.
        theme: whose colours are used.
    """
    is_blocked = np.array([bool(reason) for reason in blocked_by])
    names = hover_names(labels)
    said = [say("blocked", masks=reason) if reason else say("open") for reason in blocked_by]
    shared: dict[str, Any] = {
        "x": np.arange(len(scores)),
        "customdata": np.array([names, said], dtype=object).T.tolist(),
    }
    key, why = "%{customdata[0]}", "%{customdata[1]}"
    score_hover = say("score_of_key", key=key, score_name=score_name, score="%{y:.4g}", why=why)
    colors = ROLES[theme]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    open_bars = go.Bar(
        y=np.where(is_blocked, np.nan, scores), marker_color=colors["neutral"], hovertemplate=score_hover, **shared
    )
    blocked_bars = go.Bar(
        y=np.where(is_blocked, scores, np.nan),
        marker={"color": "rgba(0, 0, 0, 0)", "pattern": {"shape": "/", "fgcolor": HATCH[theme], "size": 6}},
        marker_line={"color": HATCH[theme], "width": 1},
        hovertemplate=score_hover,
        **shared,
    )
    weight_bars = go.Bar(
        y=weights,
        marker_color=colors["weights"],
        hovertemplate=say("weight_of_key", key=key, weight="%{y:.4f}", why=why),
        **shared,
    )
    figure.add_traces([open_bars, blocked_bars, weight_bars], rows=[1, 1, 2], cols=[1, 1, 1])
    figure.add_vrect(selected - 0.5, selected + 0.5, fillcolor=colors["key"], opacity=0.14, line_width=0)
    figure.update_xaxes(range=[-0.6, len(scores) - 0.4], **token_ticks(labels))
    figure.update_xaxes(title=say("key"), row=2, col=1)
    figure.update_yaxes(title=score_name, row=1, col=1)
    figure.update_yaxes(title=say("weight"), rangemode="tozero", row=2, col=1)
    figure.update_layout(
        height=420,
        margin=MARGIN,
        barmode="overlay",
        bargap=0.2 if len(scores) <= 64 else 0,
        showlegend=False,
        hovermode="closest",
    )
    return figure
