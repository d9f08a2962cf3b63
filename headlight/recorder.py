"""Makes an ``Attention`` of each call and keeps of it what was asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from headlight.attention import Attention, Keep
from headlight.call import Call, four_axes, picked
from headlight.masks import ReadMask, read_added, read_mask
from headlight.written import Scores

_NUMBER = re.compile(r"(?:^|\.)(\d+)(?:\.|$)")


@dataclass(frozen=True)
class Options:
    """What is to be kept.

    Attributes:
        layers: numbers of layers, as they stand in the modules' names, and names or patterns of them
            (``encoder.*``); None for all.
        keep: ``shapes`` keeps no numbers, ``weights`` the weights, masks and biases, ``all`` also queries, keys,
            values and context, and every operation of the model.
        item: the sequence of the batch; None for all.
        heads: the heads; None for all.
        to: the device; None leaves tensors where they are.

    Raises:
        ValueError: ``keep`` is none of the three.
    """

    layers: tuple[int | str, ...] | None = None
    keep: Keep = "weights"
    item: int | None = None
    heads: tuple[int, ...] | None = None
    to: str | torch.device | None = None

    def __post_init__(self) -> None:
        if self.keep not in ("shapes", "weights", "all"):
            raise ValueError(f"keep ({self.keep!r}) must be one of: shapes, weights, all")

    def wants(self, path: str) -> bool:
        """Whether anything is to be kept of a module."""
        found = _NUMBER.search(path)
        number = int(found[1]) if found else None
        return self.layers is None or any(
            layer == number if isinstance(layer, int) else fnmatchcase(path, layer) or path.startswith(f"{layer}.")
            for layer in self.layers
        )

    @property
    def keeps_numbers(self) -> bool:
        """Whether more than shapes is kept."""
        return self.keep != "shapes"


class Recorder:
    """Keeps what is asked for of one watched block."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._seen: list[Attention | WrittenDraft] = []
        self._masks: dict[object, tuple[Tensor, ReadMask]] = {}

    @property
    def n_seen(self) -> int:
        """How many attentions were seen so far."""
        return sum(not isinstance(seen, WrittenDraft) or seen.is_attention for seen in self._seen)

    def attentions(self) -> list[Attention]:
        """Everything seen, in the order computed, under its name."""
        times: Counter[str] = Counter()
        named = []
        for seen in self._seen:
            if isinstance(seen, WrittenDraft) and not seen.is_attention:
                continue
            attention = seen.attention if isinstance(seen, WrittenDraft) else seen
            times[attention.module] += 1
            name, nth = attention.module or "model", times[attention.module]
            named.append(replace(attention, path=name if nth == 1 else f"{name}:{nth}"))
        return named

    def add(self, module: str, call: Call) -> None:
        """Keep a call of an attention in the module at a path."""
        attention = Attention(
            path=module,
            module=module,
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
        )
        self._seen.append(self._with_numbers(attention, call) if self.options.keeps_numbers else attention)

    def _with_numbers(self, attention: Attention, whole: Call) -> Attention:
        call = whole.chosen(self.options.item, self.options.heads)
        weights = call.weights()
        context = difference = None
        is_comparable = call.output is not None and not call.dropout
        if is_comparable or self.options.keep == "all":
            context = call.context(weights)
        if context is not None and call.output is not None and is_comparable:
            difference = largest_difference(call.to_output(context), call.output)
        attention = replace(
            self._masked(attention, call.read(self._read)),
            key_heads=different_heads(whole.repeated(whole.key)),
            weights=self._moved(weights),
            difference=difference,
        )
        if self.options.keep != "all":
            return attention
        return replace(
            attention,
            query=self._copied(call.query),
            key=self._copied(call.key),
            value=self._copied(call.value),
            context=self._copied(context),
        )

    def begin(self, module: str, scores: Tensor, output: Tensor, known: Scores | None, axis: int) -> WrittenDraft:
        """Keep a softmax in the module at a path, which is an attention if it knows queries or goes to values."""
        shape = four_axes(output).shape
        attention = Attention(
            path=module,
            module=module,
            kind="softmax",
            shape=(shape[0], shape[1], shape[2], shape[3]),
            query_shape=() if known is None else tuple(known.query.shape),
            key_shape=() if known is None else tuple(known.key.shape),
            value_shape=(),
            key_heads=shape[1],
            dtype=scores.dtype,
            scale=1.0 if known is None else known.scale,
            is_causal=False,
            dropout=0.0,
            remarks=() if axis == -1 else ("softmax_over_queries" if axis == -2 else "softmax_over_heads",),
        )
        if self.options.keeps_numbers:
            attention = self._with_written_numbers(attention, output, known)
        draft = WrittenDraft(attention, known is not None, self._copied if self.options.keep == "all" else None)
        self._seen.append(draft)
        return draft

    def _with_written_numbers(self, attention: Attention, output: Tensor, known: Scores | None) -> Attention:
        weights = self._chosen(four_axes(output))
        exactly = torch.promote_types(weights.dtype, torch.float32)
        attention = replace(attention, weights=self._copied(weights.to(exactly)))
        if known is None:
            return attention
        read = known.read(output.shape, self._read)
        chosen = replace(
            read,
            allowed=None if read.allowed is None else self._chosen(read.allowed),
            bias=None if read.bias is None else self._chosen(read.bias),
        )
        if known.key.dim() == 4 and known.key.shape[1] == attention.n_heads:
            attention = replace(attention, key_heads=different_heads(known.key))
        attention = self._masked(attention, chosen)
        if self.options.keep != "all":
            return attention
        return replace(attention, query=self._copied(known.query), key=self._copied(known.key))

    def _masked(self, attention: Attention, read: ReadMask) -> Attention:
        return replace(
            attention,
            allowed=self._moved(read.allowed),
            bias=self._moved(read.bias),
            fill=read.fill,
            remarks=attention.remarks if read.remark is None else (*attention.remarks, read.remark),
        )

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


class WrittenDraft:
    """An attention that is written out, as far as it has come.

    Attributes:
        attention: what is known of it.
        is_attention: whether it came from queries and keys, or went to values.
    """

    def __init__(
        self, attention: Attention, is_attention: bool, copied: Callable[[Tensor], Tensor | None] | None
    ) -> None:
        self.attention = attention
        self.is_attention = is_attention
        self._copied = copied

    def dropped(self, share: float) -> None:
        """Some of the weights were dropped."""
        self.attention = replace(self.attention, dropout=share)

    def changed(self) -> None:
        """They were masked or multiplied after the softmax."""
        if "changed_after_softmax" not in self.attention.remarks:
            remarks = (*self.attention.remarks, "changed_after_softmax")
            self.attention = replace(self.attention, remarks=remarks)

    def completed(self, weights: Tensor, value: Tensor, output: Tensor | None) -> None:
        """They were multiplied with the values, which gave ``output`` if that is known."""
        if self.attention.value_shape:
            return
        self.is_attention = True
        self.attention = replace(self.attention, value_shape=tuple(value.shape))
        if output is None or self.attention.weights is None:
            return
        exactly = self.attention.weights.dtype
        if weights.dtype is exactly and self._copied is None:
            return
        with aside(output):
            context = weights.to(exactly) @ value.to(exactly)
            if not self.attention.dropout:
                self.attention = replace(self.attention, difference=largest_difference(context, output))
        if self._copied is not None:
            self.attention = replace(self.attention, value=self._copied(value), context=self._copied(context))


@contextmanager
def aside(like: Tensor) -> Iterator[None]:
    """Compute beside the model: without gradients, in full precision, unseen by any function mode."""
    with torch.no_grad(), torch.autocast(like.device.type, enabled=False), torch._C.DisableTorchFunction():
        yield


def largest_difference(one: Tensor, other: Tensor) -> float:
    """The largest difference of two numbers at one place; NaN beside NaN is none."""
    gap = (one - other.to(one.dtype)).abs()
    same = (one == other) | (one.isnan() & other.isnan())
    return float(gap.masked_fill(same, 0.0).max()) if gap.numel() else 0.0


def different_heads(keys: Tensor) -> int:
    """How many of (B, H, Tk, Dh) heads differ from the one before, by the first and the last key of a sequence."""
    if keys.shape[1] == 1 or not keys.numel():
        return keys.shape[1]
    some = keys[0, :, [0, -1]]
    differs = (some[1:] != some[:-1]).flatten(1).any(1) | (some[1:] == 0).flatten(1).all(1)
    return 1 + int(differs.sum())
