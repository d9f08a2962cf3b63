"""The part of a large mask that is drawn, and can be painted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from torch import Tensor

from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.server.mount import mount
from visualizer.settings.fields import MAX_TOKENS
from visualizer.shares import part_of
from visualizer.state import widgets
from visualizer.views.lab.case import Case

say = texts_of(__name__)
LARGEST = MAX_TOKENS
"""The most queries or keys that are drawn at once."""


@dataclass(frozen=True, eq=False)
class Crop:
    """A part of a mask.

    Attributes:
        cells: (queries, keys) bool, True = may attend.
        query: the first query of the part.
        key: the first key of the part.
    """

    cells: Tensor
    query: int
    key: int

    def draw(self, case: Case, marked: Tensor | None) -> None:
        """Draw its cells with the tokens of the text, where it has as many, else with their numbers.

        Args:
            case: whose tokens these are.
            marked: the cells of the whole mask to outline, (Tq, Tk); None for none.
        """
        sizes, firsts = self.cells.shape, (self.query, self.key)
        rows, columns = (
            _axis(case, name, size, first)
            for name, size, first in zip(("query", "key"), sizes, firsts, strict=True)
        )
        n_queries, n_keys = sizes
        if marked is not None:
            marked = marked[self.query : self.query + n_queries, self.key : self.key + n_keys]
        panel = Panel(
            name="loaded",
            title=say("title"),
            array=self.cells.float().numpy(),
            rows=rows,
            columns=columns,
            role="weights",
            bounds=(0.0, 1.0),
            blocked=(~self.cells).numpy().astype(np.uint8),
            blocked_by=(say("blocked_by"),),
            marked=None if marked is None else marked.numpy(),
        )
        mount(tensor_grid([panel], key="loaded_mask"))


def crop_of(case: Case, allowed: Tensor) -> Crop:
    """The part of a mask, (Tq, Tk), that is drawn; asks from where, and says so, where it is not all of it."""
    n_queries, n_keys = allowed.shape
    if max(n_queries, n_keys) <= LARGEST:
        return Crop(allowed, 0, 0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if n_queries > LARGEST:
            widgets.number("crop_query", step=LARGEST // 2, width=140)
        if n_keys > LARGEST:
            widgets.number("crop_key", step=LARGEST // 2, width=140)
    query = min(case.selection.lab.crop_query, max(0, n_queries - LARGEST))
    key = min(case.selection.lab.crop_key, max(0, n_keys - LARGEST))
    queries, keys = slice(query, min(query + LARGEST, n_queries)), slice(key, min(key + LARGEST, n_keys))
    st.caption(say("drawn", queries=part_of(n_queries, queries), keys=part_of(n_keys, keys)))
    return Crop(allowed[queries, keys], query, key)


def _axis(case: Case, name: str, size: int, first: int) -> Axis:
    axis = case.axes[name == "key"]
    if size == len(axis.labels) and first == 0:
        return axis
    return Axis(name, tuple(str(index) for index in range(first, first + size)), None)
