"""Adam (Kingma and Ba 2015, algorithm 1) by PyTorch's own kernel, without what ``torch.optim.Adam`` loads.

The class brings all of torch.compile into the process, which takes a second before the first step.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

BETAS = (0.9, 0.98)
EPSILON = 1e-8


class Adam:
    """The same steps as ``torch.optim.Adam(parameters, betas=BETAS, eps=EPSILON, fused=True)``, bit for bit."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._parameters = list(parameters)
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = [torch.zeros(()) for _ in self._parameters]

    @torch.no_grad()
    def step(self, loss: Tensor, learning_rate: float) -> None:
        """Change every parameter against the gradient of ``loss``, which must depend on each."""
        adam(
            self._parameters,
            list(torch.autograd.grad(loss, self._parameters)),
            self._means,
            self._squares,
            [],
            self._steps,
            fused=True,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=learning_rate,
            weight_decay=0.0,
            eps=EPSILON,
            maximize=False,
        )
