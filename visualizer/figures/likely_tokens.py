"""The most likely tokens of one position, as bars."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from visualizer.safe_text import plotly_safe
from visualizer.shares import percent


def likely_tokens(tokens: Sequence[str], probabilities: Sequence[float], *, color: str) -> go.Figure:
    """Horizontal bars, the most likely token on top.

    Args:
        tokens: labels, most likely first.
        probabilities: one per token, from 0 to 1.
        color: of the bars, as CSS writes it.
    """
    places = list(range(len(tokens)))
    bars = go.Bar(
        x=list(probabilities),
        y=places,
        orientation="h",
        marker_color=color,
        text=[percent(probability, 1) for probability in probabilities],
        textposition="auto",
        hovertemplate="%{text}<extra></extra>",
    )
    figure = go.Figure(bars)
    # Places with tick texts instead of a category axis: equal labels would be merged there.
    figure.update_yaxes(tickvals=places, ticktext=[plotly_safe(token) for token in tokens], autorange="reversed")
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    figure.update_layout(height=88 + 28 * len(places), margin={"l": 0, "r": 0, "t": 36, "b": 0}, bargap=0.25)
    return figure
