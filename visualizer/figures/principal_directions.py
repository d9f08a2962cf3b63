"""Queries and keys of one head in the two directions in which they differ most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.colors import ROLES, ThemeName
from visualizer.figures.styling import LEGEND_BELOW, MARGIN, hover_names, shortened

say = texts_of(__name__)

Numbers = NDArray[np.floating[Any]]

MOST_LABELS = 24
"""Up to how many tokens stand beside their points; else their names come by pointing."""

_PIXELS = np.array([700.0, 360.0])
_LETTER, _LINE = 7, 13
"""The size of the map at least, and of a letter in it, in pixels."""


@dataclass(frozen=True, eq=False)
class Directions:
    """Vectors in their first two principal directions.

    Attributes:
        queries: (Tq, 2).
        keys: (Tk, 2).
        origin: (2,), where the vector of zeros lies.
        shares: (2,), the share of all variance in each direction; zero in a direction that there is not.
    """

    queries: Numbers
    keys: Numbers
    origin: Numbers
    shares: Numbers


def principal_directions(queries: Numbers, keys: Numbers) -> Directions:
    """The principal components (Pearson 1901) of queries and keys together, by singular value decomposition.

    Args:
        queries: (Tq, Dh).
        keys: (Tk, Dh).
    """
    together = np.concatenate([queries, keys]).astype(np.float64)
    mean = together.mean(axis=0)
    centred = together - mean
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    variances = sizes**2
    shares = np.zeros(2)
    n_found = min(2, len(sizes))
    if variances.sum() > 0:
        shares[:n_found] = variances[:n_found] / variances.sum()
    places = np.zeros((len(together) + 1, 2))
    places[:, :n_found] = np.concatenate([centred, -mean[None]]) @ directions[:n_found].T
    return Directions(places[: len(queries)], places[len(queries) : -1], places[-1], shares)


def direction_map(
    found: Directions,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    weights: Numbers,
    query: int,
    theme: ThemeName,
) -> go.Figure:
    """Queries as circles and keys as diamonds; the more weight the selected query gives a key, the larger it is.

    Args:
        found: as ``principal_directions`` returns it.
        query_labels: one for each query.
        key_labels: one for each key.
        weights: (Tk,), those of the selected query.
        query: the selected query, ringed.
        theme: whose colours are used.
    """
    colors = ROLES[theme]
    figure = go.Figure()
    largest = float(weights.max()) or 1.0
    per_pixel = max(np.ptp(np.concatenate([found.queries, found.keys]), axis=0) / _PIXELS) or 1.0
    for name, places, labels, symbol, sizes, place_of_text, note in (
        ("key", found.keys, key_labels, "diamond", 7 + 15 * weights / largest, "bottom center", weights),
        ("query", found.queries, query_labels, "circle", np.full(len(query_labels), 9.0), "top center", None),
    ):
        at, weight = "%{customdata[0]}", "%{customdata[1]:.4f}"
        figure.add_scatter(
            x=places[:, 0],
            y=places[:, 1],
            customdata=[
                [label, 0.0 if note is None else float(note[i])] for i, label in enumerate(hover_names(labels))
            ],
            mode="markers+text" if len(labels) <= MOST_LABELS else "markers",
            text=_apart(places / per_pixel, [shortened(label) for label in labels]),
            textposition=place_of_text,
            textfont={"size": 11, "color": colors["query" if name == "query" else "key"]},
            marker={"color": colors["query" if name == "query" else "key"], "symbol": symbol, "size": sizes},
            opacity=0.85,
            name=say("queries") if name == "query" else say("keys"),
            hovertemplate=say("query_at", query=at) if note is None else say("key_at", key=at, weight=weight),
        )
    figure.add_scatter(
        x=[found.queries[query, 0]],
        y=[found.queries[query, 1]],
        mode="markers",
        marker={"color": colors["query"], "symbol": "circle-open", "size": 20, "line": {"width": 2.5}},
        hoverinfo="skip",
        name=say("selected_query"),
    )
    figure.add_scatter(
        x=found.origin[:1],
        y=found.origin[1:],
        mode="markers",
        marker={"color": colors["neutral"], "symbol": "cross-thin-open", "size": 14, "line": {"width": 2}},
        hovertemplate=say("zeros"),
        name=say("zero"),
    )
    first, second = found.shares
    figure.update_xaxes(title=say("first", share=first), zeroline=False)
    figure.update_yaxes(title=say("second", share=second), zeroline=False, scaleanchor="x", scaleratio=1)
    figure.update_layout(height=520, margin=MARGIN, legend=LEGEND_BELOW | {"y": -0.16}, hovermode="closest")
    return figure


def _apart(places: Numbers, labels: Sequence[str]) -> list[str]:
    """The labels, with "" in place of those that would lie on an earlier one: a hover says these.

    Args:
        places: (n, 2), in pixels.
        labels: one for each place.
    """
    shown: list[int] = []
    for i, label in enumerate(labels):
        gaps = abs(places[shown] - places[i])
        if (gaps >= (_LETTER * len(label), _LINE)).any(axis=1).all():
            shown.append(i)
    return [label if i in shown else "" for i, label in enumerate(labels)]
