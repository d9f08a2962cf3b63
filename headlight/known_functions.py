"""The functions of PyTorch that are an attention, each read into a ``Call``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.call import Call, broadcast_axes, broadcast_shapes, four_axes
from headlight.modules import Arguments, Keywords

Reader = Callable[[Arguments, Keywords, Any], Call]

_ATEN = torch.ops.aten.scaled_dot_product_attention
SCALED_DOT_PRODUCT = (F.scaled_dot_product_attention, _ATEN, _ATEN.default)
"""The function as a model calls it, and as an exported program does."""


def scaled_dot_product_attention(args: Arguments, kwargs: Keywords, output: Tensor) -> Call:
    """``F.scaled_dot_product_attention``, whose inputs are (..., H, T, D) or (..., T, D)."""

    def read(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,  # noqa: ARG001 - a name of PyTorch's
    ) -> Call:
        batch = broadcast_shapes(query.shape[:-2], (*key.shape[:-3], *query.shape[-3:-2]))
        return Call(
            kind="scaled_dot_product_attention",
            query=four_axes(query.expand(*batch, *query.shape[-2:])),
            key=four_axes(key),
            value=four_axes(value),
            mask=_mask_of(attn_mask, query.device, batch),
            is_causal=is_causal,
            scale=1 / math.sqrt(query.shape[-1]) if scale is None else scale,
            dropout=dropout_p,
            dtype=query.dtype,
            output=output,
            to_output=lambda context: context.reshape(output.shape),
        )

    return read(*args, **kwargs)


def _mask_of(mask: Tensor | None, device: torch.device, batch: Sequence[int]) -> Tensor | None:
    if mask is None:
        return None
    if hasattr(mask, "_materialize"):  # torch.nn.attention.bias.causal_lower_right and its like
        mask = mask._materialize(device)
    return broadcast_axes(mask, batch)


_MULTI_HEAD = inspect.signature(F.multi_head_attention_forward)


def multi_head_attention_forward(args: Arguments, kwargs: Keywords, output: Any) -> Call:  # noqa: ANN401
    """``F.multi_head_attention_forward``, the function within ``nn.MultiheadAttention``: (T, B, D) or (T, D)."""
    bound = _MULTI_HEAD.bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = bound.arguments
    heads = _Heads(arguments)
    mask, is_causal = heads.mask()
    return Call(
        kind="multi_head_attention_forward",
        query=heads.query,
        key=heads.key,
        value=heads.value,
        mask=mask,
        is_causal=is_causal,
        scale=1 / math.sqrt(heads.query.shape[-1]),
        dropout=arguments["dropout_p"] if arguments["training"] else 0.0,
        dtype=arguments["query"].dtype,
        output=output[0],
        to_output=partial(_projected_output, arguments),
        safe=not arguments["need_weights"],
        contradicted=is_causal and _contradicts(arguments["attn_mask"]),
        sinks=heads.n_extra,
    )


class _Heads:
    """The heads of a ``F.multi_head_attention_forward``, by its own arguments."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments
        self.n_heads: int = arguments["num_heads"]
        query, key, value = (_with_batch(arguments[name]) for name in ("query", "key", "value"))
        exactly = torch.promote_types(query.dtype, torch.float32)
        projected = [
            F.linear(x.to(exactly), weight.to(exactly), None if bias is None else bias.to(exactly))
            for x, weight, bias in zip((query, key, value), self._weights(), self._biases(), strict=True)
        ]
        self.n_extra = 0
        self.query, self.key, self.value = (self._split(x) for x in projected)
        if arguments["bias_k"] is not None:
            self._append(arguments["bias_k"], arguments["bias_v"])
        if arguments["add_zero_attn"]:
            zero = torch.zeros(1, 1, query.shape[-1], dtype=exactly, device=self.key.device)
            self._append(zero, zero)

    def _weights(self) -> tuple[Tensor, Tensor, Tensor]:
        if self._arguments["use_separate_proj_weight"]:
            query, key, value = (self._arguments[f"{name}_proj_weight"] for name in "qkv")
            return query, key, value
        query, key, value = self._arguments["in_proj_weight"].chunk(3)
        return query, key, value

    def _biases(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        if self._arguments["in_proj_bias"] is None:
            return None, None, None
        query, key, value = self._arguments["in_proj_bias"].chunk(3)
        return query, key, value

    def _split(self, x: Tensor) -> Tensor:
        """(T, B, D) to (B, H, T, Dh)."""
        return x.reshape(*x.shape[:-1], self.n_heads, -1).permute(1, 2, 0, 3)

    def _append(self, key: Tensor, value: Tensor) -> None:
        """A key that every query has beside those of the tokens, (1, 1, D)."""
        batch = self.key.shape[0]
        self.key = torch.cat([self.key, self._split(key).expand(batch, -1, -1, -1)], -2)
        self.value = torch.cat([self.value, self._split(value).expand(batch, -1, -1, -1)], -2)
        self.n_extra += 1

    def mask(self) -> tuple[Tensor | None, bool]:
        """Return the numbers added to the scores, (B or 1, H or 1, Tq, Tk), and whether the flag alone says it."""
        padding, mask = self._arguments["key_padding_mask"], self._arguments["attn_mask"]
        if self._arguments["is_causal"] and padding is None and not self._arguments["need_weights"]:
            return None, True
        parts = []
        if mask is not None:
            added = self._added(mask)
            parts.append(added if added.dim() == 2 else added.reshape(-1, self.n_heads, *added.shape[1:]))
        if padding is not None:
            parts.append(self._added(padding).reshape(-1, 1, 1, padding.shape[-1] + self.n_extra))
        return sum(parts[1:], parts[0]) if parts else None, False

    def _added(self, mask: Tensor) -> Tensor:
        """As numbers that are added, and open for the appended keys; here True = blocked."""
        if mask.dtype is torch.bool:
            mask = torch.zeros_like(mask, dtype=self.query.dtype).masked_fill_(mask, -math.inf)
        return F.pad(mask, (0, self.n_extra))


def _with_batch(x: Tensor) -> Tensor:
    return x if x.dim() == 3 else x[:, None]


def _projected_output(arguments: Mapping[str, Any], context: Tensor) -> Tensor:
    """(B, H, Tq, Dh) to what the function returns."""
    output = F.linear(
        context.permute(2, 0, 1, 3).flatten(2),
        arguments["out_proj_weight"].to(context.dtype),
        None if arguments["out_proj_bias"] is None else arguments["out_proj_bias"].to(context.dtype),
    )
    return output if arguments["query"].dim() == 3 else output[:, 0]


def _contradicts(mask: Tensor | None) -> bool:
    """True if a mask, (..., Tq, Tk), True = blocked, is not the causal one that a flag calls it."""
    if mask is None:
        return False
    blocked = mask if mask.dtype is torch.bool else mask < 0
    later = torch.ones_like(blocked).triu(1)
    return not bool((blocked == later).all())


def flex_attention(args: Arguments, kwargs: Keywords, output: Any) -> Call:  # noqa: ANN401
    """FlexAttention, as its operator is called: q, k, v, score_mod, block mask, scale, and more for the kernel."""
    query, key, value, score_mod, block_mask, scale = (*args, *kwargs.values())[:6]
    batch, heads, n_queries, _ = query.shape
    n_keys = key.shape[-2]
    mask_mod = block_mask[-1]
    positions = [torch.arange(size, device=query.device) for size in (batch, heads, n_queries, n_keys)]

    def modified(scores: Tensor) -> Tensor:
        changed: Tensor = _over_cells(score_mod, with_score=True)(scores, *positions)
        return changed

    return Call(
        kind="flex_attention",
        query=query,
        key=key,
        value=value,
        mask=_over_cells(mask_mod, with_score=False)(*positions),
        scale=scale,
        dtype=query.dtype,
        modified=None if score_mod.__name__ == "_identity" else modified,
        output=output[0],
    )


def _over_cells(function: Callable[..., Tensor], *, with_score: bool) -> Callable[..., Tensor]:
    """A function of one cell (score, b, h, q, k) as one of all: FlexAttention's own meaning of it."""
    score = (0,) if with_score else ()
    for axis in (3, 2, 1, 0):
        places = tuple(0 if place == axis else None for place in range(4))
        function = torch.vmap(function, in_dims=(*score, *places))
    return function
