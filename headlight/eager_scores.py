"""Scores of a pass, and what was done to them on the way to the softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from headlight.origins import UNKNOWN, Origins
from headlight.passed_masks import ReadMask, both, compact, read_added

Move = Callable[[Tensor], Tensor]
Role = Literal["query", "key", "shared"]


@dataclass(frozen=True, eq=False)
class Axes:
    """The axes of a tensor that are those of an earlier one: told by a view of it that has no numbers but strides.

    Attributes:
        start: the shape of the earlier one.
        view: its view, on the device ``meta``; None where numbers were put into another order.
    """

    start: torch.Size
    view: Tensor | None

    @staticmethod
    def of(shape: torch.Size) -> Axes:
        """Those of a tensor itself."""
        return Axes(shape, torch.empty(shape, device="meta"))

    def moved(self, move: Move) -> Axes:
        """Those after a change of shape."""
        if self.view is None:
            return self
        try:
            view = move(self.view)
        except RuntimeError:  # it takes numbers to be moved so
            return replace(self, view=None)
        is_view = view.untyped_storage()._cdata == self.view.untyped_storage()._cdata
        return replace(self, view=view if is_view else None)

    def origin(self, axis: int) -> int | None:
        """The axis of the earlier tensor that one is; None where it is of several, or unknown."""
        if self.view is None:
            return None
        stride, size = self.view.stride(axis), self.view.shape[axis]
        strides = [math.prod(self.start[i + 1 :]) for i in range(len(self.start))]
        found = [i for i, of_start in enumerate(strides) if of_start == stride and size <= self.start[i]]
        return found[-1] if found else None

    def is_new(self, axis: int) -> bool:
        """True if an axis of size 1 was put beside all those of the earlier tensor."""
        if self.view is None or self.view.shape[axis] > 1 or self.view.dim() <= len(self.start):
            return False
        others = {self.origin(other) for other in range(self.view.dim()) if other != axis % self.view.dim()}
        return others >= {i for i, size in enumerate(self.start) if size > 1}

    def first(self, axis: int) -> int:
        """The first place along an axis of the view."""
        origin = self.origin(axis)
        if self.view is None or origin is None:
            return 0
        return self.view.storage_offset() // max(1, self.view.stride(axis)) % self.start[origin]


@dataclass(frozen=True, eq=False)
class Step:
    """One change of scores.

    Attributes:
        change: what was done; ``other`` is a function of which no mask can be read.
        cells: what was added or multiplied, or where True the cells that were filled, in the shape of the scores.
        number: what they were filled with, or what the added numbers were multiplied with first.
        name: the other function.
    """

    change: Literal["added", "filled", "multiplied", "other"]
    cells: Tensor | None = None
    number: float = 1.0
    name: str = ""


@dataclass(frozen=True, eq=False)
class Scores:
    """A product of queries (..., Tq, Dh) and keys (..., Tk, Dh), and what was done to it since.

    Attributes:
        query: the queries.
        key: the keys.
        roles: the axes of the product.
        scale: what it is multiplied by.
        steps: what was done to it, in order.
        origins: what both were computed from.
    """

    query: Tensor
    key: Tensor
    roles: tuple[Role, ...]
    scale: float = 1.0
    steps: tuple[Step, ...] = ()
    origins: Origins = UNKNOWN

    def then(self, step: Step) -> Scores:
        """The scores after one more change."""
        return replace(self, steps=(*self.steps, step))

    def read(self, read: Callable[[Tensor], ReadMask] = read_added) -> ReadMask:
        """Read the mask of the scores, broadcastable to the last of them.

        Args:
            read: reads numbers that were added.
        """
        found, zeros = ReadMask(), None
        for step in self.steps:
            if step.cells is None:
                found = replace(found, remark=found.remark or "scores_changed")
                continue
            cells = compact(step.cells)
            if step.change == "added":
                found = both(found, read(cells if step.number == 1.0 else cells * step.number))
            elif step.change == "filled":
                fill = None if step.number == -math.inf else step.number
                found = both(found, ReadMask(allowed=~cells, fill=fill) if bool(cells.any()) else ReadMask())
            else:
                zeros = cells == 0
        if zeros is not None and bool((zeros if found.allowed is None else zeros & found.allowed).any()):
            found = replace(found, remark=found.remark or "multiplied_by_zero")
        return found

    def moved(self, move: Move) -> Scores:
        """The scores in another shape."""
        steps = (step if step.cells is None else replace(step, cells=move(step.cells)) for step in self.steps)
        return replace(self, steps=tuple(steps))


@dataclass(frozen=True, eq=False)
class Exponentials:
    """The exponentials of scores, which become weights when they are divided by their sum.

    Attributes:
        scores: where the scores came from.
        masked: the scores, -inf where an exponential was multiplied by zero.
        axis: the axis that they were normalised along before; None where they were not.
    """

    scores: Scores
    masked: Tensor
    axis: int | None = None

    def without(self, blocked: Tensor) -> Exponentials:
        """The same with zeros in some cells, bool in the shape of the scores."""
        scores = self.scores.then(Step("filled", blocked, -math.inf))
        return replace(self, scores=scores, masked=self.masked.masked_fill(blocked, -math.inf))


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of exponentials along an axis, or its logarithm."""

    axis: int
