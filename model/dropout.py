"""Dropout from an explicit random generator, so that a run can be repeated and no two runs disturb each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model.config import check_dropout


class Dropout(nn.Module):
    """Zero each element with probability ``p`` and scale the rest by 1 / (1 - p), in training mode only.

    Raises:
        ValueError: ``p`` is not in [0, 1).
        RuntimeError: dropout is to be drawn before ``seed_dropout`` gave the generator.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        check_dropout(p)
        self.p = p
        self.generator: torch.Generator | None = None

    @property
    def active(self) -> bool:
        """True if calling it changes anything."""
        return self.training and self.p > 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        if not self.active:
            return x
        if self.generator is None:
            raise RuntimeError("dropout needs a generator: call seed_dropout(model, seed) first")
        keep = 1.0 - self.p
        return x * torch.empty_like(x).bernoulli_(keep, generator=self.generator) / keep


def seed_dropout(model: nn.Module, seed: int) -> None:
    """Give every dropout of ``model`` one new generator."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, Dropout):
            module.generator = generator
