"""Scaled dot-product and multi-head attention ("Attention Is All You Need", section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from model import fused_projection
from model.config import width_of_head
from model.dropout import Dropout
from model.fused_projection import Projection, thirds
from model.tracing import Tap, TracedModule, untapped


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    divisor: float | None = None,
    score_mod: Callable[[Tensor], Tensor] | None = None,
    dropout: Dropout | None = None,
    tap: Tap = untapped,
) -> tuple[Tensor, Tensor]:
    """softmax(q k^T / sqrt(d_k)) v (section 3.2.1, equation 1).

    Args:
        q: queries, (B, H, Tq, Dk).
        k: keys, (B, H, Tk, Dk).
        v: values, (B, H, Tk, Dh).
        mask: boolean, True = may attend, broadcastable to (B, H, Tq, Tk).
        divisor: what the scores are divided by; sqrt(Dk) unless given.
        score_mod: changes the scaled scores, (B, H, Tq, Tk), before they are masked: ALiBi, soft-capping, ...
        dropout: applied to the weights.
        tap: names the stages.

    Returns:
        The context (B, H, Tq, Dh) and the weights (B, H, Tq, Tk) before dropout. A query that may attend to no key
        has weights of exactly zero.

    >>> q, k, v = torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), torch.tensor([[[[1.0], [3.0]]]])
    >>> context, weights = scaled_dot_product_attention(q, k, v, torch.tensor([[True, False], [True, True]]))
    >>> weights[0, 0]
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    >>> context[0, 0]
    tensor([[1.],
            [2.]])
    """
    scores = tap("scores", q @ k.mT, "B H Tq Tk")
    if divisor is None:
        scaled_scores = tap("scaled_scores", scores / math.sqrt(q.shape[-1]), "B H Tq Tk")
    else:
        scaled_scores = tap("scaled_scores", scores / divisor, "B H Tq Tk")
    if score_mod is not None:
        scaled_scores = tap("modified_scores", score_mod(scaled_scores), "B H Tq Tk")
    if mask is None:
        masked_scores = tap("masked_scores", scaled_scores, "B H Tq Tk")
        weights = tap("weights", masked_scores.softmax(-1), "B H Tq Tk")
    else:
        mask = tap("mask", mask.expand_as(scores), "B H Tq Tk")
        masked_scores = tap("masked_scores", scaled_scores.masked_fill(~mask, -math.inf), "B H Tq Tk")
        has_key = mask.any(-1, keepdim=True)
        weights = tap("weights", masked_scores.softmax(-1).masked_fill(~has_key, 0.0), "B H Tq Tk")
    if dropout is not None and dropout.active:
        dropped_weights = tap("dropped_weights", dropout(weights), "B H Tq Tk")
        context = tap("context", dropped_weights @ v, "B H Tq Dh")
    else:
        context = tap("context", weights @ v, "B H Tq Dh")
    return context, weights


class MultiHeadAttention(TracedModule):
    """Attention in ``n_heads`` subspaces at once (section 3.2.2).

    Head i owns columns ``i * head_dim : (i + 1) * head_dim`` of the projections.

    Args:
        d_model: width of the inputs.
        n_heads: number of heads.
        head_dim: width of one head; d_model / n_heads unless given.
        d_out: width of the output; d_model unless given. Only an output projection can change the width.
        bias: whether the projections to queries, keys and values add a bias.
        output_bias: whether the output projection does; as ``bias`` unless given.
        fused_qkv: whether one matrix makes queries, keys and values, as in ``nn.MultiheadAttention``.
        output_projection: whether ``w_o`` follows; without it the output is the heads side by side.
        scale_scores: divide the scores by sqrt(head_dim).
        dropout: probability of dropping an attention weight.

    Attributes:
        score_mod: changes the scaled scores, (B, H, Tq, Tk), before they are masked; None leaves them.

    Raises:
        ValueError: n_heads does not divide d_model and no head_dim is given, one of them is below 1, or d_out
            cannot be reached.

    >>> attention = MultiHeadAttention(d_model=8, n_heads=2)
    >>> x = torch.zeros(1, 3, 8)
    >>> attention(x, x, x).shape
    torch.Size([1, 3, 8])
    >>> MultiHeadAttention(d_model=10, n_heads=4)
    Traceback (most recent call last):
    ValueError: d_model (10) must be divisible by n_heads (4): try 8 or 12
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        head_dim: int | None = None,
        d_out: int | None = None,
        bias: bool = True,
        output_bias: bool | None = None,
        fused_qkv: bool = False,
        output_projection: bool = True,
        scale_scores: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        head_dim = width_of_head(d_model, n_heads, head_dim)
        d_inner = n_heads * head_dim
        if d_out is None:
            d_out = d_model if output_projection else d_inner
        if not output_projection and d_out != d_inner:
            raise ValueError(f"d_out ({d_out}) must be n_heads * head_dim ({d_inner}) without an output projection")
        output_bias = bias if output_bias is None else output_bias
        self.n_heads, self.head_dim, self.scale_scores = n_heads, head_dim, scale_scores
        self.fused_qkv = fused_qkv
        if fused_qkv:
            self.w_qkv = nn.Linear(d_model, 3 * d_inner, bias=bias)
        else:
            self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_inner, bias=bias) for _ in range(3))
        self.w_o = nn.Linear(d_inner, d_out, bias=output_bias) if output_projection else None
        self.score_mod: Callable[[Tensor], Tensor] | None = None
        self.dropout = Dropout(dropout)
        self.inner_symbol = "D" if d_inner == d_model else "H*Dh"
        self.output_symbol = "D" if d_out == d_model else "Do"

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from ``query`` to ``key`` and ``value``.

        Args:
            query: (B, Tq, d_model).
            key: (B, Tk, d_model).
            value: (B, Tk, d_model).
            mask: boolean, True = may attend, broadcastable to (B, H, Tq, Tk).

        Returns:
            (B, Tq, d_out).
        """
        tap, inner = self.tap, self.inner_symbol
        query = tap("query_input", query, "B Tq D")
        key = tap("key_input", key, "B Tk D")
        value = tap("value_input", value, "B Tk D")
        if self.fused_qkv:
            q_proj, k_proj, v_proj = fused_projection.project(self.w_qkv, query, key, value, width=inner, tap=tap)
        else:
            q_proj = tap("q_proj", self.w_q(query), f"B Tq {inner}")
            k_proj = tap("k_proj", self.w_k(key), f"B Tk {inner}")
            v_proj = tap("v_proj", self.w_v(value), f"B Tk {inner}")
        heads = (self.n_heads, self.head_dim)
        q = tap("q", torch.unflatten(q_proj, -1, heads).transpose(1, 2), "B H Tq Dh")
        k = tap("k", torch.unflatten(k_proj, -1, heads).transpose(1, 2), "B H Tk Dh")
        v = tap("v", torch.unflatten(v_proj, -1, heads).transpose(1, 2), "B H Tk Dh")
        divisor = None if self.scale_scores else 1.0
        context, _ = scaled_dot_product_attention(
            q, k, v, mask, divisor=divisor, score_mod=self.score_mod, dropout=self.dropout, tap=tap
        )
        concat = tap("concat", context.transpose(1, 2).flatten(-2), f"B Tq {inner}")
        if self.w_o is None:
            return tap("output", concat, f"B Tq {inner}")
        return tap("output", self.w_o(concat), f"B Tq {self.output_symbol}")

    def projections(self) -> tuple[Projection | nn.Linear, ...]:
        """What makes queries, keys and values, each with a weight (H * Dh, d_model) and a bias, fused or not."""
        return thirds(self.w_qkv) if self.fused_qkv else (self.w_q, self.w_k, self.w_v)
