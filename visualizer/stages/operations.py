"""The operations of a watched model: their words, their pictures, and the derivations of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from headlight.graph import TOLERANCE
from headlight.passed_masks import LOWEST
from headlight.patterns import Folded
from headlight.stages import Stage
from model.dataflow import Node, Operation, ParameterInput, StageInput, inputs_of
from model.texts import texts_of
from visualizer.colors import Role
from visualizer.components.axis import Axis
from visualizer.components.derivation import Derivation
from visualizer.components.tensor_grid.element import Panel
from visualizer.runs.saved import ALIAS, GIVEN
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import markdown_safe, visible, visible_whole
from visualizer.stages import derivations
from visualizer.stages.checks import Check
from visualizer.stages.expressions import reckon_node, words_of, words_on_node
from visualizer.stages.operands import Operand, operands_in
from visualizer.stages.panels import to_array

say = texts_of(__name__)

MOST_ROWS, MOST_COLUMNS = 256, 512
"""The most rows and columns of a tensor that are drawn."""

MOST_INPUTS = 4
"""The most inputs that are drawn beside a stage."""

ATTENTIONS = ("multi_head_attention_forward", "scaled_dot_product_attention", "flex_attention")
"""Operations that are an attention in one call."""

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys((*ATTENTIONS, "softmax"), "weights"),
    **dict.fromkeys(("add", "iadd", "radd"), "residual"),
    **dict.fromkeys(("relu", "gelu", "silu", "tanh", "sigmoid"), "feed_forward"),
}


def role_of(operation: str) -> Role:
    """The colour of an operation."""
    return _ROLES.get(operation, "neutral")


def label_of(stage: Stage) -> str:
    """The name of a stage in its module: its operation, with a number where that comes several times."""
    return stage.path.removeprefix(f"{stage.module}.") if stage.module else stage.path


def label_of_step(folded: Folded) -> str:
    """The name of operations that are one step, with a number where it comes several times in its module."""
    number = folded.path.removeprefix(f"{folded.module}.").removeprefix(folded.pattern.name)
    return f"{folded.pattern.title} {number.strip('_')}".strip()


def shape_of(stage: Stage) -> str:
    """The sizes of what a stage came to; "" where it is not known any more."""
    return "" if stage.value is None else " × ".join(f"{size:,}" for size in stage.value.shape)


def told(stage: Stage) -> str:
    """One sentence on what a stage was computed from, and by which operations."""
    if stage.operation == "fused":
        return say("fused_module", module=stage.module) if stage.module else say("fused_model")
    if stage.operation == GIVEN and not stage.inputs:
        return say("input")
    if stage.operation == ALIAS:
        return say("same_tensor", inputs=", ".join(stage.inputs))
    if stage.node is not None:
        return words_on_node(stage.node)
    return words_of(dict.fromkeys(stage.inputs), (*stage.folded, stage.operation))


def told_of_step(folded: Folded) -> str:
    """One sentence on which operations are one step."""
    names = [path.removeprefix(f"{folded.module}.") for path in folded.stages]
    if len(names) == 1:
        return say("one_operation", name=names[0])
    return say("operations", count=len(names), names=", ".join(names))


def numbers_of_step(folded: Folded) -> str:
    """Return the numbers in its formula with their values, in LaTeX; "" where there are none."""
    names = {"epsilon": r"\epsilon"}
    return r",\quad ".join(f"{names.get(name, name)} = {_decimal(value)}" for name, value in folded.numbers.items())


def _decimal(value: float) -> str:
    digits, _, exponent = f"{value:.6g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits


def check_of_step(folded: Folded) -> Check:
    """Report how far some operations are from the formula of the step that they are."""
    if folded.difference is None:
        return Check(say("those_of_formula"), True)
    if not folded.difference:
        return Check(say("formula_exact", tolerance=TOLERANCE), True)
    return Check(say("formula", difference=folded.difference, tolerance=TOLERANCE), True)


@dataclass(frozen=True)
class Sheet:
    """The rows and columns of a tensor that are drawn, of one sequence and head, and where they begin.

    Attributes:
        at: the place along each axis; that of the two axes drawn counts for nothing.
        row_axis: which axis the rows run over; None where the tensor has fewer than two.
        first_row: the first row that is drawn.
        first_column: the first column.
    """

    at: tuple[int, ...]
    row_axis: int | None
    first_row: int
    first_column: int

    def index(self, row: int, column: int) -> tuple[int, ...]:
        """The place in the tensor of a row and a column, counted from the very first."""
        places = list(self.at)
        if self.row_axis is not None:
            places[self.row_axis] = row
        if places:
            places[-1] = column
        return tuple(places)

    def cut(self, value: Tensor) -> Tensor:
        """The rows and columns that are drawn."""
        if value.dim() < 2 or self.row_axis is None:
            return value.reshape(1, -1)[:, self.first_column : self.first_column + MOST_COLUMNS]
        kept = (self.row_axis, value.dim() - 1)
        places = tuple(slice(None) if axis in kept else place for axis, place in enumerate(self.at))
        rows = slice(self.first_row, self.first_row + MOST_ROWS)
        return value[places][rows, self.first_column : self.first_column + MOST_COLUMNS]


def sheet_of(run: WatchedRun, value: Tensor, *, item: int, head: int, row: int = 0, column: int = 0) -> Sheet:
    """The part of a tensor that is drawn: one sequence, one head, and the rows and columns around a place.

    The rows run over the axis before the last one. In a tensor of three axes they run over the first one where that
    is the tokens' and the second one is the batch's, as within ``nn.MultiheadAttention``.
    """
    sizes = tuple(value.shape)
    if len(sizes) < 2:
        return Sheet((0,) * len(sizes), None, 0, _start(column, MOST_COLUMNS))
    is_turned = (
        len(sizes) == 3 and (sizes[1], sizes[0]) in _batches(run) and (sizes[0], sizes[1]) not in _batches(run)
    )
    row_axis = 0 if is_turned else len(sizes) - 2
    wanted = (0, item) if is_turned else (item, head)
    at = tuple(
        min(wanted[axis] if axis < len(wanted) else 0, size - 1) if len(sizes) > 2 else 0
        for axis, size in enumerate(sizes)
    )
    return Sheet(at, row_axis, _start(row, MOST_ROWS), _start(column, MOST_COLUMNS))


def sizes_of_sheet(value: Tensor, sheet: Sheet) -> tuple[int, int]:
    """Return the number of rows and of columns in all."""
    if sheet.row_axis is None:
        return 1, value.numel()
    return value.shape[sheet.row_axis], value.shape[-1]


def _batches(run: WatchedRun) -> set[tuple[int, int]]:
    """The numbers of sequences and of their tokens that the attentions have."""
    return {(attention.shape[0], size) for attention in run.trace for size in attention.shape[2:]}


def _start(place: int, most: int) -> int:
    return place // most * most


def operands_of(run: WatchedRun, stage: Stage) -> tuple[Operand, ...]:
    """The inputs of a stage that can be drawn, in the order of its formula."""
    if stage.node is not None and stage.operation != "fused":
        found = operands_in(stage.node, run.trace.parameters)
    else:
        found = tuple(
            Operand(name, "," if i else "", is_parameter=name not in run.trace.stages)
            for i, name in enumerate(dict.fromkeys(stage.inputs))
        )
    known = [operand for operand in found if _value(run, operand) is not None]
    each_once: dict[tuple[object, ...], Operand] = {}
    for operand in known:
        each_once.setdefault((operand.source, operand.transposed, operand.rows), operand)
    is_listed = all(operand.operator in ("", ",") for operand in known)
    return tuple(each_once.values() if is_listed else known)[:MOST_INPUTS]


def are_of_one_shape(run: WatchedRun, stage: Stage, operands: Sequence[Operand]) -> bool:
    """True if the stages that one is computed from have as many axes as it has, so that they are used whole."""
    values = [_value(run, operand) for operand in operands if not operand.is_parameter]
    return all(value is None or stage.value is None or value.dim() == stage.value.dim() for value in values)


def _value(run: WatchedRun, operand: Operand) -> Tensor | None:
    if operand.is_parameter:
        value = run.trace.parameters.get(operand.source)
        return value if value is None or operand.rows is None else value[slice(*operand.rows)]
    stage = run.trace.stages.get(operand.source)
    return None if stage is None else stage.value


def stage_panel(
    run: WatchedRun, stage: Stage, *, item: int, head: int, row: int, column: int, operator: str = ""
) -> Panel | None:
    """Return the panel of a stage's value; None where it is not known any more, or has no number."""
    if stage.value is None or not stage.value.numel():
        return None
    panel = _panel(run, stage.path, stage.value, item=item, head=head, row=row, column=column)
    title = visible_whole(label_of(stage))
    if stage.value.dim() == 4 and (n_heads := stage.value.shape[1]) > 1:
        title = say("of_head", title=title, head=min(head, n_heads - 1))
    return replace(panel, title=title, role=role_of(stage.operation), operator=operator)


def operand_panel(run: WatchedRun, operand: Operand, *, item: int, head: int) -> Panel | None:
    """An input of a stage, transposed where the computation transposes it."""
    value = _value(run, operand)
    if value is None or not value.numel():
        return None
    panel = _panel(run, operand.source, value, item=item, head=head, row=0, column=0)
    if operand.transposed:
        panel = replace(panel, array=panel.array.T, rows=panel.columns, columns=panel.rows)
        panel = replace(panel, title=say("transposed", title=panel.title))
    hint = "" if operand.is_parameter else say("go_to_it")
    return replace(panel, operator=operand.operator, hint=hint)


@dataclass(frozen=True, eq=False)
class Read:
    """An input of operations that are one step: where it comes from, and as the formula sees it.

    path: of the stage; None where it is a parameter or comes from outside. panel: its picture. same_places: whether
    its rows and columns are those of the stage.
    """

    path: str | None
    panel: Panel
    same_places: bool


def read_by_step(run: WatchedRun, folded: Folded, *, item: int, head: int) -> tuple[Read, ...]:
    """Return the inputs of a step, in the order of its formula, as far as they are known."""
    found: list[Read] = []
    for symbol, node in folded.inputs.items():
        try:
            with torch.no_grad():
                value = run.values(node)
        except (KeyError, RuntimeError, TypeError, ValueError, IndexError):
            continue
        if not value.numel():
            continue
        first = next(iter(inputs_of(node)), None)
        path = first.path if isinstance(first, StageInput) else None
        name = first.name if isinstance(first, ParameterInput) else path or say("given")
        panel = _panel(run, name, value, item=item, head=head, row=0, column=0)
        panel = replace(panel, title=f"{symbol} = {panel.title}", operator="," if found else "")
        panel = replace(panel, hint=say("go_to_it") if path else "")
        if symbol.partition("_")[0] == "M":
            panel = _with_blocked(panel)
        found.append(Read(path, panel, isinstance(node, StageInput)))
    return tuple(found)


def _with_blocked(panel: Panel) -> Panel:
    """A mask that is added to scores: what it blocks is hatched, and the scale is that of the other cells."""
    blocked = panel.array <= LOWEST
    others = panel.array[~blocked & np.isfinite(panel.array)]
    least, greatest = float(others.min(initial=0.0)), float(others.max(initial=0.0))
    return replace(
        panel,
        blocked=blocked.astype(np.uint8),
        blocked_by=("mask",),
        bounds=(least, greatest if greatest > least else least + 1.0),
        palette="diverging" if least < 0 else "sequential",
    )


def head_panels(run: WatchedRun, stage: Stage, *, item: int) -> tuple[Panel, ...]:
    """Every head of a stage (B, H, rows, columns), on one scale; none of any other stage."""
    value = stage.value
    if value is None or value.dim() != 4 or not 1 < value.shape[1] <= _MOST_HEADS or not value.numel():
        return ()
    panels = [
        _panel(run, stage.path, value, item=item, head=head, row=0, column=0) for head in range(value.shape[1])
    ]
    finite = [panel.array[np.isfinite(panel.array)] for panel in panels]
    greatest = max((float(np.abs(numbers).max()) for numbers in finite if numbers.size), default=1.0) or 1.0
    least = min((float(numbers.min()) for numbers in finite if numbers.size), default=0.0)
    bounds = (-greatest, greatest) if least < 0 else (0.0, greatest)
    return tuple(
        replace(panel, title=say("head", head=head), subtitle="", bounds=bounds, role=role_of(stage.operation))
        for head, panel in enumerate(panels)
    )


_MOST_HEADS = 64


def _panel(run: WatchedRun, name: str, value: Tensor, *, item: int, head: int, row: int, column: int) -> Panel:
    sheet = sheet_of(run, value, item=item, head=head, row=row, column=column)
    cells = sheet.cut(value)
    array = to_array(cells.real if cells.is_complex() else cells).copy()
    n_rows, n_columns = sizes_of_sheet(value, sheet)
    tokens = run.tokens_of(name, item)
    is_square = value.dim() == 4 and n_rows == n_columns
    least = float(array[np.isfinite(array)].min(initial=0.0))
    return Panel(
        name=name,
        title=visible(name.rpartition(".")[2] or name),
        subtitle=f"{visible(name)}  {' × '.join(f'{size:,}' for size in value.shape)}"
        + ("" if array.shape == (n_rows, n_columns) else say("drawn", rows=array.shape[0], columns=array.shape[1])),
        array=array,
        rows=_axis("row", tokens, n_rows, sheet.first_row, array.shape[0]),
        columns=_axis("column", tokens if is_square else (), n_columns, sheet.first_column, array.shape[1]),
        palette="diverging" if least < 0 else "sequential",
    )


def _axis(name: str, tokens: tuple[str, ...], size: int, first: int, n_drawn: int) -> Axis:
    places = range(first, first + n_drawn)
    if len(tokens) == size:
        return Axis("token", tuple(visible(tokens[place]) for place in places))
    return Axis(name, tuple(str(place) for place in places))


def check(run: WatchedRun, stage: Stage) -> Check | None:
    """Check that a stage, computed again from its inputs, is what it was; None where that cannot be done."""
    if not isinstance(stage.node, Operation) or stage.value is None or stage.operation in _RANDOM:
        return None
    if not _is_cheap(run, stage.node, stage.value):
        return None
    try:
        with torch.no_grad():
            again = run.values(stage.node)
    except (KeyError, RuntimeError, TypeError, ValueError, IndexError):
        return None
    by = " → ".join(markdown_safe(name) for name in (*stage.folded, stage.operation))  # a file can say anything
    if torch.equal(again, stage.value):
        return Check(say("equal", operations=by), True)
    if again.shape != stage.value.shape:
        return Check(say("other_shape", shape=tuple(again.shape), operations=by), False)
    difference = float((again - stage.value).abs().nan_to_num(nan=torch.inf).max())
    return Check(
        say("nearly_equal", operations=by, difference=difference),
        difference <= derivations.TOLERANCE * max(1.0, float(stage.value.abs().max())),
    )


def _is_cheap(run: WatchedRun, node: Operation, value: Tensor) -> bool:
    """True if a stage can be computed again while a person waits."""
    inputs = [run.trace.stages[part.path].value for part in inputs_of(node) if isinstance(part, StageInput)]
    longest = max((each.shape[-1] for each in inputs if each is not None and each.dim()), default=1)
    return value.numel() * longest <= _MOST_PRODUCTS


_MOST_PRODUCTS = 2**30

_RANDOM = ("dropout", "rand", "randn", "bernoulli", "fused")
"""Operations that do not give the same again, or only under conditions that a page does not have."""


def derivation(
    run: WatchedRun, stage: Stage, index: tuple[int, ...], folded: Folded | None = None
) -> Derivation | None:
    """Return the derivation of the number at a place; None where its expression or an input of it is not there.

    Args:
        run: what the stage is of.
        stage: what the number is of.
        index: the place.
        folded: operations that end at the stage, all of which are gone through.
    """
    if not isinstance(stage.node, Operation) or stage.value is None or stage.operation in (*_RANDOM, *ATTENTIONS):
        return None
    if not _is_cheap(run, stage.node, stage.value):
        return None
    try:
        found = reckon_node(stage.node, index, run.values, None if folded is None else _inside(run, folded))
        number = float(stage.value[index])
    except (KeyError, RuntimeError, TypeError, ValueError, IndexError):
        return None
    n_elements = len(found.rows[0].values) if found.rows else 0
    is_softmax = stage.operation == "softmax" and bool(found.rows)
    difference = 0.0 if number == found.value else abs(number - found.value)
    return Derivation(
        title=f"{visible_whole(label_of_step(folded) if folded else label_of(stage))} at "
        f"{', '.join(map(str, index))}",
        columns=tuple(map(str, range(n_elements))),
        rows=found.rows,
        steps=tuple(dict.fromkeys(found.steps)),
        result=found.value,
        formula=visible_whole(told_of_step(folded) if folded else words_on_node(stage.node)),
        agrees=difference <= derivations.TOLERANCE * max(1.0, abs(number)),
        difference=difference,
        blocked=tuple(bool(low) for low in found.rows[0].values <= LOWEST) if is_softmax else (),
    )


def _inside(run: WatchedRun, folded: Folded) -> Mapping[str, Node]:
    """The expressions of the operations of a step."""
    nodes = {path: run.trace.stages[path].node for path in folded.stages}
    return {path: node for path, node in nodes.items() if node is not None}
