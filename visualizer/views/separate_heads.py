"""The heads of a worked example computed apart, each by matrices of its own, beside the one fused matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st
import torch
from torch import Tensor

from model import MultiHeadAttention, record
from model.analysis.separate_heads import SeparateHeads
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.run import Run
from visualizer.server.mount import mount
from visualizer.stages.check_line import check_line
from visualizer.stages.checks import Check, short
from visualizer.stages.panels import head_panels, stage_panel, to_array

say = texts_of(__name__)

TOLERANCE = 1e-12
"""Largest difference between both ways, in float64."""

_PROJECTED = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "concat": "context"}
"""Stages in which the heads lie side by side, each with what a head alone calls its part."""

Parts = Mapping[str, tuple[Tensor, ...]]
"""By a stage's name its parts, head after head; the output is one part."""


def separate_heads(run: Run, path: str, *, batch: int) -> None:
    """Draw both ways to the stage at ``path``, where it is of an example with more than one head."""
    module, _, name = path.rpartition(".")
    attention = attention_with_heads(run, module)
    found = apart(run, module) if attention is not None else {}
    if attention is None or name not in found:
        return
    st.markdown(say("title", n_heads=attention.n_heads))
    st.markdown(check_line(same_both_ways(run, module, found)))
    st.caption(
        say(
            "sizes",
            d_model=attention.w_q.in_features,
            width=attention.head_dim,
            together=attention.w_q.out_features,
        )
    )
    mount(tensor_grid(both_ways(run, path, found[name], batch=batch), key="separate_heads", layout="row"))


def attention_with_heads(run: Run, module: str) -> MultiHeadAttention | None:
    """The attention of a worked example that has heads to take apart; None where there is none."""
    attention = run.model.get_submodule(module) if run.example is not None else None
    return attention if isinstance(attention, MultiHeadAttention) and attention.n_heads > 1 else None


def apart(run: Run, module: str) -> Parts:
    """Every stage of the attention at ``module`` as its heads give it when each runs by itself."""
    attention = attention_with_heads(run, module)
    if attention is None:
        raise ValueError(f"{module} has no heads that could be taken apart")
    inputs = (run.trace[f"{module}.{name}_input"].value for name in ("query", "key", "value"))
    mask = run.trace[f"{module}.mask"].value if f"{module}.mask" in run.trace else None
    separate = SeparateHeads(attention).eval()
    with torch.no_grad(), record(separate) as trace:
        separate(*inputs, mask)
    heads = [f"heads.{head}" for head in range(attention.n_heads)]
    per_head = {
        stage.name: tuple(trace[f"{head}.{stage.name}"].value for head in heads)
        for stage in trace.values()
        if stage.module_path == heads[0] and stage.name != "mask"  # which is given, and no head's own
    }
    joined = {name: tuple(value[:, 0] for value in per_head[part]) for name, part in _PROJECTED.items()}
    return joined | per_head | {"output": (trace["output"].value,)}


def same_both_ways(run: Run, module: str, found: Parts) -> Check:
    """Check that the heads apart, concatenated, give every stage of the fused attention."""
    differences = [
        _difference(torch.cat(parts, 1 if run.n_heads(path) else -1), run.trace[path].value)
        for path, parts in ((f"{module}.{name}", parts) for name, parts in found.items())
    ]
    largest = max(differences)
    found_same = say("same", n_stages=len(differences), difference=short(largest))
    return Check(found_same, largest <= TOLERANCE)


def both_ways(run: Run, path: str, parts: Sequence[Tensor], *, batch: int) -> list[Panel]:
    """The parts of a stage, an equals sign, and the stage as the fused attention gives it."""
    name = run.trace[path].name
    whole = stage_panel(run, path, head=0, batch=batch)
    fused = list(head_panels(run, path, batch=batch)) or [whole]
    if name == "output":
        before = [replace(whole, name="apart", title=say("concatenated"), array=to_array(parts[0][batch]))]
    else:
        before = [_part(fused[head % len(fused)], part[batch], head) for head, part in enumerate(parts)]
    after = [replace(panel, name="fused", subtitle="") for panel in fused]
    return [*before, replace(after[0], operator="="), *after[1:]]


def _part(fused: Panel, part: Tensor, head: int) -> Panel:
    """Return what one head alone gives, drawn like its share of the fused attention."""
    array = to_array(part.reshape(part.shape[-2:]))
    n_columns = array.shape[1]
    columns = fused.columns
    if len(columns.labels) != n_columns:  # the head's own columns
        columns = Axis(columns.name, tuple(str(column) for column in range(n_columns)))
    title = say("alone", head=head)
    return replace(
        fused, name="apart", title=title, subtitle="", array=array, columns=columns, operator="|" if head else ""
    )


def _difference(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().masked_fill(a == b, 0.0).max().item()  # equal infinities do not differ
