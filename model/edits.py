"""Interventions: functions for ``record(model, edits={path: edit})``; each works at every path whose shape fits."""

from __future__ import annotations

import torch
from torch import Tensor

from model.tracing import Edit


def ablate_head(head: int) -> Edit:
    """Zero one head of a tensor with a head axis, (B, H, ..., ...); at ``context`` it removes the head's part.

    Raises:
        ValueError: when applied, if there is no such head or no head axis.
    """

    def edit(value: Tensor) -> Tensor:
        if value.dim() != 4:
            raise ValueError(f"a head can be ablated in a (B, H, T, ...) tensor, not in one of {value.dim()} axes")
        if not 0 <= head < value.shape[1]:
            raise ValueError(f"head ({head}) must be from 0 to {value.shape[1] - 1}")
        keep = torch.ones(value.shape[1], dtype=value.dtype, device=value.device)
        keep[head] = 0
        return value * keep[:, None, None]

    return edit


def replace(new: Tensor) -> Edit:
    """Put ``new`` in the tensor's place; it must have the same shape."""
    return lambda value: new


def scale(factor: float) -> Edit:
    """Multiply the tensor by ``factor``."""
    return lambda value: value * factor
