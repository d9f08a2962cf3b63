"""The measures of all heads as a picture, in which a head is chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from model.analysis.metrics import METRICS
from model.texts import texts_of
from visualizer.runs.paths import attention_modules, layer_of, without_layer
from visualizer.runs.run import Run
from visualizer.stages.derivations import Cell
from visualizer.state import state
from visualizer.state.theme import theme
from visualizer.views.head_measures import measure_heads

say = texts_of(__name__)

if TYPE_CHECKING:
    from visualizer.figures.measure_map import Measured


def draw(run: Run, cell: Cell) -> None:
    """Draw the measures of all heads of an attention in all layers."""
    from visualizer.figures.looks import config  # figures bring Plotly, which nothing else waits for
    from visualizer.figures.measure_map import N_COLUMNS, measure_map

    module = cell.path.rpartition(".")[0]
    same = [other for other in attention_modules(run.trace) if without_layer(other) == without_layer(module)]
    found = measured(run, same)
    names = [run.head_label(head) for head in range(found[0].values.shape[1])]
    st.caption(say("darker") if theme() == "light" else say("brighter"))
    n_left = -(-len(found) // (2 * N_COLUMNS)) * N_COLUMNS
    halves = [half for half in (found[:n_left], found[n_left:]) if half]
    for index, (column, half) in enumerate(zip(st.columns(len(halves), gap="medium"), halves, strict=True)):
        key = f"chart_measures_{index}"
        figure = measure_map(half, names, layer=layer_of(module), head=cell.head, theme=theme())
        with column:
            st.plotly_chart(
                figure,
                key=key,
                config=config("measures"),
                on_select=state.on_change(key, _choose),
                selection_mode="points",
                alt=say("alt", measures=", ".join(measure.title for measure in half)),
            )


def measured(run: Run, modules: list[str]) -> list[Measured]:
    """Those measures of the heads of some attentions that say something of any of them."""
    from visualizer.figures.measure_map import Measured

    heads = measure_heads(run, modules)
    n_heads = 1 + max(one.head for one in heads)
    found = []
    for name, metric in METRICS.items():
        values = np.array([one.values[name] for one in heads]).reshape(-1, n_heads)
        if np.isfinite(values).any():
            found.append(Measured(metric.title, values))
    return found


def _choose(event: Any) -> None:  # noqa: ANN401 - Streamlit's description of a selection
    """Choose the head whose square was clicked; whatever else a browser sends does nothing."""
    for point in event.selection.points:
        place = point.get("customdata")
        if isinstance(place, list) and len(place) == 2 and all(_is_place(number) for number in place):
            state.select(layer=int(place[0]), head=int(place[1]))
            return


def _is_place(number: object) -> bool:
    return isinstance(number, int | float) and math.isfinite(number) and 0 <= number < 64
