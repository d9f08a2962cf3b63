"""Scaled dot-product and multi-head attention ("Attention Is All You Need", section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from model.config import attention_widths
from model.dropout import Dropout
from model.fused_projection import project
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

    From queries (B, H, Tq, Dk), keys (B, H, Tk, Dk) and values (B, H, Tk, Dh) to the context (B, H, Tq, Dh) and the
    weights (B, H, Tq, Tk) before ``dropout``; those of a query that may attend to no key are exactly zero. ``mask``
    is boolean, True = may attend, broadcastable to the weights. The scores are divided by ``divisor``, sqrt(Dk)
    unless given, then changed by ``score_mod`` (ALiBi, soft caps, ...); ``tap`` names the stages.

    >>> q, k, v = torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), torch.tensor([[[[1.0], [3.0]]]])
    >>> context, weights = scaled_dot_product_attention(q, k, v, torch.tensor([[True, False], [True, True]]))
    >>> weights[0, 0].tolist(), context[0, 0].tolist()
    ([[1.0, 0.0], [0.5, 0.5]], [[1.0], [2.0]])
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
        masked_scores = tap("masked_scores", scaled_scores.where(mask, -math.inf), "B H Tq Tk")
        weights = tap("weights", masked_scores.softmax(-1).where(mask, 0.0), "B H Tq Tk")
    if dropout is None or not dropout.active:
        return tap("context", weights @ v, "B H Tq Dh"), weights
    dropped_weights = tap("dropped_weights", dropout(weights), "B H Tq Tk")
    return tap("context", dropped_weights @ v, "B H Tq Dh"), weights


class MultiHeadAttention(TracedModule):
    """Attention in ``n_heads`` subspaces at once (section 3.2.2).

    Head i owns columns ``i * head_dim : (i + 1) * head_dim`` of the projections. The arguments are the fields of
    ``TransformerConfig``, and refused as those are; ``bias`` is that of queries, keys and values. Without
    ``output_projection`` the output is the heads side by side. ``score_mod``, once set, changes the scaled scores.
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
        head_dim, d_inner, d_out = attention_widths(d_model, n_heads, head_dim, d_out, output_projection)
        self.n_heads, self.head_dim, self.scale_scores, self.fused_qkv = n_heads, head_dim, scale_scores, fused_qkv
        if fused_qkv:
            self.w_qkv = nn.Linear(d_model, 3 * d_inner, bias=bias)
        else:
            self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_inner, bias=bias) for _ in range(3))
        output_bias = bias if output_bias is None else output_bias
        self.w_o = nn.Linear(d_inner, d_out, bias=output_bias) if output_projection else None
        self.score_mod: Callable[[Tensor], Tensor] | None = None
        self.dropout = Dropout(dropout)
        self.inner_symbol = "D" if d_inner == d_model else "H*Dh"
        self.output_symbol = "D" if d_out == d_model else "Do"

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, Tq, d_model), (B, Tk, d_model) twice -> (B, Tq, d_out); ``mask`` as of the function above."""
        tap, inner, heads = self.tap, self.inner_symbol, (self.n_heads, self.head_dim)
        query = tap("query_input", query, "B Tq D")
        key = tap("key_input", key, "B Tk D")
        value = tap("value_input", value, "B Tk D")
        if self.fused_qkv:
            q_proj, k_proj, v_proj = project(self.w_qkv, query, key, value, width=inner, tap=tap)
        else:
            q_proj = tap("q_proj", self.w_q(query), f"B Tq {inner}")
            k_proj = tap("k_proj", self.w_k(key), f"B Tk {inner}")
            v_proj = tap("v_proj", self.w_v(value), f"B Tk {inner}")
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
