"""Attentions in which sequences and heads are in one axis, or stand the other way round, as (B, H, ...).

Which it is shows in the changes of shape around them: those of each module are noted while it runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headlight.attentions import Attention

Sizes = tuple[int, ...]


class Reshapes:
    """The changes of shape in the modules of a pass."""

    def __init__(self) -> None:
        self._by_module: defaultdict[str, set[tuple[Sizes, Sizes]]] = defaultdict(set)

    def note(self, module: str, before: Tensor, after: Tensor) -> None:
        """Take note of one: of real numbers, since a mask has no heads that are parts of a width."""
        if before.is_floating_point():
            self._by_module[module].add((before.shape, after.shape))

    def cut_across_tokens(self) -> list[str]:
        """The modules that cut or join the heads of a token across tokens."""
        return [
            module for module in self._by_module if any(_is_across_tokens(*shapes) for shapes in self._of(module))
        ]

    def sizes_in_one(self, module: str, n_all: int, n_sequences: int) -> tuple[tuple[int, int], bool] | None:
        """The sizes (B, H) or (H, B) that a module has in one axis of ``n_all``, and whether the heads are first.

        The heads are parts of a width: windows of tokens, which are sequences of their own here, are none. None
        where there is no such axis.
        """
        cuts = {n_heads for shapes in self._of(module) for n_heads in _parts(*shapes) if n_heads > 1}
        found = [(n_all // n_heads, n_heads) for n_heads in sorted(cuts) if not n_all % (n_heads * n_sequences)]
        for one in sorted(found, key=lambda sizes: sizes[0] != n_sequences):
            for sizes in (one, one[::-1]) if one[0] == n_sequences else (one,):
                if any(_is_joined(*shapes, sizes) for shapes in self._of(module)):
                    return sizes, sizes != one
        return None

    def cuts(self, module: str, n_heads: int) -> bool:
        """True where a module cuts a width into so many heads."""
        return any(n_heads in _parts(*each) for each in self._of(module))

    def joins_groups(self, module: str, n_groups: int, n_heads: int) -> bool:
        """True where a module joins so many groups of so many heads, to a width or to one axis of heads."""
        return any(
            (n_groups, n_heads) in (_parts(whole, apart)[-2:], _groups(whole, apart))
            for apart, whole in self._in(module)
        )

    def _in(self, module: str) -> set[tuple[Sizes, Sizes]]:
        """The changes of shape in a module, or around one that has none, as a softmax that is a module."""
        return self._by_module.get(module) or self._by_module.get(module.rpartition(".")[0], set())

    def _of(self, module: str) -> Iterator[tuple[Sizes, Sizes]]:
        """The shapes before and after, and the other way round: what is cut here is joined there."""
        for before, after in self._in(module):
            yield before, after
            yield after, before


def _parts(whole: Sizes, cut: Sizes) -> Sizes:
    """The parts of (B, T, D) or (T, B, D) in (B, T, H, D / H) or (T, B H, D / H); () for other shapes.

    There may be any axes before D, and one more of the queries, keys and values beside H. The projection of an
    image cuts (B, D, X, Y) before X.
    """
    if groups := _groups(whole, cut):
        return groups[:1]
    for first in range(1, len(cut) - 1):
        if (math.prod(cut[:first]), math.prod(cut[first:])) == (math.prod(whole[:-1]), whole[-1]):
            return cut[first:-1]
    n_parts = whole[2] // cut[2] if len(whole) == len(cut) == 3 and cut[2] else 0
    return (n_parts,) if n_parts > 1 and cut == (whole[0], whole[1] * n_parts, whole[2] / n_parts) else ()


def _groups(heads: Sizes, grouped: Sizes) -> Sizes:
    """The groups and the heads in each of (B, H, T, D) in (B, G, H / G, T, D); () for other shapes."""
    is_cut = len(grouped) == 5 and heads == (grouped[0], grouped[1] * grouped[2], *grouped[3:])
    return grouped[1:3] if is_cut else ()


def _is_joined(apart: Sizes, joined: Sizes, sizes: tuple[int, int]) -> bool:
    """True where (B, H, T, D) has its first two sizes in one axis of the other shape, or (T, B, H D) B and H.

    The tokens of an image may have two axes until then. Queries, keys and values may stand in an axis before.
    """
    if len(apart) == 5 and apart[0] == joined[0] == 3:
        apart, joined = apart[1:], joined[1:]
    if len(apart) > 3:
        return apart[:2] == sizes and joined == (math.prod(sizes), math.prod(apart[2:-1]), apart[-1])
    return len(joined) == 3 and sizes[1] in _parts(apart, joined) and apart[1] == sizes[0]


def _is_across_tokens(whole: Sizes, heads: Sizes) -> bool:
    """True where (B, T, D) and (B, H, T, D / H) are one memory: the heads of a token lie elsewhere in it."""
    if (len(whole), len(heads)) != (3, 4):
        return False
    (batch, n_tokens, width), (_, n_heads, _, head_dim) = whole, heads
    is_cut = (batch, n_tokens, width) == (heads[0], heads[2], n_heads * head_dim)
    return is_cut and min(n_tokens, n_heads) > 1 and n_tokens != n_heads


_TENSORS = ("weights", "allowed", "bias", "context", "query", "key", "value")
_SHAPES = ("shape", "query_shape", "key_shape", "value_shape")


def with_both_axes(attention: Attention, sizes: tuple[int, int]) -> Attention:
    """(B H, 1, ...) or (B H, T, D) to (B, H, ...)."""
    n_all = attention.shape[0]

    def apart(tensor: Tensor) -> Tensor:
        is_joined = tensor.dim() > 2 and len(tensor) == n_all
        return tensor.reshape(*sizes, *tensor.shape[2 if tensor.dim() > 3 else 1 :]) if is_joined else tensor

    return replace(_changed(attention, apart), key_heads=sizes[1])


def with_groups_joined(attention: Attention, n_sequences: int) -> Attention:
    """(B G, H / G, ...) or (B, G, H / G, ...) to (B, H, ...)."""
    n_all, n_heads = attention.shape[:2]

    def joined(tensor: Tensor) -> Tensor:
        if tensor.dim() == 5 and tensor.shape[:2] == (n_sequences, n_all // n_sequences):
            return tensor.flatten(1, 2)
        is_grouped = tensor.dim() == 4 and len(tensor) == n_all
        return tensor.reshape(n_sequences, -1, *tensor.shape[2:]) if is_grouped else tensor

    def of_each(cells: Tensor | None) -> Tensor | None:
        return cells if cells is None or cells.dim() < 4 else cells.expand(-1, n_heads, -1, -1)

    whole = replace(attention, allowed=of_each(attention.allowed), bias=of_each(attention.bias))
    found = _changed(whole, joined)
    return replace(found, key_heads=found.key_shape[1])


def with_windows_first(attention: Attention, n_sequences: int) -> Attention:
    """(B H, W, ...) or (B, H, W, ...), of heads that attend window by window, to (B W, H, ...)."""
    n_all, n_windows = attention.shape[:2]
    whole = (n_sequences, n_all // n_sequences, n_windows)

    def turned(tensor: Tensor) -> Tensor:
        if tensor.shape[:3] != whole and tensor.shape[:2] != (n_all, n_windows):
            return tensor
        return tensor.reshape(*whole, *tensor.shape[-2:]).transpose(1, 2).flatten(0, 1)

    return replace(_changed(attention, turned), key_heads=whole[1])


def with_batch_first(attention: Attention) -> Attention:
    """(H, B, ...) to (B, H, ...); of one sequence also (H, T, D) to (1, H, T, D)."""
    n_heads, n_sequences = attention.shape[:2]

    def turned(tensor: Tensor) -> Tensor:
        if n_sequences == 1 and tensor.dim() == 3 and len(tensor) == n_heads:
            return tensor[None]
        return tensor.transpose(0, 1).contiguous() if tensor.dim() == 4 else tensor

    return replace(_changed(attention, turned), key_heads=n_heads)


def _changed(attention: Attention, change: Callable[[Tensor], Tensor]) -> Attention:
    """The attention with other axes in each of its tensors and shapes."""
    found: dict[str, Any] = {}
    for name in _TENSORS:
        tensor = getattr(attention, name)
        found[name] = None if tensor is None else change(tensor)
    for name in _SHAPES:
        found[name] = tuple(change(torch.empty(getattr(attention, name), device="meta")).shape)
    return replace(attention, **found)
