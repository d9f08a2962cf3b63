"""The bias that a model adds to the scores of an attention beside the mask, such as distances in T5 or ALiBi."""

from __future__ import annotations

import streamlit as st

from model.texts import texts_of
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.server.mount import mount
from visualizer.stages.derivations import Cell
from visualizer.stages.panels import matrix

say = texts_of(__name__)


def draw(run: Run, cell: Cell) -> None:
    """Draw it in the head that is looked at."""
    module = cell.path.rpartition(".")[0]
    bias = run.attentions[module].bias
    if bias is None:
        return
    shape = run.trace[f"{module}.weights"].value.shape
    rows, columns = run.axes(f"{module}.weights")
    panel = Panel(
        name="bias",
        title=say("title", layer=layer_of(module), head=cell.head),
        subtitle="",
        array=matrix(bias.expand(*bias.shape[:-2], *shape[2:]).expand(shape), head=cell.head, batch=cell.batch),
        rows=rows,
        columns=columns,
        palette="diverging",
    )
    st.caption(say("added"))
    mount(tensor_grid((panel,), key="chart_bias"))
