"""The pictures of one stage of a run: its equation, every head, and the parts that lie side by side in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headlight.patterns import Folded
from visualizer.components.packing import Precision
from visualizer.components.tensor_grid.element import Panel, packed_panels
from visualizer.runs.operations_run import OperationStage, dims_of, plain_dims
from visualizer.runs.paths import with_layer, without_layer
from visualizer.runs.run import Run
from visualizer.settings.settings import Selection
from visualizer.stages.operands import Operand
from visualizer.stages.operations import Read, read_by_step
from visualizer.stages.panels import head_panels, hint_to, operand_panel, part_panels, stage_panel, tensor_panel
from visualizer.stages.registry import operands_of


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
    n_heads = run.n_heads(path) or run.settings.n_heads
    return Place(path, min(selection.batch, run.batch_size(path) - 1), min(selection.head, n_heads - 1))


def equation(run: Run, place: Place) -> StepPicture:
    """The inputs and the output of a stage, side by side, in one head."""
    at = {"head": place.head, "batch": place.batch}
    step = step_at(run, place.path)
    if step is not None:
        reads = tuple(read_by_step(run, step))
        inputs = [_read(run, read, place) for read in reads]
        inputs[:1] = [replace(panel, operator="") for panel in inputs[:1]]
        sources = [Source(read.path, is_whole=read.is_whole) for read in reads]
    else:
        operands = operands_of(run, place.path)
        cells = _cells_of_inputs(operands, place.cell)
        inputs = [operand_panel(run, one, at=cell, **at) for one, cell in zip(operands, cells, strict=True)]
        sources = [Source("" if one.is_parameter else one.source, one.transposed) for one in operands]
        if run.seen is not None and not _are_whole(run, place.path):
            inputs = [replace(panel, operator="," if i else "") for i, panel in enumerate(inputs)]
    is_listed = all(panel.operator in ("", ",") for panel in inputs)
    operator = "" if not inputs else "→" if len(inputs) == 1 or (is_listed and run.seen is not None) else "="
    output = stage_panel(run, place.path, operator=operator, at=place.cell, **at)
    return StepPicture([*inputs, output], [*sources, Source(place.path)])


def first_drawn(panel: Panel) -> tuple[int, int]:
    """The first row and the first column that a panel draws."""
    return (panel.rows.numbers or (0,))[0], (panel.columns.numbers or (0,))[0]


def _cells_of_inputs(operands: Sequence[Operand], cell: tuple[int, int]) -> list[tuple[int, int]]:
    """The cell of each input that one of the result is computed with: of a product a row, and a column."""
    row, column = cell
    signs = [*(operand.operator for operand in operands), ""][1:]
    return [
        (0, column) if operand.operator == "×" else (row, 0) if sign == "×" else cell
        for operand, sign in zip(operands, signs, strict=True)
    ]


def _are_whole(run: Run, path: str) -> bool:
    """True if the stages that one is computed from have as many axes as it has; else a part, as a head, is used."""
    sources = [operand.source for operand in operands_of(run, path) if not operand.is_parameter]
    return all(run.trace[source].value.dim() == run.trace[path].value.dim() for source in sources)


def step_at(run: Run, path: str) -> Folded | None:
    """The known step at a path; None where a single operation or a stage of the model stands there."""
    stage = run.trace[path]
    return stage.step if isinstance(stage, OperationStage) else None


def _read(run: Run, read: Read, place: Place) -> Panel:
    """The panel of what a step reads, as its formula sees it."""
    shape = read.value.shape
    dims = plain_dims(shape) if read.name in run.parameters else dims_of(read.name, shape, run.batches)
    panel = tensor_panel(run, read.name, read.value, dims, head=place.head, batch=place.batch)
    hint = hint_to(read.path) if read.path else ""
    return replace(panel, title=f"{read.symbol} = {panel.title}", operator=",", hint=hint)


def every_head(run: Run, place: Place) -> StepPicture:
    """The same stage in every head."""
    return StepPicture(head_panels(run, place.path, batch=place.batch))


def every_part(run: Run, place: Place) -> StepPicture:
    """Return the picture of what lies side by side in a fused projection; empty for any other stage."""
    return StepPicture(part_panels(run, place.path, batch=place.batch))
