"""Multi-head attention as heads with matrices of their own ("Attention Is All You Need", section 3.2.2).

The paper writes one matrix per head and concatenates what the heads find; ``MultiHeadAttention`` computes all heads
by one matrix that holds theirs side by side. Both are the same function.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention, scaled_dot_product_attention
from model.tracing import TracedModule


class OneHead(TracedModule):
    """One head alone: three linear layers of its own, then attention.

    Args:
        attention: whose head it is.
        head: its number; it takes copies of columns ``head * head_dim : (head + 1) * head_dim``.
    """

    def __init__(self, attention: MultiHeadAttention, head: int) -> None:
        super().__init__()
        columns = slice(head * attention.head_dim, (head + 1) * attention.head_dim)
        self.w_q = _columns_of(attention.w_q, columns)
        self.w_k = _columns_of(attention.w_k, columns)
        self.w_v = _columns_of(attention.w_v, columns)
        self.divisor = None if attention.scale_scores else 1.0

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, Tq, d_model), (B, Tk, d_model) twice, mask (B, 1, Tq, Tk) -> (B, Tq, head_dim)."""
        tap = self.tap
        q = tap("q", self.w_q(query)[:, None], "B H Tq Dh")
        k = tap("k", self.w_k(key)[:, None], "B H Tk Dh")
        v = tap("v", self.w_v(value)[:, None], "B H Tk Dh")
        context, _ = scaled_dot_product_attention(q, k, v, mask, divisor=self.divisor, tap=tap)
        return context[:, 0]


class SeparateHeads(TracedModule):
    """The heads of an attention one after the other, then concatenated and projected.

    Args:
        attention: whose weights it takes copies of; dropout is left out.
    """

    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.heads = nn.ModuleList(OneHead(attention, head) for head in range(attention.n_heads))
        self.w_o = attention.w_o

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """As ``MultiHeadAttention``; ``mask`` is (B, H, Tq, Tk)."""
        found = [
            head(query, key, value, None if mask is None else mask[:, number, None])
            for number, head in enumerate(self.heads)
        ]
        concat = self.tap("concat", torch.cat(found, -1), "B Tq H*Dh")
        return self.tap("output", concat if self.w_o is None else self.w_o(concat), "B Tq Do")


def _columns_of(layer: nn.Linear, columns: slice) -> nn.Linear:
    """A linear layer of its own for some of the outputs of another."""
    n_outputs = columns.stop - columns.start
    own = nn.Linear(layer.in_features, n_outputs, bias=layer.bias is not None, dtype=layer.weight.dtype)
    with torch.no_grad():
        own.weight.copy_(layer.weight[columns])
        if layer.bias is not None:
            own.bias.copy_(layer.bias[columns])
    return own
