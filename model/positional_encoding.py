"""How positions enter the model ("Attention Is All You Need", section 3.5)."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from model.config import Positions


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """The table of sines and cosines.

    ``table[t, 2i] = sin(t / 10000^(2i/d_model))`` and ``table[t, 2i+1] = cos`` of the same angle, so that a shift
    by any offset is one linear map of the table, the same at every position.

    Returns:
        (length, d_model), float64.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position / 10000.0 ** (even / d_model)
    table = torch.zeros(length, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


class SinusoidalPositions(nn.Module):
    """Fixed sinusoids, kept in float64 for models of any precision: length -> (length, d_model)."""

    formula: Final = (
        r"\begin{aligned} P_{t,2i} &= \sin (t / 10000^{2i/d}) \\ "
        r"P_{t,2i+1} &= \cos (t / 10000^{2i/d}) \end{aligned}"
    )
    table: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)

    def forward(self, length: int) -> Tensor:
        """The first ``length`` rows, (length, d_model)."""
        return self.table[:length]


class LearnedPositions(nn.Module):
    """One trained vector per position: length -> (length, d_model)."""

    formula: Final = r"P_t = W_P[t]"

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_len, d_model))

    def forward(self, length: int) -> Tensor:
        """The first ``length`` rows, (length, d_model)."""
        return self.table[:length]


class NoPositions(nn.Module):
    """Zeros: the model cannot tell positions apart. length -> (length, d_model)."""

    formula: Final = r"P_t = 0"
    table: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(max_len, d_model), persistent=False)

    def forward(self, length: int) -> Tensor:
        """The first ``length`` rows, (length, d_model)."""
        return self.table[:length]


POSITIONS: dict[Positions, type[SinusoidalPositions] | type[LearnedPositions] | type[NoPositions]] = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
    "none": NoPositions,
}
