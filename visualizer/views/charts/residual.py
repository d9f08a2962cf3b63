"""The residual stream: how long its vectors grow, and what each sub-layer adds to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from model.texts import texts_of
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.stages.derivations import Cell
from visualizer.stages.layer import sublayer_output
from visualizer.stages.panels import is_text, matrix
from visualizer.stages.registry import stage_of
from visualizer.state.theme import theme

say = texts_of(__name__)

if TYPE_CHECKING:
    from visualizer.figures.residual_stream import Addition


def sums_beside(run: Run, path: str) -> list[str]:
    """The sums of the residual stream that the stage at ``path`` belongs to, in the order computed."""
    stack = path.partition(".")[0]
    sums = [other for other in run.trace if run.trace[other].name.startswith("residual")]
    beside = [other for other in sums if other.partition(".")[0] == stack]
    return beside or [other for other in sums if other.startswith("decoder.")] or sums  # logits follow the decoder


def draw(run: Run, cell: Cell) -> None:
    """Draw the residual stream of the stack that the stage belongs to."""
    from visualizer.figures.residual_stream import residual_stream
    from visualizer.figures.styling import config  # figures bring Plotly, which nothing else waits for

    paths = sums_beside(run, cell.path)
    tokens = run.axes(paths[0])[0]
    counted = is_text(run, paths[0])
    selected = min(cell.row, len(tokens.labels) - 1)
    found = additions(run, paths, cell.batch)
    figure = residual_stream(found, counted, selected=selected, token=tokens.labels[selected], theme=theme())
    st.caption(
        say("stream", n_tokens=int(counted.sum()), token=selected, label=markdown_safe(tokens.labels[selected]))
    )
    alt = say("alt", n_sums=len(paths))
    st.plotly_chart(figure, key="chart_residual", config=config("residual-stream"), alt=alt)


def additions(run: Run, paths: list[str], batch: int) -> list[Addition]:
    """Return what was added at each of some sums, in one batch item; dropout on the way is in it."""
    from visualizer.figures.residual_stream import Addition

    found = []
    for path in paths:
        stage = stage_of(run, path)
        stream, output = stage.inputs[0], sublayer_output(stage)
        part = output.module.rpartition(".")[2].replace("_", "-")
        found.append(
            Addition(
                title=f"{layer_of(path)} {part}" if "layers." in path else part,
                kind="attention" if output.has_beside("scores") else "feed_forward",
                before=matrix(stream.value, head=0, batch=batch),
                after=matrix(stage.value, head=0, batch=batch),
            )
        )
    return found
