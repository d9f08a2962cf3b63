"""Stages and parameters of a run as panels to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headlight.passed_masks import LOWEST
from model.texts import texts_of
from model.tracing import Dims
from visualizer.components.axis import Axis, SequenceName
from visualizer.components.tensor_grid.element import Panel
from visualizer.runs.operations_run import plain_dims
from visualizer.runs.run import Run, side_by_side
from visualizer.runs.watched import sizes_in_words
from visualizer.safe_text import visible
from visualizer.stages.entry import Numbers, StageEntry
from visualizer.stages.operands import Operand, used
from visualizer.stages.registry import entry_of, stage_of

say = texts_of(__name__)


class Part(NamedTuple):
    """The rows and columns that are drawn of a matrix."""

    rows: slice = slice(None)
    columns: slice = slice(None)


ROWS_AT_ONCE, COLUMNS_AT_ONCE = 256, 512
"""The most rows and columns that are drawn of an operation of another model: vocabularies are long."""


def part_around(run: Run, sizes: Sequence[int], at: tuple[int, int] = (0, 0), *, turned: bool = False) -> Part:
    """The part of a matrix that is drawn, around a cell or the nearest one: the whole, but for other models."""
    if run.seen is None:
        return Part()
    n_rows, n_columns = (1, 1, *sizes)[-2:]
    most_rows, most_columns = (COLUMNS_AT_ONCE, ROWS_AT_ONCE) if turned else (ROWS_AT_ONCE, COLUMNS_AT_ONCE)
    return Part(_around(at[0], n_rows, most_rows), _around(at[1], n_columns, most_columns))


def _around(place: int, size: int, most: int) -> slice:
    first = min(place, size - 1) // most * most
    return slice(first, min(size, first + most))


def _cut(axis: Axis, part: slice, labels: Sequence[str] | None = None) -> Axis:
    labels_drawn = tuple((axis.labels if labels is None else labels)[part])
    if len(labels_drawn) == len(axis.labels):
        return replace(axis, labels=labels_drawn)
    return Axis(axis.name, labels_drawn, numbers=tuple(range(len(axis.labels))[part]))


def stage_panel(
    run: Run,
    path: str,
    *,
    head: int,
    batch: int,
    operator: str = "",
    at: tuple[int, int] = (0, 0),
    turned: bool = False,
) -> Panel:
    """One stage, or one head of it; of a large one of another model the part around the cell ``at``.

    Where its rows are to be drawn as columns, ``turned``, as many rows are drawn as else columns.
    """
    stage, entry = run.trace[path], entry_of(run, path)
    rows, columns = run.axes(path)
    part = part_around(run, stage.value.shape, at, turned=turned)
    values = matrix(stage.value, head=head, batch=batch)[part]
    n_heads = run.n_heads(path)
    title = entry.title
    if n_heads is not None and (n_heads > 1 or run.seen is None):
        title = say("head", title=title, head=head)
    elif n_indices := dict(stage.dims).get("I"):
        title = say("index", title=title, index=min(head, n_indices - 1))
    panel = Panel(
        name=_name_in_picture(run, path),
        title=title,
        subtitle=_subtitle(run, path, values),
        array=values,
        rows=_cut(rows, part.rows),
        columns=_cut(columns, part.columns, run.vocabulary if run.seen and columns.name == "vocabulary" else None),
        role=entry.role,
        palette=_palette(entry),
        bounds=bounds(values, entry.numbers),
        operator=operator,
        **_blocking(run, path, batch, head),
    )
    is_square = len(stage.dims) == 4 and stage.dims[-1][1] == stage.dims[-2][1]
    return with_blocked(panel) if run.seen is not None and is_square else panel


def with_blocked(panel: Panel) -> Panel:
    """The same where a mask was added to scores: what it blocks is hatched, and the scale is that of the others."""
    is_blocked = panel.array <= LOWEST
    if not is_blocked.any():
        return panel
    others = panel.array[~is_blocked & np.isfinite(panel.array)]
    least, greatest = float(others.min(initial=0.0)), float(others.max(initial=0.0))
    size = max(-least, greatest) or 1.0
    return replace(
        panel,
        blocked=is_blocked.astype(np.uint8),
        blocked_by=("mask",),
        bounds=(-size, size) if least < 0 else (0.0, size),
        palette="diverging" if least < 0 else "sequential",
    )


def _name_in_picture(run: Run, path: str) -> str:
    """The name of a panel: of another model its path, since many of its operations have one name."""
    return path if run.seen is not None else path.rpartition(".")[2]


def _subtitle(run: Run, path: str, values: NDArray[np.float32]) -> str:
    stage = run.trace[path]
    if run.seen is None:
        return f"{stage.name} {stage.shape_text}"
    return _described(path, stage.shape_text, values, stage.value.shape[-2:])


def _described(name: str, shape: str, values: NDArray[np.float32], sizes: Sequence[int]) -> str:
    """The name and the shape of a tensor of another model, and how much of it is drawn."""
    is_whole = values.size == math.prod(sizes)
    part = "" if is_whole else say("drawn", rows=len(values), columns=values.shape[1])
    return f"{visible(name)}  {shape}{part}"


def head_panels(run: Run, path: str, *, batch: int, at: tuple[int, int] = (0, 0)) -> tuple[Panel, ...]:
    """Every head of a per-head stage, on one scale; of a large one of another model the part around a cell."""
    stage = run.trace[path]
    heads = range(run.n_heads(path) or 0)
    panels = [stage_panel(run, path, head=head, batch=batch, at=at) for head in heads]
    shown = [panel.array if panel.blocked is None else panel.array[panel.blocked == 0] for panel in panels]
    shared = (
        bounds(np.concatenate([numbers.ravel() for numbers in shown]), entry_of(run, path).numbers)
        if shown
        else None
    )
    titles = [run.head_label(head, stage.module_path) for head in heads]
    return tuple(
        replace(panel, title=title, subtitle="", bounds=shared) for panel, title in zip(panels, titles, strict=True)
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


def operand_panel(run: Run, operand: Operand, *, head: int, batch: int, at: tuple[int, int] = (0, 0)) -> Panel:
    """An input of a stage: another stage or a parameter, transposed where the computation transposes it.

    Of a large one of another model the part around the cell ``at``, as the computation uses it.
    """
    at = at[::-1] if operand.transposed else at
    if operand.is_parameter:
        return _parameter_panel(run, operand, at)
    panel = stage_panel(
        run,
        operand.source,
        head=head,
        batch=batch,
        operator=operand.operator,
        at=at,
        turned=operand.transposed,
    )
    panel = replace(panel, hint=hint_to(operand.source))
    return _transposed(panel) if operand.transposed else panel


def hint_to(path: str) -> str:
    """The words on a click that goes to a stage."""
    return say("go_to", stage=visible(path.rpartition(".")[2]))


def _transposed(panel: Panel) -> Panel:
    title = say("transposed", title=panel.title)
    return replace(panel, title=title, array=panel.array.T, rows=panel.columns, columns=panel.rows)


def matrix(value: Tensor, *, head: int, batch: int) -> NDArray[np.float32]:
    """The last two axes of a stage in one batch item and, where there is a head axis, one head."""
    if value.dim() < 2:
        return to_array(value.reshape(1, -1))
    places = zip((batch, head, *[0] * value.dim()), value.shape[:-2], strict=False)
    return to_array(value[tuple(min(place, size - 1) for place, size in places)])


def to_array(value: Tensor) -> NDArray[np.float32]:
    """A tensor of any type as float32 numbers; of complex ones the real part."""
    numbers = value.detach().real if value.is_complex() else value.detach()
    array: NDArray[np.float32] = numbers.float().numpy()
    return array


def is_text(run: Run, path: str) -> NDArray[np.bool_]:
    """(T,), True for each row of a stage that is no padding; for all where there is nothing else."""
    sequence, n_rows = run.axes(path)[0].sequence, run.trace[path].value.shape[-2]
    pads = np.zeros(n_rows, bool) if sequence is None else np.array(run.tokens[sequence].is_padding[:n_rows])
    return pads if pads.all() else ~pads


def _palette(entry: StageEntry) -> Literal["sequential", "diverging"]:
    return "diverging" if entry.numbers == "signed" else "sequential"


def bounds(values: NDArray[np.float32], numbers: Numbers = "signed") -> tuple[float, float]:
    """The ends of the colour scale: from zero up for shares, symmetric about zero for what has a sign."""
    finite = values[np.isfinite(values)]
    greatest = float(np.abs(finite).max()) if finite.size else 1.0
    if numbers == "shares":
        return 0.0, max(1.0, greatest)
    if numbers == "distribution":
        return 0.0, greatest or 1.0
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


def is_table(run: Run, operand: Operand) -> bool:
    """True if it is our embedding table: a row for each token of the vocabulary."""
    return run.seen is None and operand.is_parameter and operand.source.endswith(".tokens.weight")


def rows_of_table(run: Run, operand: Operand) -> Sequence[int]:
    """The rows of an embedding table that are drawn: the ids of their tokens."""
    size = len(run.vocabulary_of(operand.source))
    if size <= MOST_ROWS:
        return range(size)
    of_stack: SequenceName = "source" if operand.source.startswith("encoder.") else "target"
    read = [of_stack] if run.settings.has_two_vocabularies else run.tokens
    return sorted({token_id for name in read for token_id in run.tokens[name].ids})


def _table_panel(run: Run, operand: Operand) -> Panel:
    value, ids, labels = used(run, operand), rows_of_table(run, operand), run.vocabulary_of(operand.source)
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


def _parameter_panel(run: Run, operand: Operand, at: tuple[int, int]) -> Panel:
    if run.seen is not None:
        return _parameter_of_another_model(run, operand, at)
    if is_table(run, operand):
        return _table_panel(run, operand)
    value = used(run, operand)
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


def _parameter_of_another_model(run: Run, operand: Operand, at: tuple[int, int]) -> Panel:
    value, ids = used(run, operand), operand.looked_up
    rows = value[list(ids)] if ids else value
    at = (0, at[1]) if ids else at
    panel = tensor_panel(run, operand.source, rows, plain_dims(rows.shape), at=at, turned=operand.transposed)
    panel = replace(panel, operator=operand.operator)
    if ids:
        ids = ids[: len(panel.rows.labels)]
        subtitle = _described(operand.source, sizes_in_words(value.shape), panel.array, value.shape)
        known = run.source_vocabulary or run.vocabulary
        texts = [known[one] for one in ids] if len(known) == len(value) else map(str, ids)
        panel = replace(panel, rows=Axis("row", tuple(texts), numbers=ids), subtitle=subtitle)
    return _transposed(panel) if operand.transposed else panel


def tensor_panel(
    run: Run,
    name: str,
    value: Tensor,
    dims: Dims,
    *,
    head: int = 0,
    batch: int = 0,
    at: tuple[int, int] = (0, 0),
    turned: bool = False,
    own_shape: Sequence[int] | None = None,
) -> Panel:
    """A tensor of another model that is no stage: its last two axes around a cell, in one sequence and head.

    Where its axes were rearranged, ``own_shape`` says how the model has it.
    """
    whole, part = matrix(value, head=head, batch=batch), part_around(run, value.shape, at, turned=turned)
    rows, columns = run.axes_of(name, dims)
    return Panel(
        name=name,
        title=visible(name.rpartition(".")[2]),
        subtitle=_described(name, sizes_in_words(own_shape or value.shape), whole[part], whole.shape),
        array=whole[part],
        rows=_cut(rows, part.rows),
        columns=_cut(columns, part.columns),
        palette="diverging" if (whole[part] < 0).any() else "sequential",
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
