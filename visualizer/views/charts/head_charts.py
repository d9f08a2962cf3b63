"""The behaviour of the heads of one attention: how far they look, and where their queries and keys lie."""

from __future__ import annotations

import numpy as np
import streamlit as st

from model.texts import listed, texts_of
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.stages.derivations import Cell
from visualizer.stages.panels import is_text, matrix, to_array
from visualizer.state.theme import theme
from visualizer.views.charts.row import name_of_head

say = texts_of(__name__)


def draw_distance(run: Run, cell: Cell) -> None:
    """Draw the weight of every head of the layer by distance."""
    from visualizer.figures.attention_distance import attention_distance, weight_by_distance
    from visualizer.figures.styling import config  # figures bring Plotly, which nothing else waits for

    module = cell.path.rpartition(".")[0]
    weights = to_array(run.trace[f"{module}.weights"].value[cell.batch])
    distances, means = weight_by_distance(weights, counted_queries(run, module, weights))
    if not np.isfinite(means).any():
        st.caption(say("no_key"))
        return
    names = [run.head_label(head, module) for head in range(len(weights))]
    figure = attention_distance(distances, means, names, selected=cell.head, theme=theme())
    lies = say("distance_in_layer", layer=layer_of(module)) if "layers." in module else say("distance")
    st.caption(f"{lies} {_one(means)}")
    alt = say("distance_alt", n_heads=len(names))
    st.plotly_chart(figure, key="chart_distance", config=config("distance"), alt=alt)


def counted_queries(run: Run, module: str, weights: np.ndarray) -> np.ndarray:
    """(H, Tq), the queries that are no padding and have a key left."""
    return np.asarray((weights > 0).any(-1) & is_text(run, f"{module}.weights"))


def draw_directions(run: Run, cell: Cell) -> None:
    """Draw queries and keys of the head in their first two principal directions."""
    from visualizer.figures.principal_directions import direction_map, principal_directions
    from visualizer.figures.styling import config

    module = cell.path.rpartition(".")[0]
    q, k, attention = (run.trace[f"{module}.{name}"].value for name in ("q", "k", "weights"))
    queries, keys, weights = (matrix(value, head=cell.head, batch=cell.batch) for value in (q, k, attention))
    rows, columns = run.axes(f"{module}.weights")
    query = min(cell.row, len(queries) - 1)
    found = principal_directions(queries, keys)
    figure = direction_map(found, rows.labels, columns.labels, weights=weights[query], query=query, theme=theme())
    st.caption(
        say(
            "directions",
            head=name_of_head(run, cell),
            share=found.shares.sum(),
            query=query,
            label=markdown_safe(rows.labels[query]),
        )
    )
    alt = say("directions_alt", n_queries=len(queries), n_keys=len(keys))
    st.plotly_chart(figure, key="chart_directions", config=config("directions"), alt=alt)


def _one(means: np.ndarray) -> str:
    """The heads with all weight at one distance, which can be read from the curves at once; "" for none."""
    steep = [head for head, curve in enumerate(means) if np.nanmax(np.nan_to_num(curve)) > 0.99]
    return say("at_one_distance", heads=listed(say("head", head=head) for head in steep)) if steep else ""
