"""Positional encoding: how positions enter the model ("Attention Is All You Need", section 3.5)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model.config import Positions


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """The table of sines and cosines.

    ``table[t, 2i] = sin(t / 10000^(2i/d_model))`` and ``table[t, 2i+1] = cos`` of the same angle, so that a shift
    by any offset is one linear map of the table, the same at every position.

    Returns:
        (length, d_model), float64.

    >>> sinusoidal_encoding(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 1.0000]], dtype=torch.float64)
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position / 10000.0 ** (even / d_model)
    table = torch.zeros(length, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


def positions_from_first_token(is_padding: Tensor) -> Tensor:
    """Return the position of each token, counted from the first that is no padding.

    So a text has the same positions whether it is padded on the left or not. The padding before it stands at 0 like
    its first token; after it the count goes on.

    Args:
        is_padding: (..., T), True = padding.

    Returns:
        (..., T), int64.

    >>> positions_from_first_token(torch.tensor([True, True, False, False]))
    tensor([0, 0, 0, 1])
    """
    n_before = is_padding.cumprod(-1).sum(-1, keepdim=True)
    return (torch.arange(is_padding.shape[-1]) - n_before).clamp_min(0)


class SinusoidalPositions(nn.Module):
    """Fixed sinusoids, kept in float64 for models of any precision: positions (...) -> (..., d_model)."""

    table: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """The rows of the table at some positions, (...) int64 -> (..., d_model)."""
        return self.table[positions]


class LearnedPositions(nn.Module):
    """One trained vector per position: positions (...) -> (..., d_model)."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_len, d_model))

    def forward(self, positions: Tensor) -> Tensor:
        """The rows of the table at some positions, (...) int64 -> (..., d_model)."""
        return self.table[positions]


class NoPositions(nn.Module):
    """Zeros: the model cannot tell positions apart. positions (...) -> (..., d_model)."""

    table: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(max_len, d_model), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """The rows of the table at some positions, (...) int64 -> (..., d_model)."""
        return self.table[positions]


POSITIONS: dict[Positions, type[SinusoidalPositions] | type[LearnedPositions] | type[NoPositions]] = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
    "none": NoPositions,
}
