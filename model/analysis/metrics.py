"""Measures of what an attention head does: one number per head, a mean over the queries that count.

A query counts unless it is padding, no key is left to it, or it lacks what the measure asks about, such as a token
before it. Where no query counts, the measure is NaN.

In the formulas A is the (Tq, Tk) matrix of weights of one head, q a query and k a key, x their tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from model.texts import texts_of

say = texts_of(__name__)


@dataclass(frozen=True, eq=False)
class Attention:
    """The weights of one attention, and what its queries and keys are.

    Attributes:
        weights: (B, H, Tq, Tk), each row summing to one, or to zero where no key is left.
        query_ids: the tokens of the queries, (B, Tq).
        key_ids: the tokens of the keys, (B, Tk).
        query_is_padding: (B, Tq), True = padding.
        key_is_padding: (B, Tk), True = padding.
        is_self_attention: whether queries and keys are one sequence.
        expected_keys: the key that each query should find, (B, Tq), negative where none in particular.

    Raises:
        ValueError: a shape does not fit the weights.
    """

    weights: Tensor
    query_ids: Tensor
    key_ids: Tensor
    query_is_padding: Tensor
    key_is_padding: Tensor
    is_self_attention: bool
    expected_keys: Tensor | None = None

    def __post_init__(self) -> None:
        if self.weights.dim() != 4:
            raise ValueError(f"weights has {self.weights.dim()} axes: it must have four, (B, H, Tq, Tk)")
        n_batch, _, n_queries, n_keys = self.weights.shape
        for name in ("query_ids", "query_is_padding", "expected_keys"):
            _check_shape(name, getattr(self, name), (n_batch, n_queries))
        for name in ("key_ids", "key_is_padding"):
            _check_shape(name, getattr(self, name), (n_batch, n_keys))

    @cached_property
    def sees_a_key(self) -> Tensor:
        """True where a query is no padding and has a key left, (B, H, Tq)."""
        return ~self.query_is_padding[:, None, :] & (self.weights > 0).any(-1)

    @cached_property
    def positions(self) -> tuple[Tensor, Tensor]:
        """The positions of the queries, (Tq, 1), and of the keys, (1, Tk)."""
        n_queries, n_keys = self.weights.shape[-2:]
        return torch.arange(n_queries)[:, None], torch.arange(n_keys)[None, :]


@dataclass(frozen=True)
class Metric:
    """One measure.

    Attributes:
        title: what a person reads.
        formula: LaTeX of what is averaged over the queries.
        compute: one number for each head, (H,).
    """

    title: str
    formula: str
    compute: Callable[[Attention], Tensor]


def entropy(attention: Attention) -> Tensor:
    """Return the spread of the weight, in bits: 0 on one key, log2(n) on n keys alike (Shannon 1948, section 6)."""
    bits = torch.special.entr(attention.weights).sum(-1) / math.log(2)
    return _mean(bits, attention.sees_a_key)


def mean_distance(attention: Attention) -> Tensor:
    """Return how many positions away the weight lies (Vig and Belinkov 2019, on attention distance)."""
    query, key = attention.positions
    distance = (attention.weights * (query - key).abs()).sum(-1)
    return _mean(distance, attention.sees_a_key)


def previous_token(attention: Attention) -> Tensor:
    """Weight on the position before the query's (Clark et al. 2019, section 3.1)."""
    query, key = attention.positions
    return _weight_on(key == query - 1, attention)


def own_position(attention: Attention) -> Tensor:
    """Weight on the query's own position (Clark et al. 2019, section 3.1)."""
    query, key = attention.positions
    return _weight_on(key == query, attention)


def same_token(attention: Attention) -> Tensor:
    """Weight on all keys that hold the query's token, in self-attention the query itself among them."""
    return _weight_on(attention.key_ids[:, None, :] == attention.query_ids[:, :, None], attention)


def first_token(attention: Attention) -> Tensor:
    """Weight on the first key that is no padding, often a sink of unused weight (Xiao et al. 2024, section 3.1)."""
    is_real = ~attention.key_is_padding
    first = is_real & (is_real.cumsum(-1) == 1)
    return _weight_on(first[:, None, :], attention)


def expected_token(attention: Attention) -> Tensor:
    """Weight on the key that the task asks for, over the queries that have one; NaN where no key is expected."""
    if attention.expected_keys is None:
        return torch.full((attention.weights.shape[1],), math.nan)
    _, key = attention.positions
    return _weight_on(key == attention.expected_keys[:, :, None], attention)


def induction(attention: Attention) -> Tensor:
    """Weight on the keys that follow an earlier occurrence of the query's token, over the queries that have one.

    It is the prefix matching score of Olsson et al. 2022. In self-attention "earlier" is before the query; to the
    queries of cross-attention the whole source is earlier.
    """
    is_real = ~attention.key_is_padding
    followed = (attention.key_ids[:, None, :-1] == attention.query_ids[:, :, None]) & is_real[:, None, :-1]
    follows = torch.nn.functional.pad(followed, (1, 0), value=False)
    query, key = attention.positions
    return _weight_on(follows & (key <= query) if attention.is_self_attention else follows, attention)


METRICS: dict[str, Metric] = {
    "entropy": Metric(say("entropy"), r"-\sum_k A_{qk} \log_2 A_{qk}", entropy),
    "mean_distance": Metric(say("mean_distance"), r"\sum_k A_{qk} \, |q - k|", mean_distance),
    "previous_token": Metric(say("previous_token"), r"A_{q,q-1}", previous_token),
    "own_position": Metric(say("own_position"), r"A_{qq}", own_position),
    "same_token": Metric(say("same_token"), r"\sum_{k : x_k = x_q} A_{qk}", same_token),
    "first_token": Metric(say("first_token"), r"A_{q,0}", first_token),
    "expected_token": Metric(say("expected_token"), r"A_{q,e(q)}", expected_token),
    "induction": Metric(say("induction"), r"\sum_{k \le q : x_{k-1} = x_q} A_{qk}", induction),
}
"""Every measure by its name."""


def _weight_on(keys: Tensor, attention: Attention) -> Tensor:
    """Mean weight on some keys, over the queries that have any of them.

    ``keys`` is boolean, broadcastable to (B, Tq, Tk); padding is taken out.
    """
    keys = (keys & ~attention.key_is_padding[:, None, :])[:, None]
    weight = (attention.weights * keys).sum(-1)
    return _mean(weight, attention.sees_a_key & keys.any(-1))


def _mean(values: Tensor, counts: Tensor) -> Tensor:
    """The mean over the queries that count: (B, H, Tq) -> (H,); NaN where none does."""
    return values.masked_fill(~counts, 0.0).sum((0, 2)) / counts.sum((0, 2))


def _check_shape(name: str, value: Tensor | None, shape: tuple[int, int]) -> None:
    if value is not None and value.shape != shape:
        raise ValueError(f"{name} has shape {tuple(value.shape)}: beside these weights it must have {shape}")
