"""The lengths of the residual stream's vectors after every sum, and what each sub-layer put in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from model.texts import texts_of
from visualizer.colors import ROLES, Role, ThemeName
from visualizer.figures.styling import LEGEND_BELOW, MARGIN
from visualizer.safe_text import plotly_safe

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]
SubLayer = Literal["attention", "feed_forward"]

_ROLE_OF: dict[SubLayer, Role] = {"attention": "weights", "feed_forward": "feed_forward"}
_PATTERN_OF: dict[SubLayer, str] = {"attention": "", "feed_forward": "."}


@dataclass(frozen=True, eq=False)
class Addition:
    """The effect of one sub-layer on the residual stream.

    Attributes:
        title: such as ``0 self-attention``.
        kind: which colour it has.
        before: (T, D), the stream as it comes.
        after: (T, D), the sum of the stream and the sub-layer's output.
    """

    title: str
    kind: SubLayer
    before: Numbers
    after: Numbers


def share_of_sum(before: Numbers, after: Numbers) -> Numbers:
    """Return the added vector's share of each sum's squared length: its projection on the sum, (T,).

    With r = x + y, (y·r) / (r·r); the stream's own share (x·r) / (r·r) is the rest to one. Below zero the sub-layer
    works against what comes out, above one the stream does. NaN where the sum is zero.
    """
    added = (after - before).astype(np.float64)
    squared = (after.astype(np.float64) ** 2).sum(-1)
    return np.asarray((added * after).sum(-1) / np.where(squared > 0, squared, np.nan))


def residual_stream(
    additions: Sequence[Addition], counted: NDArray[np.bool_], *, selected: int, token: str, theme: ThemeName
) -> go.Figure:
    """The stream's length above, each sub-layer's share of the sum below: means over tokens, and one token.

    Args:
        additions: in the order computed, at least one.
        counted: (T,), the tokens of which the mean is taken, at least one.
        selected: a token.
        token: what it is called.
        theme: whose colours are used.
    """
    places = np.arange(len(additions) + 1)
    lengths = np.stack([_lengths(additions[0].before), *(_lengths(addition.after) for addition in additions)])
    entering = np.stack([_lengths(addition.before) for addition in additions])
    shares = np.stack([share_of_sum(addition.before, addition.after) for addition in additions])
    colors = ROLES[theme]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    one = plotly_safe(f"{selected} {token}")
    stream = {"color": colors["residual"], "width": 3}
    figure.add_scatter(
        x=places,
        y=lengths[:, counted].mean(1),
        mode="lines+markers",
        line=stream,
        name=say("mean_length"),
        hovertemplate=say("mean_length_at", length="%{y:.3f}"),
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=places,
        y=lengths[:, selected],
        mode="lines+markers",
        line={"color": colors["neutral"], "width": 1.5, "dash": "dot"},
        name=say("length_of_token", token=one),
        hovertemplate=say("length_of_token_at", length="%{y:.3f}", token=one),
        row=1,
        col=1,
    )
    if not np.allclose(entering[1:], lengths[1:-1]):  # layer norm stands between the sums: the stream is cut
        figure.add_scatter(
            x=places[1:] - 0.5,
            y=entering[:, counted].mean(1),
            mode="markers",
            marker={"color": colors["residual"], "symbol": "diamond-open", "size": 9},
            name=say("mean_length_before"),
            hovertemplate=say("mean_length_before_at", length="%{y:.3f}"),
            row=1,
            col=1,
        )
    for index, addition in enumerate(additions):
        figure.add_bar(
            x=[index + 1],
            y=[np.nanmean(shares[index, counted])],
            marker={
                "color": colors[_ROLE_OF[addition.kind]],
                "pattern": {"shape": _PATTERN_OF[addition.kind], "fillmode": "overlay", "size": 6},
            },
            name=addition.title,
            hovertemplate=say("mean_share_at", share="%{y:.1%}", part=addition.title),
            showlegend=False,
            row=2,
            col=1,
        )
    figure.add_scatter(
        x=places[1:],
        y=shares[:, selected],
        mode="markers",
        marker={"color": colors["neutral"], "symbol": "line-ew-open", "size": 22, "line": {"width": 2.5}},
        name=say("share_of_token", token=one),
        hovertemplate=say("share_of_token_at", share="%{y:.1%}", token=one),
        row=2,
        col=1,
    )
    titles = [say("enters"), *(addition.title for addition in additions)]
    figure.update_xaxes(range=[-0.6, len(titles) - 0.4], tickvals=places, ticktext=titles)
    figure.update_yaxes(title=say("length"), rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title=say("share"), tickformat=".0%", zeroline=True, row=2, col=1)
    figure.update_layout(height=520, margin=MARGIN, legend=LEGEND_BELOW | {"y": -0.3}, hovermode="closest")
    return figure


def _lengths(vectors: Numbers) -> Numbers:
    """(T, D) -> (T,), Euclidean."""
    return np.asarray(np.linalg.norm(vectors.astype(np.float64), axis=-1))
