"""The functions of scores: ALiBi's slopes, T5's buckets, and those that PyTorch has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import torch
from torch import Tensor

N_BUCKETS = 32
_FARTHEST = 128

_ELEMENTWISE: Mapping[str, Callable[..., Tensor]] = {
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "min": torch.minimum,
    "max": torch.maximum,
}


def alibi_slopes(n_heads: int) -> tuple[float, ...]:
    """The slope of each head (ALiBi, section 3): 2^(-8/n), 2^(-16/n), ...

    Where the number of heads is no power of 2, the slopes of the next lower one, and then every other of the next
    higher one, as in the authors' implementation.
    """
    lower = 2 ** int(math.log2(n_heads))
    own = [2 ** (-8 * (head + 1) / lower) for head in range(lower)]
    return tuple(own + [2 ** (-4 * (head + 1) / lower) for head in range(0, 2 * (n_heads - lower), 2)])


def t5_bucket(relative: Tensor, *, is_causal: bool) -> Tensor:
    """The bucket, 0 to 31, of how far a key is after its query (T5, section 2.1).

    Near distances have a bucket each, farther ones share buckets of widths that grow up to 128. Where keys may be
    after their query, half of the buckets are for these.
    """
    n_buckets = N_BUCKETS if is_causal else N_BUCKETS // 2
    distance = (-relative).clamp(min=0) if is_causal else relative.abs()
    n_exact = n_buckets // 2
    share = (distance.float() / n_exact).clamp(min=1).log2() / math.log2(_FARTHEST / n_exact)
    far = (n_exact + (share * (n_buckets - n_exact)).long()).clamp(max=n_buckets - 1)
    bucket = torch.where(distance < n_exact, distance.long(), far)
    return bucket if is_causal else bucket + n_buckets * (relative > 0)


@cache
def bias_table(n_heads: int) -> Tensor:
    """A number for each head and bucket, (H, 32): of the kind that T5 learns, drawn from a normal distribution."""
    return torch.randn(n_heads, N_BUCKETS, generator=torch.Generator().manual_seed(0))


def call(name: str, numbers: Sequence[Tensor]) -> Tensor:
    """The value of a function; ``slope`` and ``bias`` get the numbers of all heads, (H, 1, 1), first."""
    match name, numbers:
        case "slope", [heads]:
            return heads.new_tensor(alibi_slopes(len(heads)))[:, None, None]
        case (("bucket" | "causal_bucket"), [relative]):
            return t5_bucket(relative, is_causal=name == "causal_bucket").to(relative.dtype)
        case "bias", [heads, places]:
            return bias_table(len(heads)).to(heads)[heads.long(), places.clamp(0, N_BUCKETS - 1).long()]
    return _ELEMENTWISE[name](*numbers)
