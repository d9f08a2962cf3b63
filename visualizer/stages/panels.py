"""Stages and parameters of a run as panels to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from model.texts import texts_of
from visualizer.components.axis import Axis, SequenceName
from visualizer.components.tensor_grid.element import Panel
from visualizer.runs.run import Run, side_by_side
from visualizer.stages.entry import Numbers, StageEntry
from visualizer.stages.operands import Operand, used
from visualizer.stages.registry import entry_of, stage_of

say = texts_of(__name__)


def stage_panel(run: Run, path: str, *, head: int, batch: int, operator: str = "") -> Panel:
    """One stage, or one head of it."""
    stage, entry = run.trace[path], entry_of(run, path)
    rows, columns = run.axes(path)
    values = matrix(stage.value, head=head, batch=batch)
    n_heads = run.n_heads(path)
    return Panel(
        name=stage.name,
        title=entry.title if n_heads is None else say("head", title=entry.title, head=head),
        subtitle=f"{stage.name} {stage.shape_text}",
        array=values,
        rows=rows,
        columns=columns,
        role=entry.role,
        palette=_palette(entry),
        bounds=bounds(values, entry.numbers),
        operator=operator,
        **_blocking(run, path, batch, head),
    )


def head_panels(run: Run, path: str, *, batch: int) -> tuple[Panel, ...]:
    """Every head of a per-head stage, on one scale."""
    stage, entry = run.trace[path], entry_of(run, path)
    n_heads = run.n_heads(path) or 0
    every = stage.value[batch]
    shared = bounds(to_array(every), entry.numbers)
    rows, columns = run.axes(path)
    return tuple(
        Panel(
            name=stage.name,
            title=run.head_label(head, stage.module_path),
            array=to_array(every[head]),
            rows=rows,
            columns=columns,
            role=entry.role,
            palette=_palette(entry),
            bounds=shared,
            **_blocking(run, path, batch, head),
        )
        for head in range(n_heads)
    )


def part_panels(run: Run, path: str, *, batch: int) -> tuple[Panel, ...]:
    """The parts that lie side by side in a fused projection, each in its colour; none for any other stage."""
    stage, panels = stage_of(run, path), []
    for part, projection in enumerate(stage.entry.parts):
        panel = stage_panel(run, stage.beside(projection).path, head=0, batch=batch)
        first = part * len(panel.columns.labels)
        title = say("columns", title=panel.title, first=first, last=first + len(panel.columns.labels) - 1)
        panels.append(replace(panel, title=title, hint=say("go_to", stage=projection)))
    return tuple(panels)


def operand_panel(run: Run, operand: Operand, *, head: int, batch: int) -> Panel:
    """An input of a stage: another stage or a parameter, transposed where the computation transposes it."""
    if operand.is_parameter:
        return _parameter_panel(run, operand)
    panel = stage_panel(run, operand.source, head=head, batch=batch, operator=operand.operator)
    panel = replace(panel, hint=say("go_to", stage=run.trace[operand.source].name))
    return _transposed(panel) if operand.transposed else panel


def _transposed(panel: Panel) -> Panel:
    title = say("transposed", title=panel.title)
    return replace(panel, title=title, array=panel.array.T, rows=panel.columns, columns=panel.rows)


def matrix(value: Tensor, *, head: int, batch: int) -> NDArray[np.float32]:
    """The last two axes of a stage in one batch item and, where there is a head axis, one head."""
    if value.dim() < 2:
        return to_array(value.reshape(1, -1))
    place = (batch, head, *[0] * value.dim())[: value.dim() - 2]
    return to_array(value[place])


def to_array(value: Tensor) -> NDArray[np.float32]:
    """A tensor of any type as float32 numbers."""
    array: NDArray[np.float32] = value.detach().float().numpy()
    return array


def _palette(entry: StageEntry) -> Literal["sequential", "diverging"]:
    return "diverging" if entry.numbers == "signed" else "sequential"


def bounds(values: NDArray[np.float32], numbers: Numbers = "signed") -> tuple[float, float]:
    """The ends of the colour scale: from zero up for shares, symmetric about zero for what has a sign."""
    finite = values[np.isfinite(values)]
    greatest = float(np.abs(finite).max()) if finite.size else 1.0
    if numbers == "shares":
        return 0.0, max(1.0, greatest)
    if numbers == "distribution":
        return 0.0, greatest
    return -(greatest or 1.0), greatest or 1.0


def blocked_cells(run: Run, module: str, batch: int) -> tuple[NDArray[np.uint8] | None, tuple[str, ...]]:
    """Return which masks block each cell of an attention, (H or 1, Tq, Tk) with a bit per mask, and their names."""
    mask = run.mask_of(module)
    if not mask.names:
        return None, ()
    n_queries, n_keys = (size for _, size in run.trace[f"{module}.weights"].dims[-2:])
    bits: NDArray[np.uint8] = mask.blocked_bits(n_queries, n_keys, batch).numpy()
    return bits, mask.names


def blocked_in_layers(run: Run, modules: Sequence[str], batch: int) -> NDArray[np.uint8] | None:
    """The bits of ``blocked_cells`` of an attention in every layer, (L or 1, H or 1, Tq, Tk)."""
    if len({id(run.mask_of(module)) for module in modules}) == 1:
        bits, _ = blocked_cells(run, modules[0], batch)
        return None if bits is None else bits[None]
    found = [blocked_cells(run, module, batch)[0] for module in modules]
    if all(bits is None for bits in found):
        return None
    planes = [np.zeros((1, 1, 1), np.uint8) if bits is None else bits for bits in found]
    shape = np.broadcast_shapes(*(plane.shape for plane in planes))
    return np.stack([np.broadcast_to(plane, shape) for plane in planes])


def _blocking(run: Run, path: str, batch: int, head: int) -> _Blocking:
    if not entry_of(run, path).marks_blocked:
        return {"blocked": None, "blocked_by": ()}
    bits, names = blocked_cells(run, run.trace[path].module_path, batch)
    return {"blocked": None if bits is None else bits[min(head, len(bits) - 1)], "blocked_by": names}


class _Blocking(TypedDict):
    blocked: NDArray[np.uint8] | None
    blocked_by: tuple[str, ...]


MOST_ROWS = 32
"""The largest embedding table that is drawn whole; of others the rows that the text needs."""


def is_table(operand: Operand) -> bool:
    """True if it is an embedding table: a row for each token of the vocabulary."""
    return operand.is_parameter and operand.source.endswith(".tokens.weight")


def rows_of_table(run: Run, operand: Operand) -> Sequence[int]:
    """The rows of an embedding table that are drawn: the ids of their tokens."""
    size = len(run.vocabulary_of(operand.source))
    if size <= MOST_ROWS:
        return range(size)
    of_stack: SequenceName = "source" if operand.source.startswith("encoder.") else "target"
    read = [of_stack] if run.settings.has_two_vocabularies else run.tokens
    return sorted({token_id for name in read for token_id in run.tokens[name].ids})


def _table_panel(run: Run, operand: Operand) -> Panel:
    value, ids, labels = used(run.model, operand), rows_of_table(run, operand), run.vocabulary_of(operand.source)
    values, is_whole = to_array(value[list(ids)]), len(ids) == len(labels)
    return Panel(
        name="tokens",
        title=say("embedding_table") if is_whole else say("rows_of_embedding_table"),
        subtitle=f"tokens = ({len(labels)}, {values.shape[1]})",
        array=values,
        rows=Axis("vocabulary", tuple(labels[one] for one in ids), numbers=() if is_whole else tuple(ids)),
        columns=Axis("column", side_by_side(("",), values.shape[1])),
        role="neutral",
        palette="diverging",
        bounds=bounds(values),
        operator=operand.operator,
    )


def _parameter_panel(run: Run, operand: Operand) -> Panel:
    if is_table(operand):
        return _table_panel(run, operand)
    value = used(run.model, operand)
    layer, kind = ("", *operand.source.split("."))[-2:]
    values = to_array(value.T if operand.transposed else value.view(-1, value.shape[-1]))
    name = layer if kind == "weight" else layer.replace("w_", "b_").replace("unembedding", "b_u") or kind
    n_rows, n_columns = values.shape
    shown = f"{name}[{operand.rows[0]}:{operand.rows[1]}]" if operand.rows else name
    return Panel(
        name=name,
        title=_PARAMETERS.get(name, name),
        subtitle=f"{shown} = ({n_rows}, {n_columns})" if kind == "weight" else f"{shown} = ({n_columns},)",
        array=values,
        rows=Axis("row", side_by_side(("",), n_rows)),
        columns=Axis("vocabulary", tuple(run.vocabulary_of(operand.source)))
        if name in _PER_TOKEN
        else Axis("column", side_by_side(_parts(operand), n_columns)),
        role="neutral",
        palette="diverging",
        bounds=bounds(values),
        operator=operand.operator,
    )


def _parts(operand: Operand) -> Sequence[str]:
    """Return the parts side by side in a parameter: in a fused projection queries, keys and values, or some."""
    if ".w_qkv." not in operand.source:
        return ("",)
    if operand.rows is None:
        return "qkv"
    return "q" if operand.rows[0] == 0 else "kv"


_PER_TOKEN = ("unembedding", "b_u")
"""Parameters with one column for each token of the vocabulary."""

_OWNERS = {
    **{"q": say("query"), "k": say("key"), "v": say("value"), "qkv": say("query_key_and_value")},
    **{"o": say("output"), "1": say("first"), "2": say("second"), "u": say("unembedding")},
}
_PARAMETERS = {
    "unembedding": say("unembedding_matrix"),
    **{f"w_{letter}": say("matrix", owner=owner) for letter, owner in _OWNERS.items()},
    **{f"b_{letter}": say("bias", owner=owner) for letter, owner in _OWNERS.items()},
}
"""The titles of parameters, by their names."""
