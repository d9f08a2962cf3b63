"""The measures of all heads as maps, in which a head is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.metrics import METRICS
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.events import whole_number_in
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.paths import attention_modules, without_layer
from visualizer.runs.run import Run
from visualizer.server.mount import mount
from visualizer.stages.derivations import Cell
from visualizer.stages.head_measures import measure_heads
from visualizer.state import state
from visualizer.state.theme import theme

say = texts_of(__name__)


def draw(run: Run, cell: Cell) -> None:
    """Draw the measures of all heads of an attention in all layers."""
    module = cell.path.rpartition(".")[0]
    same = [other for other in attention_modules(run.trace) if without_layer(other) == without_layer(module)]
    maps = [_map(title, values, same.index(module), cell.head) for title, values in measured(run, same).items()]
    st.caption(say("darker") if theme() == "light" else say("brighter"))

    def select(event: object) -> None:
        row = whole_number_in(event, "row")
        if row is not None and state.index_in(event, "index") < len(maps):
            state.show_head(row, state.index_in(event, "column"))

    mount(tensor_grid(maps, layout="wrap", key="chart_measures"), select=select)


def measured(run: Run, modules: list[str]) -> dict[str, NDArray[np.floating[Any]]]:
    """The measures that say something of any head of some attentions, (L, H), by their titles."""
    heads = measure_heads(run, modules)
    found = {
        metric.title: np.array([one.values[name] for one in heads]).reshape(len(modules), -1)
        for name, metric in METRICS.items()
    }
    return {title: values for title, values in found.items() if np.isfinite(values).any()}


def _map(title: str, values: NDArray[np.floating[Any]], layer: int, head: int) -> Panel:
    """A matrix of layers by heads, (L, H), NaN where the measure does not apply; the chosen head is outlined."""
    layers, heads = (tuple(map(str, range(size))) for size in values.shape)
    marked = np.zeros(values.shape, dtype=np.bool_)
    marked[layer, head] = True
    axes = Axis("layer", layers), Axis("head", heads)
    most = max(1.0, float(np.nanmax(values)))  # a small share of weight stays pale
    return Panel(title, title, values, *axes, bounds=(0.0, most), marked=marked, hint=say("click"))
