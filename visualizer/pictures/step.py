"""The pictures of Step through: a stage and its inputs, all its heads, and what is side by side in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from visualizer.components.packing import Precision
from visualizer.components.tensor_grid.element import Panel, packed_panels
from visualizer.runs.paths import with_layer, without_layer
from visualizer.runs.run import Run
from visualizer.settings.settings import Selection
from visualizer.stages.operands import Operand
from visualizer.stages.panels import head_panels, operand_panel, part_panels, stage_panel
from visualizer.stages.registry import operands_of


@dataclass(frozen=True)
class Place:
    """A stage, and which of its numbers are looked at.

    Attributes:
        path: its path, with its layer.
        batch: the sequence of the batch.
        head: the head.
    """

    path: str
    batch: int
    head: int


@dataclass(frozen=True, eq=False)
class StepPicture:
    """Some panels."""

    panels: Sequence[Panel]

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
    if without_layer(path) != selection.stage:
        raise ValueError(f"There is no stage {selection.stage} in this run.")
    n_heads = run.n_heads(path) or run.settings.n_heads
    return Place(path, min(selection.batch, run.batch_size(path) - 1), min(selection.head, n_heads - 1))


def equation(run: Run, place: Place) -> StepPicture:
    """The inputs and the output of a stage, side by side, in one head."""
    at = {"head": place.head, "batch": place.batch}
    inputs = operands_of(run, place.path)
    operator = "" if not inputs else "→" if len(inputs) == 1 else "="
    output = stage_panel(run, place.path, operator=operator, **at)
    return StepPicture([*(operand_panel(run, operand, **at) for operand in inputs), output])


def drawn_in(run: Run, path: str) -> tuple[Operand, ...]:
    """Return the operand that each panel of the equation of a stage draws."""
    return (*operands_of(run, path), Operand(path))


def every_head(run: Run, place: Place) -> StepPicture:
    """The same stage in every head."""
    return StepPicture(head_panels(run, place.path, batch=place.batch))


def every_part(run: Run, place: Place) -> StepPicture:
    """Return the picture of what lies side by side in a fused projection; empty for any other stage."""
    return StepPicture(part_panels(run, place.path, batch=place.batch))
