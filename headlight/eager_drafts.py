"""A softmax that a model writes out itself, followed until it is known to be an attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from headlight.attentions import Attention, Shape
from headlight.call import broadcast_axes, four_axes
from headlight.eager_scores import Role, Scores
from headlight.einsum import Matrices
from headlight.passed_masks import ReadMask, both, without_repeats


@dataclass(frozen=True, eq=False)
class Softmax:
    """One softmax.

    Attributes:
        scores: what it was given.
        output: what it gave.
        axis: along which axis.
        known: where the scores came from; None if that is not known.
        is_plain: whether a function of PyTorch gave it, so that the weights sum to 1.
        roles: the axes of the scores, "" where one is not known; () where none is.
    """

    scores: Tensor
    output: Tensor
    axis: int
    known: Scores | None
    is_plain: bool
    roles: tuple[Role | Literal[""], ...]


@dataclass(frozen=True, eq=False)
class Meeting:
    """The product of weights and values.

    Attributes:
        weights: the weights that were multiplied.
        axis: the axis of these that was summed over.
        origin: the axis of the softmax that it is; None where that is not known.
        query: the axis of the softmax that the queries have; None where that is not known.
        has_queries: whether several queries share the values: not where each has values of its own.
        columns: which part of it.
        value: the values.
        matrices: weights, values and product; None where they are not matrices.
    """

    weights: Tensor
    axis: int
    origin: int | None
    query: int | None
    has_queries: bool
    columns: slice
    value: Tensor
    matrices: Matrices | None


class EagerDraft:
    """A softmax that is written out, as far as it was followed.

    Attributes:
        n_axes: how many axes its weights have.
        n_keys: over how many numbers it goes.
        has_product: whether its scores are products of queries and keys.
    """

    def __init__(
        self,
        module: str,
        softmax: Softmax,
        read: ReadMask,
        weights: Tensor | None,
        reduced: Callable[[Attention], Attention],
        copied: Callable[[Tensor | None], Tensor | None] | None,
    ) -> None:
        shape = softmax.output.shape
        self.n_axes = len(shape)
        self.n_keys = shape[softmax.axis]
        self._module, self._shape, self._dtype = module, shape, softmax.output.dtype
        self._axis, self._roles, self._is_plain = softmax.axis, softmax.roles, softmax.is_plain
        known = softmax.known
        self._sides = (
            [_Side()] * 2 if known is None else [_Side.of(each, copied) for each in (known.query, known.key)]
        )
        self.has_product, self._scale = known is not None, 1.0 if known is None else known.scale
        self._read, self._weights = read, weights
        self._reduced, self._copied = reduced, copied
        self._dropout = 0.0
        self._is_changed = False
        self._is_mixed = False
        self._completed: Attention | None = None
        self._met: set[int] = set()

    @property
    def is_attention(self) -> bool:
        """True where queries and keys, or values, are known."""
        return self._completed is not None or self.has_product

    @property
    def attention(self) -> Attention | None:
        """The attention; None where neither queries and keys nor values are known."""
        if self._completed is not None or not self.has_product:
            return self._completed
        return self._with_keys(self._axis, slice(0, self.n_keys))

    def dropped(self, share: float) -> None:
        """Some of the weights were dropped."""
        self._dropout = share

    def changed(self) -> None:
        """They were masked, multiplied or added to after the softmax."""
        self._is_changed = True

    def mixed(self) -> None:
        """Each became a sum over all heads."""
        self._is_mixed = True

    def completed(self, meeting: Meeting) -> None:
        """They were multiplied with the values, or columns of them that had met none were."""
        if self._completed is not None:
            new = set(range(self.n_keys)[meeting.columns]) - self._met
            if (
                new and self._completed.sinks and meeting.origin == self._axis
            ):  # what seemed to be sinks are keys too
                self._met |= new
                known = replace(self._completed, value_shape=(), value=None, context=None, difference=None)
                self._completed = replace(known, sinks=self.n_keys - len(self._met))
            return
        self._met = set(range(self.n_keys)[meeting.columns])
        with aside(meeting.weights):
            remarks = self._take_over(meeting) if self._is_changed and not self._is_mixed else ()
            if not meeting.has_queries:
                remarks = (*remarks, "own_keys")
            difference, value, context = self._compared(meeting)
            key_axis = self._axis if meeting.origin is None else meeting.origin
            attention = self._with_keys(key_axis, meeting.columns, meeting.query)
        self._completed = replace(
            attention,
            value_shape=tuple(meeting.value.shape),
            remarks=(*attention.remarks, *remarks),
            difference=difference,
            value=value,
            context=context,
        )
        self._weights, self._read = None, ReadMask()

    def _take_over(self, meeting: Meeting) -> tuple[str, ...]:
        """Go on with weights that were masked after the softmax, if they sum to 1 again; else a remark."""
        final, before = meeting.weights.detach(), self._weights
        if self._dropout or before is None:
            return ()
        if final.shape != before.shape:
            return ("changed_after_softmax",)
        if torch.equal(final.to(before), before):
            return ()
        if not bool(((final == 0).to(before.device) & (before != 0)).any()):
            return ("weighted_after_softmax",)
        if _sums_to_less(final.float(), meeting.axis):
            return ("changed_after_softmax",)
        is_blocked = (final == 0).to(before.device) & (before != 0)
        self._read = both(self._read, ReadMask(allowed=without_repeats(~is_blocked)))
        self._weights = final.to(before, copy=True)
        return ()

    def _compared(self, meeting: Meeting) -> tuple[float | None, Tensor | None, Tensor | None]:
        """The distance of the context from the same in full precision, and the values and the context kept."""
        if meeting.matrices is None or self._weights is None:
            return None, None, None
        weights, value, output = meeting.matrices
        exactly = self._weights.dtype
        if weights.dtype is exactly and self._copied is None:
            return None, None, None
        context = weights.to(exactly) @ value.to(exactly)
        difference = None if self._dropout else largest_difference(context, output)
        if self._copied is None:
            return difference, None, None
        return difference, self._copied(value), self._copied(context)

    def _with_keys(self, key_axis: int, columns: slice, query_axis: int | None = None) -> Attention:
        """The attention whose keys lie along an axis, of which some columns met values: the others are sinks."""
        query_axis = self._query_axis(key_axis) if query_axis in (None, key_axis) else query_axis
        n_sinks = self.n_keys - (columns.stop - columns.start) if key_axis == self._axis else 0
        batch = [size for axis, size in enumerate(self._shape) if axis not in (query_axis, key_axis)]

        def canonical(tensor: Tensor | None) -> Tensor | None:
            """(B, H, Tq, Tk), with the columns that are sinks at the end."""
            if tensor is None:
                return None
            full = tensor[(None,) * (self.n_axes - tensor.dim())].movedim((query_axis, key_axis), (-2, -1))
            if n_sinks and full.shape[-1] > 1:
                full = torch.cat([full[..., columns], full[..., : columns.start], full[..., columns.stop :]], -1)
            return broadcast_axes(full, batch)

        weights, read, remarks = canonical(self._weights), self._read, []
        if self._axis != key_axis:
            remarks.append("softmax_over_queries" if self._axis == query_axis else "softmax_over_heads")
        elif weights is not None and not self._is_plain and _sums_to_less(weights, -1):
            remarks.append("sums_below_one")
        if read.remark is not None:
            remarks.append(read.remark)
        if self._is_mixed:
            remarks.append("weighted_after_softmax")
        of_keys_first = bool(self._roles) and self._roles[key_axis] == "query"
        shape = four_axes(torch.empty(*batch, 1, 1, device="meta")).shape[:2]
        query, key = self._sides[::-1] if of_keys_first else self._sides
        attention = Attention(
            path=self._module,
            module=self._module,
            kind="softmax",
            shape=(shape[0], shape[1], self._shape[query_axis], self._shape[key_axis]),
            query_shape=query.shape,
            key_shape=key.shape,
            value_shape=(),
            key_heads=shape[1] if key.ends is None else different_heads(key.ends),
            dtype=self._dtype,
            scale=self._scale,
            is_causal=False,
            dropout=self._dropout,
            allowed=canonical(read.allowed),
            bias=canonical(read.bias),
            fill=read.fill,
            weights=weights,
            query=query.tensor,
            key=key.tensor,
            remarks=tuple(remarks),
            sinks=n_sinks,
        )
        return self._reduced(attention)

    def _query_axis(self, key_axis: int) -> int:
        """The axis of the queries: the other one of the product, else the last one beside the keys'."""
        others = [axis for axis in range(self.n_axes) if axis != key_axis]
        named = [axis for axis in others if self._roles and self._roles[axis] in ("query", "key")]
        return (named or others)[-1]


@dataclass(frozen=True, eq=False)
class _Side:
    """The queries or the keys of scores, as far as they are known and kept.

    Attributes:
        shape: theirs.
        ends: the first and the last of a sequence, (1, H, 2, Dh); None where they have no heads.
        tensor: a copy of them, where they are kept.
    """

    shape: Shape = ()
    ends: Tensor | None = None
    tensor: Tensor | None = None

    @staticmethod
    def of(tensor: Tensor, copied: Callable[[Tensor | None], Tensor | None] | None) -> _Side:
        """One side of a product."""
        ends = _ends(tensor).clone() if tensor.dim() == 4 else None
        return _Side(tuple(tensor.shape), ends, None if copied is None else copied(tensor))


_OF_ROUNDING = 0.01
"""A sum of weights is 1 but for as much, in any number type."""


def _sums_to_less(weights: Tensor, axis: int) -> bool:
    """True where the weights of some query that has any do not sum to 1."""
    sums = weights.sum(axis)
    return bool(((sums - 1).abs() > _OF_ROUNDING)[sums != 0].any())


@contextmanager
def aside(like: Tensor) -> Iterator[None]:
    """Compute beside the model: without gradients, in full precision, unseen by any function mode."""
    kind = like.device.type
    has_autocast = torch.amp.is_autocast_available(kind)  # not on the device "meta"
    plain = torch.autocast(kind, enabled=False) if has_autocast else nullcontext()
    with torch.no_grad(), plain, torch._C.DisableTorchFunction():
        yield


def largest_difference(one: Tensor, other: Tensor) -> float:
    """The largest difference of two numbers at one place; NaN beside NaN is none."""
    gap = (one - other.to(one.dtype)).abs()
    same = (one == other) | (one.isnan() & other.isnan())
    return float(gap.masked_fill(same, 0.0).max()) if gap.numel() else 0.0


def different_heads(keys: Tensor) -> int:
    """Count the (B, H, Tk, Dh) heads that differ from the one before, by the first and last key of a sequence."""
    if keys.shape[1] == 1 or not keys.numel() or keys.is_meta:
        return keys.shape[1]
    some = _ends(keys)[0]
    differs = (some[1:] != some[:-1]).flatten(1).any(1) | (some[1:] == 0).flatten(1).all(1)
    return 1 + int(differs.sum())


def _ends(keys: Tensor) -> Tensor:
    """The first and the last key of the first sequence, (1, H, 2, Dh)."""
    return keys[:1, :, :: max(1, keys.shape[2] - 1)]
