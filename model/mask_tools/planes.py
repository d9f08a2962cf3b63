"""What the axes of a mask are in the place that it is passed to, and masks whose axes were mixed up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.mask_tools.mask_case import Severity

Axes = tuple[str, ...]
"""What the axes before queries and keys are: ``sequence``, ``head``, or both in one."""

BOTH = "sequence and head"


@dataclass(frozen=True)
class Remark:
    """One thing to know about the numbers of an array where it is passed to."""

    severity: Severity
    text: str


@dataclass(frozen=True, eq=False)
class Passed:
    """What a function makes of an array.

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


def of_sequences(found: Passed) -> Passed:
    """One row for each sequence: (B, 1, Tk)."""
    if found.allowed is None or found.allowed.dim() > 2:
        shape = () if found.allowed is None else tuple(found.allowed.shape)
        text = f"This place takes one row for each sequence, (B, Tk), and refuses the shape {shape}."
        return Passed(None, (Remark("error", text),))
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
        text = f"This place takes {known}, and refuses an array of {rows.dim()} axes, {tuple(rows.shape)}."
        return Passed(None, (Remark("error", text),))
    remarks = (*found.remarks, *_rows_like_padding(rows))
    if BOTH not in axes:
        return replace(found, axes=axes, remarks=remarks)
    count = len(rows)
    if count % n_heads:
        text = (
            f"This place takes (B * n_heads, Tq, Tk), and {count} is no multiple of {n_heads} heads. One mask for "
            f"each sequence is repeated for its heads by mask.repeat_interleave({n_heads}, 0)."
        )
        return Passed(None, (Remark("error", text),))
    split = rows.reshape(count // n_heads, n_heads, *rows.shape[1:])
    return replace(found, allowed=split, axes=("sequence", "head"), remarks=(*remarks, *_tiled(split)))


def _shape_of(axes: Axes) -> str:
    letters = {"sequence": "B", "head": "H", BOTH: "B * n_heads"}
    return f"({', '.join([*(letters[axis] for axis in axes), 'Tq', 'Tk'])})"


def _tiled(split: Tensor) -> tuple[Remark, ...]:
    """Masks of (B, H, Tq, Tk) that were laid out with the heads outside, as ``repeat`` does."""
    n_sequences, n_heads = split.shape[:2]
    if bool((split == split[:, :1]).all()) or min(n_sequences, n_heads) < 2:
        return ()
    other = split.reshape(n_heads, n_sequences, *split.shape[2:])
    if not bool((other == other[:1]).all()):
        return ()
    text = (
        f"Entry b * {n_heads} + h is head h of sequence b, so the heads of one sequence get different masks here. "
        "If each sequence has one mask for all its heads, write mask.repeat_interleave(n_heads, 0) and not "
        "mask.repeat(n_heads, 1, 1)."
    )
    return (Remark("note", text),)


def _rows_like_padding(rows: Tensor) -> tuple[Remark, ...]:
    """Rows that each begin open and end blocked, or the other way round, with no order in where: padding."""
    n_rows, n_keys = rows.shape[-2:]
    if rows.dim() != 2 or n_rows in (1, n_keys) or not bool(rows.any(-1).all()) or bool(rows.all()):
        return ()
    changes = rows.int().diff(dim=-1)
    at_the_end, at_the_start = bool((changes <= 0).all()), bool((changes >= 0).all())
    lengths = rows.sum(-1)
    if not (at_the_end or at_the_start) or bool((lengths.diff() == 1).all()):
        return ()
    text = (
        f"The {n_rows} rows are taken for queries here. If they look like the padding of {n_rows} sequences "
        "because they are, (B, Tk), give mask[:, None, None, :], which is (B, 1, 1, Tk)."
    )
    return (Remark("note", text),)
