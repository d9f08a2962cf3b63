"""One attention of a watched model: what it was called with, its mask, and its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headlight.call import Kind

Keep = Literal["shapes", "weights", "attentions", "all"]
Role = Literal["self", "encoder", "decoder", "cross"]
"""The part of an attention: that of a single stack, or one of the three of section 3.2.3 of the paper."""
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention of one pass, of B sequences and H heads, of Tq queries and Tk keys.

    Attributes:
        path: its name, that of its module; a later one in the same module is ``layers.0.attention:2``.
        module: the path of the module that it was computed in.
        kind: the function, or ``softmax`` where the model writes it out.
        query_shape: (B, H, Tq, Dh); of one that is written out, as the model has it.
        key_shape: (B, Hk, Tk, Dh), where Hk is smaller if the function itself shares keys among heads.
        value_shape: (B, Hk, Tk, Dv); () where the values were not seen.
        key_heads: how many different key heads there are; H where no two share one.
        dtype: the number type of the scores.
        scale: what the scores are multiplied by.
        is_causal: whether the function was told to hide later keys by its flag.
        dropout: the share of the weights that were dropped.
        allowed: bool, broadcastable to (B, H, Tq, Tk), True = may attend; None where nothing is blocked.
        bias: what is added to the scores beside the mask, broadcastable alike; None where nothing is.
        fill: what is added to the scores of blocked cells; None is -inf.
        weights: (B, H, Tq, Tk) before dropout; None where only shapes are kept.
        context: (B, H, Tq, Dv), the weights times the values, computed again; None where weights alone are kept.
        query: the queries; None where weights alone are kept, as ``key`` and ``value``.
        key: the keys.
        value: the values.
        difference: the largest difference between what the model went on with and the same from ``weights``; None
            where they cannot be compared, because of dropout, a choice of heads, or values that were not seen.
        remarks: what is wrong with how it is made.
        sinks: how many of the last keys are no tokens but take some of the weight, as an attention sink does.
        role: its part in the model.
    """

    path: str
    module: str
    kind: Kind
    query_shape: Shape
    key_shape: Shape
    value_shape: Shape
    shape: tuple[int, int, int, int]
    key_heads: int
    dtype: torch.dtype
    scale: float
    is_causal: bool
    dropout: float
    allowed: Tensor | None = None
    bias: Tensor | None = None
    fill: float | None = None
    weights: Tensor | None = None
    context: Tensor | None = None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    difference: float | None = None
    remarks: tuple[str, ...] = ()
    sinks: int = 0
    role: Role = "self"

    @property
    def n_heads(self) -> int:
        """H."""
        return self.shape[1]

    @property
    def is_cross(self) -> bool:
        """True if its keys come from another sequence than its queries."""
        return self.role == "cross"

    @property
    def is_decoding(self) -> bool:
        """True if its queries are those of a decoder beside an encoder."""
        return self.role in ("decoder", "cross")

    @property
    def nbytes(self) -> int:
        """The memory of what is kept, in bytes."""
        tensors = (self.allowed, self.bias, self.weights, self.context, self.query, self.key, self.value)
        return sum(tensor.untyped_storage().nbytes() for tensor in tensors if tensor is not None)
