"""The interventions of the settings, which put something in the place of tensors, as edits of a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Protocol

from torch import Tensor

from model.edits import mean_over_rows, only, zero
from model.texts import texts_of
from model.tracing import Edit
from visualizer.settings.interventions import Intervention

say = texts_of(__name__)


class HasValue(Protocol):
    """A stage of our model, or of one that was watched."""

    @property
    def value(self) -> Tensor | None:
        """The value of the stage; None where it was not kept."""
        ...


Stages = Mapping[str, HasValue]
"""The stages that a pass computed, by path."""


def edits_of(interventions: Iterable[Intervention], other: Callable[[], Stages]) -> dict[str, Edit]:
    """The edits by path; several of one stage are made one after the other.

    Args:
        interventions: in the order in which they were asked for.
        other: what the same model computes of the other text, for those that take something from there.

    Raises:
        ValueError: there is no other text that the model can read, or it has no such stage.
    """
    found: dict[str, Edit] = {}
    for each in interventions:
        edit = _of_numbers(only(_edit(each, other), head=each.head, row=each.row))
        found[each.path] = in_turn(found[each.path], edit) if each.path in found else edit
    return found


def in_turn(*edits: Edit) -> Edit:
    """Several edits, each of what the one before left."""
    return lambda value: reduce(lambda edited, edit: edit(edited), edits, value)


def _edit(intervention: Intervention, other: Callable[[], Stages]) -> Edit:
    match intervention.becomes:
        case "zero":
            return zero
        case "mean":
            return mean_over_rows
        case "other":
            stages = other()
            return _taken_from(_value_in(stages, intervention.path))


def _value_in(stages: Stages, path: str) -> Tensor:
    value = stages[path].value if path in stages else None
    if value is None:
        raise ValueError(say("no_stage"))
    return value


def _taken_from(new: Tensor) -> Edit:
    def edit(value: Tensor) -> Tensor:
        if new.shape != value.shape:
            raise ValueError(say("other_shape", here=value.shape[-2], there=new.shape[-2]))
        return new.to(value.dtype)

    return edit


def _of_numbers(edit: Edit) -> Edit:
    def checked(value: Tensor) -> Tensor:
        if not value.is_floating_point():
            raise ValueError(say("no_numbers"))
        return edit(value)

    return checked


def that_fit(
    interventions: Sequence[Intervention], trace: Stages, other: Callable[[], Stages]
) -> tuple[tuple[Intervention, ...], tuple[str, ...]]:
    """Those that can be made of what a pass without them computed, and one sentence for each of the others."""
    fit, complaints = [], []
    for each in interventions:
        if complaint := problem_with(each, trace, other):
            complaints.append(say("left_out", intervention=each, complaint=complaint))
        else:
            fit.append(each)
    return tuple(fit), tuple(complaints)


def problem_with(intervention: Intervention, trace: Stages, other: Callable[[], Stages]) -> str:
    """Say in a few words why an intervention cannot be made of what a pass without it computed; "" where it can."""
    try:
        edits_of([intervention], other)[intervention.path](_value_in(trace, intervention.path))
    except ValueError as error:
        return str(error).rstrip(".")
    return ""


def joined(first: Mapping[str, Edit], second: Mapping[str, Edit]) -> dict[str, Edit]:
    """The edits of both, those of the second made after those of the first."""
    both = {path: in_turn(first[path], second[path]) for path in first.keys() & second.keys()}
    return {**first, **second, **both}
