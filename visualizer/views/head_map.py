"""Maps of heads, layer by head: one matrix for each measure, in which the chosen head is outlined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel
from visualizer.state import state

say = texts_of(__name__)


def head_maps(measures: Mapping[str, NDArray[np.floating[Any]]], layer: int, head: int) -> list[Panel]:
    """One panel for each measure.

    Args:
        measures: the title of each, and its numbers, (L, H); NaN where it does not apply.
        layer: the row of the chosen head.
        head: its column.
    """
    return [_map(title, values, layer, head) for title, values in measures.items()]


def clicked(choose: Callable[[int, int], None], n_maps: int) -> Callable[[object], None]:
    """The listener to clicks that calls ``choose(layer, head)``; what is no cell of a map does nothing."""

    def select(event: object) -> None:
        if state.has_index(event, "row") and state.index_in(event, "index") < n_maps:
            choose(state.index_in(event, "row"), state.index_in(event, "column"))

    return select


def _map(title: str, values: NDArray[np.floating[Any]], layer: int, head: int) -> Panel:
    layers, heads = (tuple(map(str, range(size))) for size in values.shape)
    marked = np.zeros(values.shape, dtype=np.bool_)
    marked[layer, head] = True
    axes = Axis("layer", layers), Axis("head", heads)
    most = max(1.0, float(np.nanmax(values)))  # a small share of weight stays pale
    return Panel(title, title, values, *axes, bounds=(0.0, most), marked=marked, hint=say("click"))
