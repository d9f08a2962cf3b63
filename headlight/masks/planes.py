"""The axes of a mask in the place that it is passed to, and masks whose axes were mixed up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headlight.masks.mask_case import Severity
from model.texts import texts_of

say = texts_of(__name__)

Axes = tuple[str, ...]
"""The meaning of the axes before queries and keys: ``sequence``, ``head``, or both in one."""

BOTH = "sequence and head"


@dataclass(frozen=True)
class Remark:
    """One thing to know about the numbers of an array where it is passed to."""

    severity: Severity
    text: str


@dataclass(frozen=True, eq=False)
class Passed:
    """The mask that a function makes of an array.

    Attributes:
        allowed: (..., Tq, Tk) bool, True = may attend, in the axes of the array; (B, 1, Tk) for rows that are
            sequences; None where the function refuses the array.
        remarks: what is to be known beside the cells, or why it is refused; most severe first.
        fill: what is added to the scores of blocked cells; the weakest of several, None where nothing is.
        dtype: the number type that it is added in.
        axes: what the axes of ``allowed`` before the last two are.
    """

    allowed: Tensor | None
    remarks: tuple[Remark, ...] = ()
    fill: float | None = None
    dtype: torch.dtype | None = None
    axes: Axes = ()


def refused(reason: str) -> Passed:
    """An array that the place does not take."""
    return Passed(None, (Remark("error", reason),))


def of_sequences(found: Passed) -> Passed:
    """One row for each sequence: (B, 1, Tk)."""
    if found.allowed is None or found.allowed.dim() > 2:
        shape = () if found.allowed is None else tuple(found.allowed.shape)
        return refused(say("one_row", shape=shape))
    rows = found.allowed.reshape(-1, 1, found.allowed.shape[-1])
    return replace(found, allowed=rows, axes=("sequence",))


def of_queries(found: Passed, rows: Tensor, leading: tuple[Axes, ...], n_heads: int) -> Passed:
    """A row for each query: (Tq, Tk) behind one of the axes that the place takes.

    Args:
        found: what the place makes of the entries.
        rows: (..., Tq, Tk), the cells.
        leading: what the axes before the last two can be.
        n_heads: how many heads the attention has, where one axis is both sequences and heads.
    """
    n_leading = rows.dim() - 2
    axes = next((axes for axes in leading if len(axes) == n_leading), None)
    if axes is None:
        known = " or ".join(_shape_of(axes) for axes in leading)
        return refused(say("refuses", known=known, dims=rows.dim(), shape=tuple(rows.shape)))
    if BOTH not in axes:
        return replace(found, axes=axes)
    count = len(rows)
    if count % n_heads:
        return refused(say("no_multiple", count=count, n_heads=n_heads))
    split = rows.reshape(count // n_heads, n_heads, *rows.shape[1:])
    return replace(found, allowed=split, axes=("sequence", "head"))


def _shape_of(axes: Axes) -> str:
    letters = {"sequence": "B", "head": "H", BOTH: "B * n_heads"}
    return f"({', '.join([*(letters[axis] for axis in axes), 'Tq', 'Tk'])})"
