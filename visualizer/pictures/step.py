"""The pictures of one stage of a run: its equation, every head, and the parts that lie side by side in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headlight.patterns import Folded
from visualizer.components.packing import Precision
from visualizer.components.stage_map.element import packed_map
from visualizer.components.stage_map.model_map import ModelMap, model_map
from visualizer.components.tensor_grid.element import Panel, packed_panels
from visualizer.runs.operations_run import OperationStage, arranged, arrangement_of, dims_of, plain_dims
from visualizer.runs.paths import with_layer, without_layer
from visualizer.runs.run import Run
from visualizer.settings.settings import Selection
from visualizer.stages.checks import is_exact
from visualizer.stages.derivations import Cell
from visualizer.stages.informative import most_heads
from visualizer.stages.operands import Operand, used
from visualizer.stages.operations import Read, read_by_step
from visualizer.stages.panels import (
    head_panels,
    hint_to,
    matrix,
    operand_panel,
    part_panels,
    stage_panel,
    tensor_panel,
    with_blocked,
)
from visualizer.stages.registry import on_map, operands_of


@dataclass(frozen=True, eq=False)
class MapPicture:
    """The map of the model that a run is of."""

    model: ModelMap

    def packed(self, precision: Precision) -> bytes:
        """The bytes that the browser draws."""
        return packed_map(self.model)


def map_of(run: Run) -> MapPicture:
    """The map of a run's model."""
    return run.once("map", lambda: MapPicture(model_map(on_map(run))))


@dataclass(frozen=True)
class Place:
    """A stage, and which of its numbers are looked at.

    Attributes:
        path: its path, with its layer.
        batch: the sequence of the batch.
        head: the head.
        cell: the row and the column that are in sight, where not all are drawn.
    """

    path: str
    batch: int
    head: int
    cell: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Source:
    """The stage that a panel draws.

    Attributes:
        path: its path; "" where the panel draws a parameter, or what comes from outside.
        transposed: whether the panel has its rows as columns.
        is_whole: whether its cells are those of the stage; else what was made of it is drawn.
    """

    path: str
    transposed: bool = False
    is_whole: bool = True


@dataclass(frozen=True, eq=False)
class StepPicture:
    """Some panels and, of an equation, where each comes from."""

    panels: Sequence[Panel]
    sources: Sequence[Source] = ()

    @property
    def n_numbers(self) -> int:
        """The count of the numbers in all panels together."""
        return sum(panel.array.size for panel in self.panels)

    def packed(self, precision: Precision) -> bytes:
        """The bytes that the browser draws."""
        return packed_panels(self.panels, precision=precision)


def place_in(run: Run, selection: Selection) -> Place:
    """Find the place of a selection in a run.

    Raises:
        ValueError: the run has no such stage.
    """
    path = with_layer(run.trace, selection.stage, selection.layer)
    if selection.stage not in (path, without_layer(path)):
        raise ValueError(f"There is no stage {selection.stage} in this run.")
    n_heads = run.n_heads(path) or most_heads(run)
    return Place(path, min(selection.batch, run.batch_size(path) - 1), min(selection.head, n_heads - 1))


def place_of(cell: Cell) -> Place:
    """The place of a cell."""
    return Place(cell.path, cell.batch, cell.head, (cell.row, cell.column))


def equation(run: Run, place: Place) -> StepPicture:
    """The inputs and the output of a stage, side by side, in one head."""
    step = step_at(run, place.path)
    if step is not None:
        reads = tuple(read_by_step(run, step))
        inputs = [_read(run, read, place) for read in reads]
        inputs[:1] = [replace(panel, operator="") for panel in inputs[:1]]
        sources = [Source(read.path, is_whole=read.is_whole) for read in reads]
    else:
        operands = operands_of(run, place.path)
        inputs = [
            operand_panel(run, one, head=_head_of(run, one.source, place), batch=place.batch, at=cell)
            for one, cell in zip(operands, _cells_of_inputs(operands, place.cell), strict=True)
        ]
        sources = [Source("" if one.is_parameter else one.source, one.transposed) for one in operands]
        signs = signs_of(run, place)
        inputs = [replace(panel, operator=sign) for panel, sign in zip(inputs, signs, strict=True)]
    is_listed = all(panel.operator in ("", ",") for panel in inputs)
    operator = "" if not inputs else "→" if len(inputs) == 1 or is_listed else "="
    output = stage_panel(run, place.path, head=place.head, batch=place.batch, operator=operator, at=place.cell)
    return StepPicture([*inputs, output], [*sources, Source(place.path)])


def _head_of(run: Run, path: str, place: Place) -> int:
    """The head of an input that is read by the head that is looked at: several share one where there are fewer."""
    n_heads = run.n_heads(place.path) or 1
    n_inputs = (run.n_heads(path) if path in run.trace else None) or n_heads
    return place.head // (n_heads // n_inputs) if n_inputs < n_heads else min(place.head, n_inputs - 1)


def signs_of(run: Run, place: Place) -> tuple[str, ...]:
    """The sign before each input of a stage; commas where those of its expression do not hold."""
    operands = operands_of(run, place.path)
    if holds(run, place):
        return tuple(operand.operator for operand in operands)
    return tuple("," if i else "" for i in range(len(operands)))


def holds(run: Run, place: Place) -> bool:
    """True if the inputs, as they are drawn, make the row that is looked at by the signs between them.

    Else a part of an input, one from outside, what dropout drew or an edit takes part.
    """
    return run.once(("holds", place), lambda: _holds(run, place))


def _holds(run: Run, place: Place) -> bool:
    operands, at = operands_of(run, place.path), {"batch": place.batch}
    result = matrix(run.trace[place.path].value, head=place.head, **at)
    row = min(place.cell[0], len(result) - 1)
    found: NDArray[np.float32] | None = None
    for operand in operands:
        value = used(run, operand) if operand.is_parameter else run.trace[operand.source].value
        numbers = matrix(value, head=_head_of(run, operand.source, place), **at)
        numbers = numbers.T if operand.transposed else numbers
        if operand.operator == "×" and found is not None and len(numbers) == len(found):
            found = found @ numbers
            continue
        if len(numbers) not in (1, len(result)):
            return False
        own = numbers[row if len(numbers) > 1 else 0]
        combine = _COMBINED.get(operand.operator)
        if found is None:
            found = own
        elif combine is None or 1 != len(own) != len(found) != 1:
            return False
        else:
            found = combine(found, own)
    if found is None or found.shape != result[row].shape:
        return False
    size = float(np.abs(result[row][np.isfinite(result[row])]).max(initial=1e-6))
    tolerance = 1e-4 if is_exact(run.trace[place.path].value) else 3e-2
    return bool(np.allclose(found, result[row], rtol=0, atol=tolerance * size, equal_nan=True))


_COMBINED: Mapping[str, Callable[..., NDArray[np.float32]]] = {
    **{"+": np.add, "−": np.subtract, "⊙": np.multiply, "÷": np.divide},
    "where": lambda scores, mask: np.where(mask, scores, -np.inf),
}


def _cells_of_inputs(operands: Sequence[Operand], cell: tuple[int, int]) -> list[tuple[int, int]]:
    """The cell of each input that one of the result is computed with: of a product a row, and a column."""
    row, column = cell
    signs = [*(operand.operator for operand in operands), ""][1:]
    return [
        (0, column) if operand.operator == "×" else (row, 0) if sign == "×" else cell
        for operand, sign in zip(operands, signs, strict=True)
    ]


def first_drawn(panel: Panel) -> tuple[int, int]:
    """The first row and the first column that a panel draws."""
    return (panel.rows.numbers or (0,))[0], (panel.columns.numbers or (0,))[0]


def step_at(run: Run, path: str) -> Folded | None:
    """The known step at a path; None where a single operation or a stage of the model stands there."""
    stage = run.trace[path]
    return stage.step if isinstance(stage, OperationStage) else None


def _read(run: Run, read: Read, place: Place) -> Panel:
    """The panel of what a step reads, as its formula sees it."""
    if run.seen is None:
        raise ValueError(f"{place.path} is no step of another model")
    value = arranged(read.value, arrangement_of(run.seen, read.value))
    is_parameter = read.name in run.parameters
    dims = plain_dims(value.shape) if is_parameter else dims_of(run.seen, read.name, value.shape)
    cell = (0, 0) if is_parameter else place.cell
    panel = tensor_panel(
        run, read.name, value, dims, head=place.head, batch=place.batch, at=cell, own_shape=read.value.shape
    )
    hint = hint_to(read.path) if read.path else ""
    panel = replace(panel, title=f"{read.symbol} = {panel.title}", operator=",", hint=hint)
    return with_blocked(panel) if read.symbol.partition("_")[0] == "M" else panel


def every_head(run: Run, place: Place) -> StepPicture:
    """The same stage in every head."""
    return StepPicture(head_panels(run, place.path, batch=place.batch, at=place.cell))


def every_part(run: Run, place: Place) -> StepPicture:
    """Return the picture of what lies side by side in a fused projection; empty for any other stage."""
    return StepPicture(part_panels(run, place.path, batch=place.batch))
