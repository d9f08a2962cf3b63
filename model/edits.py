"""Interventions: functions for ``record(model, edits={path: edit})``; each works at every path whose shape fits."""

from __future__ import annotations

import torch
from torch import Tensor

from model.tracing import Edit


def zero(value: Tensor) -> Tensor:
    """Zeros in the tensor's place: what it says is left out (Michel et al. 2019, "Are Sixteen Heads Really Better
    than One?", 2.2, for heads).
    """
    return torch.zeros_like(value)


def mean_over_rows(value: Tensor) -> Tensor:
    """The mean of all rows, (..., rows, columns), in the place of each: what differs between tokens is left out.

    Raises:
        ValueError: the tensor has no rows, or holds what has no mean.
    """
    if value.dim() < 2 or not value.is_floating_point():
        raise ValueError("a mean over rows needs rows of floating-point numbers")
    return value.mean(dim=-2, keepdim=True).expand_as(value)


def replace(new: Tensor) -> Edit:
    """Put ``new`` in the tensor's place; it must have the same shape.

    What another run computed there is patched in so (Vig et al. 2020, "Investigating Gender Bias in Language Models
    Using Causal Mediation Analysis", 3).
    """
    return lambda value: new


def only(edit: Edit, *, head: int | None = None, row: int | None = None) -> Edit:
    """An edit of one head of a (B, H, rows, ...) tensor, of one row of a (..., rows, columns) one, or of both.

    Raises:
        ValueError: when applied, if there is no such head, no such row, or no head axis.
    """

    def edit_part(value: Tensor) -> Tensor:
        place = [slice(None)] * value.dim()
        if head is not None:
            if value.dim() != 4:
                raise ValueError(f"only a (B, H, T, ...) tensor has heads, not one of {value.dim()} axes")
            place[1] = _one("head", head, value.shape[1])
        if row is not None:
            place[-2] = _one("row", row, value.shape[-2])
        is_edited = torch.zeros_like(value, dtype=torch.bool)
        is_edited[tuple(place)] = True
        return torch.where(is_edited, edit(value), value)

    return edit_part


def _one(axis: str, index: int, size: int) -> slice:
    if not 0 <= index < size:
        raise ValueError(f"{axis} ({index}) must be from 0 to {size - 1}")
    return slice(index, index + 1)
