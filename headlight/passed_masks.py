"""Masks as models pass them, read back: what is blocked, by which number, and what is a bias and no mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

Remark = Literal["nan_in_mask", "ones_and_zeros", "scores_changed", "multiplied_by_zero", "two_fills", "not_read"]

LOWEST = -1e4
"""An added number that is this low stands for a blocked cell: it is the highest that libraries have used for it."""

_CLEARLY_LOW = -20.0
"""An added number below this stands for a blocked cell where all others are 0."""


@dataclass(frozen=True, eq=False)
class ReadMask:
    """The effect of a mask on the scores.

    Attributes:
        allowed: bool, True = may attend, with the axes of what was passed; None where nothing is blocked.
        bias: what is added to the scores of allowed cells, 0 at the others; None where nothing is.
        fill: what is added to the scores of blocked cells; None is -inf.
        remark: what is wrong with the numbers themselves; None where nothing is.
    """

    allowed: Tensor | None = None
    bias: Tensor | None = None
    fill: float | None = None
    remark: Remark | None = None


def read_mask(mask: Tensor | None) -> ReadMask:
    """A mask of ``F.scaled_dot_product_attention``: boolean, True = may attend, or added to the scores."""
    if mask is None:
        return ReadMask()
    if mask.dtype is torch.bool:
        return ReadMask(allowed=None if bool(mask.all()) else mask)
    return read_added(mask)


def read_added(added: Tensor) -> ReadMask:
    """Numbers that are added to the scores.

    Cells at ``LOWEST`` or below are blocked. So are the cells with the lower one of two numbers, if the other is 0
    and it is low enough to be meant for that, such as -100. The rest is a bias.
    """
    if not added.numel():
        return ReadMask()
    lowest, highest = (float(extreme) for extreme in torch.aminmax(added.float()))
    if math.isnan(lowest) or math.isnan(highest):
        blocked = added == -math.inf
        return ReadMask(~blocked if bool(blocked.any()) else None, bias=added, remark="nan_in_mask")
    if lowest == highest == 0.0:
        return ReadMask()
    has_two = bool(((added == lowest) | (added == highest)).all())
    if lowest <= LOWEST or (has_two and lowest <= _CLEARLY_LOW and highest == 0.0):
        return _with_blocked(added, added <= max(LOWEST, lowest))
    return ReadMask(bias=added, remark="ones_and_zeros" if (lowest, highest) == (0.0, 1.0) and has_two else None)


def _with_blocked(added: Tensor, blocked: Tensor) -> ReadMask:
    lowest_fill, highest_fill = (float(extreme) for extreme in torch.aminmax(added[blocked].float()))
    rest = added.masked_fill(blocked, 0.0)
    return ReadMask(
        allowed=~blocked,
        bias=rest if bool(rest.any()) else None,
        fill=None if highest_fill == -math.inf else highest_fill,
        remark="two_fills" if lowest_fill == -math.inf < highest_fill else None,
    )


def both(one: ReadMask, other: ReadMask) -> ReadMask:
    """Two masks on the same scores, broadcast against each other."""
    fills = [read.fill for read in (one, other) if read.allowed is not None]
    highest = max((-math.inf if fill is None else fill for fill in fills), default=-math.inf)
    return ReadMask(
        allowed=_joined(one.allowed, other.allowed, torch.logical_and),
        bias=_joined(one.bias, other.bias, torch.add),
        fill=None if highest == -math.inf else highest,
        remark=one.remark or other.remark,
    )


_SURELY_LOW = LOWEST / 2
"""A score below this is a blocked cell's, whatever stood there before a fill was added."""


def held(read: ReadMask, scores: Tensor) -> ReadMask:
    """A mask that was read, held against the scores that the softmax was given.

    Where these block other cells than it says, they are right: then the mask is what they show. Scores that are
    NaN, as in every layer after a query without a key, show nothing.
    """
    hidden = scores <= _SURELY_LOW
    is_low = read.fill is None or read.fill <= _SURELY_LOW
    allowed = read.allowed if is_low else None
    if allowed is not None:
        hidden |= scores.isnan() & ~allowed
    if not bool((hidden if allowed is None else hidden == allowed).any()):
        return read
    if allowed is not None and not bool((hidden & allowed).any()):
        lowered = float(scores.masked_fill(allowed, -math.inf).max())
        if lowered <= _CLEARLY_LOW:  # what stood there was changed after it was filled in, as by a soft cap
            return replace(read, fill=lowered)
    if not bool(hidden.any()):
        return replace(read, allowed=None, fill=None)
    fill = float(scores[hidden].max())
    return replace(read, allowed=without_repeats(~hidden), fill=None if fill == -math.inf else fill)


def has_unexplained_zeros(weights: Tensor, scores: Tensor, axis: int) -> bool:
    """True where weights are zero because of scores that no mask explains: far below others, but not blocked."""
    highest = scores.amax(axis, keepdim=True)
    return bool(((weights == 0) & (scores > _SURELY_LOW) & (highest > _SURELY_LOW)).any())


def without_repeats(cells: Tensor) -> Tensor:
    """The same with size 1 along the axes before the last two along which nothing changes."""
    for axis in range(cells.dim() - 2):
        first = cells.narrow(axis, 0, 1)
        if bool((cells == first).all()):
            cells = first
    return cells


def compact(cells: Tensor) -> Tensor:
    """The same with size 1 along the axes along which it was expanded."""
    for axis, step in enumerate(cells.stride()):
        cells = cells.narrow(axis, 0, 1) if step == 0 and cells.shape[axis] > 1 else cells
    return cells


def _joined(one: Tensor | None, other: Tensor | None, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return join(one, other)
