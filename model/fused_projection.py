"""Queries, keys and values by one matrix instead of three, as in ``nn.MultiheadAttention`` and GPT-2.

Its rows are those of ``w_q``, ``w_k`` and ``w_v``, one under the other, so that the products are the same. One of
them computes all that has one input: the three in self-attention; keys and values in cross-attention, whose queries
come from another sequence.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from model.tracing import Tap


class Projection(NamedTuple):
    """A matrix (d_out, d_in) and a bias (d_out,), or None, as ``nn.Linear`` holds them."""

    weight: Tensor
    bias: Tensor | None


def thirds(w_qkv: nn.Linear) -> tuple[Projection, Projection, Projection]:
    """The parts of a fused projection that make the queries, the keys and the values, as views."""
    w_q, w_k, w_v = w_qkv.weight.chunk(3)
    b_q, b_k, b_v = (None, None, None) if w_qkv.bias is None else w_qkv.bias.chunk(3)
    return Projection(w_q, b_q), Projection(w_k, b_k), Projection(w_v, b_v)


def projections_of(attention: nn.Module) -> tuple[Projection, ...]:
    """Return the projections to the queries, the keys and the values of a ``MultiHeadAttention``, fused or not."""
    layers = {name: layer for name, layer in attention.named_children() if isinstance(layer, nn.Linear)}
    if "w_qkv" in layers:
        return thirds(layers["w_qkv"])
    return tuple(Projection(layers[name].weight, layers[name].bias) for name in ("w_q", "w_k", "w_v"))


def project(
    w_qkv: nn.Linear, query: Tensor, key: Tensor, value: Tensor, *, width: str, tap: Tap
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of all heads side by side.

    Args:
        w_qkv: (3 * H * Dh, d_model).
        query: (B, Tq, d_model); with ``key`` and ``value`` the very same tensor in self-attention.
        key: (B, Tk, d_model).
        value: (B, Tk, d_model).
        width: the symbol of H * Dh.
        tap: names the stages.

    Returns:
        (B, Tq, H * Dh), and twice (B, Tk, H * Dh).
    """
    n = w_qkv.out_features // 3
    if query is key and key is value:
        qkv = tap("qkv", w_qkv(query), f"B Tq 3*{width}")
        q_proj = tap("q_proj", qkv[..., :n], f"B Tq {width}")
        k_proj = tap("k_proj", qkv[..., n : 2 * n], f"B Tk {width}")
        v_proj = tap("v_proj", qkv[..., 2 * n :], f"B Tk {width}")
        return q_proj, k_proj, v_proj
    (w_q, b_q), (w_k, b_k), (w_v, b_v) = thirds(w_qkv)
    q_proj = tap("q_proj", F.linear(query, w_q, b_q), f"B Tq {width}")
    if key is value:
        w_kv, b_kv = w_qkv.weight[n:], None if w_qkv.bias is None else w_qkv.bias[n:]
        kv = tap("kv", F.linear(key, w_kv, b_kv), f"B Tk 2*{width}")
        k_proj = tap("k_proj", kv[..., :n], f"B Tk {width}")
        v_proj = tap("v_proj", kv[..., n:], f"B Tk {width}")
    else:
        k_proj = tap("k_proj", F.linear(key, w_k, b_k), f"B Tk {width}")
        v_proj = tap("v_proj", F.linear(value, w_v, b_v), f"B Tk {width}")
    return q_proj, k_proj, v_proj
