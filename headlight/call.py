"""One call of an attention, in one form whatever function made it, and the weights that it comes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from headlight.passed_masks import ReadMask, both, read_added, read_mask

Kind = Literal["scaled_dot_product_attention", "multi_head_attention_forward", "flex_attention", "softmax"]


class NoSuchPartError(IndexError):
    """A sequence or a head was asked for that is not there."""


def _same(context: Tensor) -> Tensor:
    return context


@dataclass(frozen=True, eq=False)
class Call:
    """The arguments and the output of one call of an attention, for B sequences and H heads.

    Attributes:
        kind: the function.
        query: (B, H, Tq, Dh).
        key: (B, Hk, Tk, Dh), where H is a multiple of Hk.
        value: (B, Hk, Tk, Dv).
        mask: what was passed, broadcastable to (B, H, Tq, Tk): boolean, True = may attend, or added to the scores.
        is_causal: whether the function was told to hide later keys, counted from the first one.
        scale: what the scores are multiplied by.
        dropout: the share of the weights that were dropped.
        dtype: the number type that the model computes in.
        modified: changes scores (B, H, Tq, Tk) before they are masked; None changes nothing.
        output: what the model went on with.
        to_output: makes what ``output`` is from a context (B, H, Tq, Dv).
        safe: whether a query without a key has weights of zero; else they are NaN.
        contradicted: whether a mask that was passed is not the causal one that it was said to be.
        sinks: how many of the last keys are no tokens.
    """

    kind: Kind
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    is_causal: bool = False
    scale: float = 1.0
    dropout: float = 0.0
    dtype: torch.dtype = torch.float32
    modified: Callable[[Tensor], Tensor] | None = None
    output: Tensor | None = None
    to_output: Callable[[Tensor], Tensor] = _same
    safe: bool = True
    contradicted: bool = False
    sinks: int = 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, H, Tq, Tk)."""
        batch, heads, n_queries, _ = self.query.shape
        return batch, heads, n_queries, self.key.shape[-2]

    def chosen(self, item: int | None, heads: Sequence[int] | None) -> Call:
        """The same for one sequence of the batch, and for some heads.

        Raises:
            NoSuchPartError: there is no such sequence, or no such head.
        """
        batch, n_heads, _, _ = self.shape
        if item is None and heads is None:
            return self
        items = list(range(batch)) if item is None else _checked("item", [item], batch)
        queries = list(range(n_heads)) if heads is None else _checked("head", heads, n_heads)
        group = n_heads // self.key.shape[1]
        keys = [head // group for head in queries] if heads is not None else range(self.key.shape[1])
        return replace(
            self,
            query=picked(picked(self.query, 0, items), 1, queries),
            key=picked(picked(self.key, 0, items), 1, keys),
            value=picked(picked(self.value, 0, items), 1, keys),
            mask=None if self.mask is None else picked(picked(self.mask, 0, items), 1, queries),
            modified=None if self.modified is None else partial(self._modified_part, items, queries),
            output=None,
        )

    def _modified_part(self, items: Sequence[int], heads: Sequence[int], scores: Tensor) -> Tensor:
        """``modified`` for some sequences and heads, whose numbers it asks for."""
        if self.modified is None:
            return scores
        whole = scores.new_zeros(self.shape)
        rows = torch.tensor(items)[:, None]
        whole[rows, heads] = scores
        return self.modified(whole)[rows, heads]

    def read(self, read: Callable[[Tensor | None], ReadMask] = read_mask) -> ReadMask:
        """Return the effect of its mask on the scores, and of the flag with it.

        Args:
            read: reads the mask that was passed.
        """
        found = read(self.mask)
        if self.is_causal:
            found = both(found, ReadMask(allowed=causal_from_the_first_key(self)))
        return found if self.modified is None else both(found, self._read_modified(self.modified))

    def _read_modified(self, modified: Callable[[Tensor], Tensor]) -> ReadMask:
        """Read a change of the scores as a mask, where it only adds numbers to them."""
        zeros = torch.zeros(self.shape, device=self.query.device)
        added, beside_one = modified(zeros), modified(zeros + 1)
        adds = torch.isclose(beside_one - added, zeros + 1) | (added == -math.inf)
        return read_added(added) if bool(adds.all()) else ReadMask(remark="scores_changed")

    def scores(self) -> Tensor:
        """(B, H, Tq, Tk), scaled and masked, in float32 or the model's own type if that holds more."""
        dtype = torch.promote_types(self.query.dtype, torch.float32)
        scores = (self.query.to(dtype) * self.scale) @ self.repeated(self.key).to(dtype).mT
        if self.modified is not None:
            scores = self.modified(scores)
        if self.mask is not None:
            blocks = self.mask.dtype is torch.bool
            scores = scores.masked_fill_(~self.mask, -math.inf) if blocks else scores.add_(self.mask)
        if self.is_causal:
            scores = scores.masked_fill_(~causal_from_the_first_key(self), -math.inf)
        return scores

    def weights(self, scores: Tensor) -> Tensor:
        """(B, H, Tq, Tk), before dropout; the rows of queries without a key are zero, or NaN if not ``safe``."""
        may_be_empty = self.safe and (self.mask is not None or self.modified is not None)
        empty = scores.amax(-1, keepdim=True) == -math.inf if may_be_empty else None
        weights = scores.softmax(-1)
        return weights if empty is None else weights.masked_fill_(empty, 0.0)

    def context(self, weights: Tensor) -> Tensor:
        """(B, H, Tq, Dv)."""
        return weights @ self.repeated(self.value).to(weights.dtype)

    def repeated(self, keys: Tensor) -> Tensor:
        """(B, Hk, Tk, D) to (B, H, Tk, D), each head as often as queries share it."""
        group = self.query.shape[1] // keys.shape[1]
        return keys if group == 1 else keys.repeat_interleave(group, 1)


def causal_from_the_first_key(call: Call) -> Tensor:
    """(Tq, Tk) bool, True up to the key with the query's own number."""
    _, _, n_queries, n_keys = call.shape
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=call.query.device).tril()


def four_axes(tensor: Tensor) -> Tensor:
    """(..., T, D) to (B, H, T, D): a missing axis has size 1, and further ones count as the batch's."""
    if tensor.dim() < 4:
        missing = 4 - tensor.dim()
        return tensor[(None,) * missing] if missing > 1 else tensor[:, None]
    return tensor if tensor.dim() == 4 else tensor.flatten(0, -4)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which several broadcast.

    Raises:
        ValueError: they do not.
    """
    try:
        return tuple(torch.broadcast_shapes(*map(tuple, shapes)))  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise ValueError(f"{' and '.join(str(tuple(shape)) for shape in shapes)} do not broadcast") from error


def broadcast_axes(mask: Tensor, batch: Sequence[int]) -> Tensor:
    """A mask that broadcasts to (*batch, Tq, Tk), from the right, with the axes that ``four_axes`` gives these.

    Args:
        mask: (..., Tq or 1, Tk or 1).
        batch: the sizes of the axes before the last two.
    """
    full = mask[(None,) * (len(batch) + 2 - mask.dim())]
    if len(batch) > 2:  # several of these become one
        full = full.expand(*batch[:-1], *full.shape[-3:])
    return four_axes(full)


def picked(tensor: Tensor, axis: int, indices: Sequence[int]) -> Tensor:
    """Some of a (B, H, ...) tensor along one of these axes, which may be missing or have size 1 for all of them."""
    place = axis - (4 - tensor.dim())
    if place < 0 or tensor.shape[place] == 1 or list(indices) == list(range(tensor.shape[place])):
        return tensor
    return tensor.index_select(place, torch.tensor(list(indices), device=tensor.device))


def _checked(name: str, indices: Sequence[int], size: int) -> Sequence[int]:
    for index in indices:
        if not 0 <= index < size:
            raise NoSuchPartError(f"{name} ({index}) must be from 0 to {size - 1}")
    return indices
