"""Makes an ``Attention`` of each call and keeps of it what was asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import get_args

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from headlight.attentions import Attention, Keep
from headlight.call import Call, picked
from headlight.eager_drafts import EagerDraft, Softmax, different_heads, largest_difference
from headlight.joined_axes import (
    Reshapes,
    with_batch_first,
    with_both_axes,
    with_groups_joined,
    with_windows_first,
)
from headlight.modules import Running
from headlight.origins import UNKNOWN, Origins
from headlight.passed_masks import (
    ReadMask,
    has_unexplained_zeros,
    held,
    read_added,
    read_mask,
)
from headlight.roles import is_named_cross, roles_of

NAMED_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
"""The name of a class that is an attention by its purpose."""

_NUMBER = re.compile(r"(?:^|\.)(\d+)(?:\.|$)")


@dataclass(frozen=True)
class Options:
    """The choice of what is kept: the arguments of ``watch``, under the same names.

    Raises:
        ValueError: ``keep`` is none of the four.
    """

    layers: tuple[int | str, ...] | None = None
    keep: Keep = "weights"
    item: int | None = None
    heads: tuple[int, ...] | None = None
    to: str | torch.device | None = None

    def __post_init__(self) -> None:
        if self.keep not in get_args(Keep):
            raise ValueError(f"keep ({self.keep!r}) must be one of: {', '.join(get_args(Keep))}")

    def wants(self, path: str) -> bool:
        """True if anything is to be kept of a module."""
        if self.layers is None:
            return True
        found = _NUMBER.search(path)
        number = int(found[1]) if found else None
        return any(
            layer == number if isinstance(layer, int) else fnmatchcase(path, layer) or path.startswith(f"{layer}.")
            for layer in self.layers
        )

    @property
    def keeps_numbers(self) -> bool:
        """True if more than shapes is kept."""
        return self.keep != "shapes"

    @property
    def takes_all(self) -> bool:
        """True if every sequence and head is kept."""
        return self.item is None and self.heads is None

    @property
    def keeps_vectors(self) -> bool:
        """True if queries, keys, values and context are kept too."""
        return self.keep in ("attentions", "all")


class Recorder:
    """Keeps what is asked for of one watched block."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._seen: list[Seen] = []
        self._reshapes = Reshapes()
        self._masks: dict[object, tuple[Tensor, ReadMask]] = {}

    @property
    def n_seen(self) -> int:
        """The number of attentions seen so far."""
        return sum(seen.is_attention for seen in self._seen)

    @property
    def lengths(self) -> set[int]:
        """The numbers of queries of the attentions seen so far."""
        return {found.shape[2] for seen in self._seen if (found := seen.attention) is not None}

    def attentions(
        self, tokens: Sequence[int], paths: Container[str], settled: Callable[[Origins], Origins]
    ) -> list[Attention]:
        """Everything seen, in the order computed, under its name and with its role.

        Args:
            tokens: the shape of the tokens that the model was given, (B, T, ...) or (T, B, ...); () if unknown.
            paths: those of all modules of the model.
            settled: gives the sequences of queries and keys out of what was noted of them.
        """
        times: Counter[str] = Counter()
        named, cut = [], self._reshapes.cut_across_tokens()
        of_attentions = [(seen, found) for seen in self._seen if (found := seen.attention) is not None]
        modules = [attention.module for _, attention in of_attentions]
        roles = roles_of(modules, [settled(seen.origins) for seen, _ in of_attentions], paths)
        n_sequences = _n_sequences(tokens, [attention.shape for _, attention in of_attentions])
        for (seen, attention), role in zip(of_attentions, roles, strict=True):
            attention = self._in_order(seen, attention, n_sequences, is_of_image=len(tokens) > 3)
            times[attention.module] += 1
            name, nth = attention.module or "model", times[attention.module]
            remarks = (*attention.remarks, "part") if self._is_part(seen) else attention.remarks
            if role != "cross" and is_named_cross(attention.module, paths):
                remarks = (*remarks, "own_memory")
            if any(f"{attention.module}.".startswith(f"{path}.") for path in cut):
                remarks = (*remarks, "heads_across_tokens")
            path = name if nth == 1 else f"{name}:{nth}"
            named.append(replace(attention, path=path, remarks=remarks, role=role))
        return named

    def _is_part(self, seen: Seen) -> bool:
        """True where its module computes others in the same call, of the same queries or because it is for that."""
        others = [
            other for other in self._seen if other.running.number == seen.running.number and other is not seen
        ]
        others = [other for other in others if other.is_attention or other.may_be_one]
        is_named = bool(NAMED_ATTENTION.search(type(seen.running.module).__name__))
        return bool(others) and (is_named or any(seen.shares_queries(other) for other in others))

    def unfollowed(self, n_tokens: Container[int]) -> list[str]:
        """The paths of the modules with a softmax over so many tokens that was not followed to values."""
        drafts = [(seen.running.path, seen.draft) for seen in self._seen if seen.may_be_one]
        return [path for path, draft in drafts if draft is not None and draft.n_keys in n_tokens]

    def reshaped(self, running: Running, before: Tensor, after: Tensor) -> None:
        """Take note of a change of shape in a module that runs."""
        self._reshapes.note(running.path, before, after)

    def _in_order(
        self, seen: Seen, attention: Attention, n_sequences: int | None, *, is_of_image: bool
    ) -> Attention:
        """The attention as (B, H, ...): of (H, B, ...), one axis for both, two of heads, windows behind them."""
        if attention.kind == "multi_head_attention_forward":  # whose axes are known
            return attention
        (n_all, n_heads), shapes, module = attention.shape[:2], self._reshapes, attention.module
        if n_sequences and not n_all % n_sequences and self.options.takes_all:
            n_groups = n_all // n_sequences
            if min(n_groups, n_heads) > 1 and shapes.joins_groups(module, n_groups, n_heads):
                return with_groups_joined(attention, n_sequences)
            if n_heads == n_sequences and shapes.cuts(module, n_all) and not shapes.cuts(module, n_heads):
                return with_batch_first(attention)
            if n_heads == 1 and (found := shapes.sizes_in_one(module, n_all, n_sequences)):
                sizes, are_heads_first = found
                apart = with_both_axes(attention, sizes)
                return with_batch_first(apart) if are_heads_first else apart
            if is_of_image and shapes.cuts(module, n_groups) and not shapes.cuts(module, n_heads):
                return with_windows_first(attention, n_sequences)
        if is_of_image and n_heads == 1 and not shapes.cuts(module, n_all):  # windows of one head
            return attention
        return with_batch_first(attention) if seen.has_heads_first(attention, n_sequences) else attention

    def add(self, running: Running, call: Call, origins: Origins) -> None:
        """Keep a call of an attention in a module that runs; one of no sequence at all is none."""
        if 0 in call.shape:
            return
        attention = Attention(
            path=running.path,
            module=running.path,
            kind=call.kind,
            shape=call.shape,
            query_shape=tuple(call.query.shape),
            key_shape=tuple(call.key.shape),
            value_shape=tuple(call.value.shape),
            key_heads=call.key.shape[1],
            dtype=call.dtype,
            scale=call.scale,
            is_causal=call.is_causal,
            dropout=call.dropout,
            remarks=("contradicted_flag",) if call.contradicted else (),
            sinks=call.sinks,
        )
        attention = self._with_numbers(attention, call) if self._keeps_numbers(call.query) else attention
        self._seen.append(Seen(running, call.query, origins, attention))

    def _with_numbers(self, attention: Attention, whole: Call) -> Attention:
        call = whole.chosen(self.options.item, self.options.heads)
        scores = call.scores()
        read = call.read(self._read)
        if call.modified is not None:  # else the scores follow from what was read
            read = held(read, scores)
        weights = call.weights(scores)
        context = difference = None
        is_comparable = call.output is not None and not call.dropout
        if is_comparable or self.options.keeps_vectors:
            context = call.context(weights)
        if context is not None and call.output is not None and is_comparable:
            expected = call.to_output(context)
            difference = largest_difference(expected, call.output)
            if difference > _FAR * max(1.0, float(expected.abs().nan_to_num(0.0).amax())):
                read = replace(read, remark="not_read")
        attention = replace(
            attention,
            allowed=self._moved(read.allowed),
            bias=self._moved(read.bias),
            fill=read.fill,
            remarks=attention.remarks if read.remark is None else (*attention.remarks, read.remark),
            key_heads=different_heads(whole.repeated(whole.key)),
            weights=self._moved(weights),
            difference=difference,
        )
        if not self.options.keeps_vectors:
            return attention
        return replace(
            attention,
            query=self._copied(call.query),
            key=self._copied(call.key),
            value=self._copied(call.value),
            context=self._copied(context),
        )

    def begin(self, running: Running, softmax: Softmax) -> EagerDraft:
        """Keep a softmax in a module that runs, which is an attention if it knows queries or goes to values."""
        read, weights, known = ReadMask(), None, softmax.known
        if self._keeps_numbers(softmax.output):
            scores = softmax.scores.detach()
            read = held(read if known is None else known.read(self._read), scores)
            if known is None and has_unexplained_zeros(softmax.output, scores, softmax.axis):
                read = replace(read, remark="not_read")
            exactly = torch.promote_types(softmax.output.dtype, torch.float32)
            weights = self._copied(softmax.output.to(exactly))
        copied = self._copied if self.options.keeps_vectors else None
        draft = EagerDraft(running.path, softmax, read, weights, self._reduced, copied)
        query, origins = (None, UNKNOWN) if known is None else (known.query, known.origins)
        self._seen.append(Seen(running, query, origins, draft=draft))
        return draft

    def _keeps_numbers(self, tensor: Tensor) -> bool:
        """True if numbers are asked for, and there are any: not on the device "meta"."""
        return self.options.keeps_numbers and not tensor.is_meta

    def _reduced(self, attention: Attention) -> Attention:
        """Leave of an attention that is written out only the parts that were asked for."""

        def chosen(value: Tensor | None) -> Tensor | None:
            return None if value is None else self._moved(self._chosen(value))

        weights, allowed, bias = map(chosen, (attention.weights, attention.allowed, attention.bias))
        return replace(attention, weights=weights, allowed=allowed, bias=bias)

    def _read(self, mask: Tensor | None) -> ReadMask:
        """Read a mask, once for all layers that are given the same."""
        if mask is None:
            return ReadMask()
        place = (mask.untyped_storage().data_ptr(), mask.storage_offset(), mask.shape, mask.stride(), mask.dtype)
        version = 0 if mask.is_inference() else mask._version
        if (place, version) not in self._masks:
            read = read_mask(mask) if mask.dtype is torch.bool else read_added(mask)
            self._masks[place, version] = (mask, read)  # the mask itself too, so that its place is not used again
        return self._masks[place, version][1]

    def _chosen(self, tensor: Tensor) -> Tensor:
        if self.options.item is not None:
            tensor = picked(tensor, 0, [self.options.item])
        return tensor if self.options.heads is None else picked(tensor, 1, self.options.heads)

    def _moved(self, tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.to(self.options.to or tensor.device)

    def _copied(self, tensor: Tensor | None) -> Tensor | None:
        """A copy that nothing the model does later can change."""
        return None if tensor is None else tensor.detach().to(self.options.to or tensor.device, copy=True)


_FAR = 0.05
"""A larger difference from what the model went on with, relative to the largest number, is not one of rounding."""


class Seen:
    """An attention in a call of a module, or what may become one.

    Attributes:
        running: the call.
        origins: what its queries and keys were computed from.
        draft: where it is written out, what is known of it so far.
    """

    def __init__(
        self,
        running: Running,
        query: Tensor | None,
        origins: Origins,
        attention: Attention | None = None,
        draft: EagerDraft | None = None,
    ) -> None:
        self.running = running
        self.origins = origins
        self.draft = draft
        self._attention = attention
        self._queries = None if query is None else StorageWeakRef(query.untyped_storage())  # type: ignore[no-untyped-call]
        has_both = query is not None and query.dim() == 4 and min(query.shape[:2]) > 1
        self._strides = query.stride()[:2] if query is not None and has_both else (1, 0)

    @property
    def is_attention(self) -> bool:
        """True if it is one, as far as is known."""
        return self.draft is None or self.draft.is_attention

    @property
    def attention(self) -> Attention | None:
        """The attention; None where it is none, as far as is known."""
        return self._attention if self.draft is None else self.draft.attention

    @property
    def may_be_one(self) -> bool:
        """True for a softmax that was not followed to values."""
        return self.draft is not None and not self.draft.is_attention and self.draft.n_axes > 2

    def shares_queries(self, other: Seen) -> bool:
        """True where both take their queries out of one tensor."""
        one, two = self._queries, other._queries
        return one is not None and two is not None and one.cdata == two.cdata

    def has_heads_first(self, attention: Attention, n_sequences: int | None) -> bool:
        """True where its axes are (H, B, Tq, Tk): by their sizes, or by the order of its queries in memory."""
        one, two = attention.shape[:2]
        if two != n_sequences:
            return False
        if two == 1:  # the heads of one sequence, where these share an axis
            return one > 1
        return bool(one % two) or (one == two and self._strides[0] < self._strides[1])


def _n_sequences(tokens: Sequence[int], shapes: Sequence[Sequence[int]]) -> int | None:
    """B of (B, T, ...), or of (T, B, ...) where attentions go along the first axis alone; None if unknown."""
    if not 1 < len(tokens) < 4:
        return tokens[0] if tokens else None
    first, second = tokens[:2]
    is_along_first, is_along_second = (
        any(n_queries == length and not n_all % number for n_all, _, n_queries, _ in shapes)
        for length, number in ((first, second), (second, first))
    )
    return second if is_along_first and not is_along_second else first
