"""Attention masks: which query may attend to which key, and which mask blocks a cell.

A mask is boolean, True = may attend, and broadcastable to (B, H, Tq, Tk). Masks combine with *and*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from torch import Tensor

from model.config import check_at_least

LayerMasks = Tensor | Sequence[Tensor | None] | None
"""One mask for every layer, or one, or None, per layer."""


def causal(n_queries: int, n_keys: int) -> Tensor:
    """No query sees a later key ("Attention Is All You Need", section 3.2.3). Returns (Tq, Tk).

    >>> causal(3, 3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    query, key = _positions(n_queries, n_keys)
    return key <= query


def padding(key_is_padding: Tensor) -> Tensor:
    """No query sees a padding token. Takes (B, Tk), True = padding; returns (B, 1, 1, Tk).

    Raises:
        ValueError: it is not boolean.

    >>> padding(torch.tensor([[False, False, True]]))
    tensor([[[[ True,  True, False]]]])
    """
    return ~_boolean("key_is_padding", key_is_padding)[:, None, None, :]


def sliding_window(n_queries: int, n_keys: int, width: int) -> Tensor:
    """A query sees the keys less than ``width`` away on either side, itself included (Longformer, section 3.1).

    Returns (Tq, Tk). Together with ``causal``, the last ``width`` tokens.

    Raises:
        ValueError: ``width`` is below 1, which would leave no key.

    >>> sliding_window(3, 3, width=2)
    tensor([[ True,  True, False],
            [ True,  True,  True],
            [False,  True,  True]])
    """
    check_at_least(1, "width", width)
    query, key = _positions(n_queries, n_keys)
    return (query - key).abs() < width


def prefix(n_queries: int, n_keys: int, length: int, key_is_padding: Tensor | None = None) -> Tensor:
    """The first ``length`` keys are seen by all, later ones causally (the prefix LM of T5, section 3.2.1).

    Padding before the first token does not count, so that a prefix has as many tokens whatever stands before it.

    Args:
        n_queries: Tq.
        n_keys: Tk.
        length: how many tokens.
        key_is_padding: (B, Tk), True = padding; None where there is none.

    Returns (Tq, Tk), or (B, 1, Tq, Tk) where a sequence begins with padding.

    Raises:
        ValueError: ``length`` is negative.

    >>> prefix(3, 3, length=2)
    tensor([[ True,  True, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    check_at_least(0, "length", length)
    query, key = _positions(n_queries, n_keys)
    if key_is_padding is not None and bool(key_is_padding[:, 0].any()):
        n_before = key_is_padding.long().cumprod(1).sum(1)
        return (key < length + n_before[:, None, None, None]) | (key <= query)
    return (key < length) | (key <= query)


def strided(n_queries: int, n_keys: int, stride: int) -> Tensor:
    """A query sees every ``stride``-th key, counted from itself (Sparse Transformer, section 4.3).

    Returns (Tq, Tk).

    Raises:
        ValueError: ``stride`` is below 1.

    >>> strided(3, 3, stride=2)
    tensor([[ True, False,  True],
            [False,  True, False],
            [ True, False,  True]])
    """
    check_at_least(1, "stride", stride)
    query, key = _positions(n_queries, n_keys)
    return (query - key) % stride == 0


def custom(allowed: Tensor) -> Tensor:
    """A mask given cell by cell, (..., Tq, Tk), True = may attend.

    Raises:
        ValueError: it is not boolean, so that 0/1 or 0/-inf masks are never misread.

    >>> custom(torch.tensor([[1, 0], [1, 1]]))
    Traceback (most recent call last):
    ValueError: custom must be boolean, not torch.int64
    """
    return _boolean("custom", allowed)


@dataclass(frozen=True, eq=False)
class MaskInputs:
    """The inputs that the masks are built from.

    Attributes:
        n_queries: Tq.
        n_keys: Tk.
        key_is_padding: (B, Tk), True = padding.
        window: width of ``sliding_window``.
        prefix: length of ``prefix``.
        stride: stride of ``strided``.
        custom: the cells of ``custom``, (..., Tq, Tk); None allows all.
    """

    n_queries: int
    n_keys: int
    key_is_padding: Tensor
    window: int = 3
    prefix: int = 3
    stride: int = 3
    custom: Tensor | None = None


MASKS: dict[str, Callable[[MaskInputs], Tensor]] = {
    "causal": lambda inputs: causal(inputs.n_queries, inputs.n_keys),
    "padding": lambda inputs: padding(inputs.key_is_padding),
    "sliding_window": lambda inputs: sliding_window(inputs.n_queries, inputs.n_keys, inputs.window),
    "prefix": lambda inputs: prefix(inputs.n_queries, inputs.n_keys, inputs.prefix, inputs.key_is_padding),
    "strided": lambda inputs: strided(inputs.n_queries, inputs.n_keys, inputs.stride),
    "custom": lambda inputs: _custom_cells(inputs),
}


@dataclass(frozen=True, eq=False)
class CombinedMask:
    """Several masks and'ed, which still knows the part that each of them plays.

    Attributes:
        parts: name -> mask, each broadcastable to (B, H, Tq, Tk), True = may attend.
    """

    parts: Mapping[str, Tensor]

    @property
    def names(self) -> tuple[str, ...]:
        """The masks' names, in the order given."""
        return tuple(self.parts)

    def without(self, name: str) -> CombinedMask:
        """The same masks but for one."""
        return CombinedMask({other: part for other, part in self.parts.items() if other != name})

    @cached_property
    def allowed(self) -> Tensor | None:
        """The combined mask, (B or 1, H or 1, Tq or 1, Tk); None where no mask was given."""
        if not self.parts:
            return None
        with torch.inference_mode(False):  # it is kept, for passes that are differentiated too
            return with_leading_axes(reduce(torch.logical_and, self.parts.values()))

    def blocked_by(self, query: int, key: int, batch: int = 0, head: int = 0) -> tuple[str, ...]:
        """The names of the masks that block one cell; empty where it may attend."""
        return tuple(name for name, part in self.parts.items() if not _cell(part, (batch, head, query, key)))

    def blocked_bits(self, n_queries: int, n_keys: int, batch: int = 0) -> Tensor:
        """Return the masks that block each cell: (H or 1, Tq, Tk) uint8, bit i set = blocked by ``names[i]``."""
        bits = torch.zeros(1, n_queries, n_keys, dtype=torch.uint8)
        for i, part in enumerate(self.parts.values()):
            whole = with_leading_axes(part)
            heads = whole[batch if len(whole) > 1 else 0].expand(-1, n_queries, n_keys)
            bits = bits | (~heads).to(torch.uint8) << i
        return bits


def with_leading_axes(mask: Tensor) -> Tensor:
    """Give a mask that is broadcast to (B, H, Tq, Tk) all four axes: those missing come first and have size 1."""
    return mask[(None,) * (4 - mask.dim())]


def build_masks(names: Sequence[str], inputs: MaskInputs) -> CombinedMask:
    """Build the named masks.

    Raises:
        ValueError: a name is not in ``MASKS``, or what its mask is built from does not fit.

    >>> masks = build_masks(["causal", "padding"], MaskInputs(2, 2, torch.tensor([[False, True]])))
    >>> masks.allowed
    tensor([[[[ True, False],
              [ True, False]]]])
    >>> masks.blocked_by(query=0, key=1), masks.blocked_by(query=1, key=1)
    (('causal', 'padding'), ('padding',))
    """
    for name in names:
        if name not in MASKS:
            raise ValueError(f"mask ({name!r}) must be one of: {', '.join(MASKS)}")
    return CombinedMask({name: MASKS[name](inputs) for name in names})


def for_each_layer(mask: LayerMasks, n_layers: int) -> Sequence[Tensor | None]:
    """The mask of each layer.

    Raises:
        ValueError: there are masks for another number of layers.
    """
    if mask is None or isinstance(mask, Tensor):
        return (mask,) * n_layers
    if len(mask) != n_layers:
        raise ValueError(f"masks are given for {len(mask)} layers: there must be one for each of the {n_layers}")
    return mask


def _positions(n_queries: int, n_keys: int) -> tuple[Tensor, Tensor]:
    return torch.arange(n_queries)[:, None], torch.arange(n_keys)[None, :]


def _custom_cells(inputs: MaskInputs) -> Tensor:
    size = (inputs.n_queries, inputs.n_keys)
    if inputs.custom is None:
        return torch.ones(size, dtype=torch.bool)
    if inputs.custom.shape[-2:] != size:
        raise ValueError(f"custom has cells {tuple(inputs.custom.shape[-2:])}: it must have (Tq, Tk) = {size}")
    return custom(inputs.custom)


def _boolean(name: str, mask: Tensor) -> Tensor:
    if mask.dtype is not torch.bool:
        raise ValueError(f"{name} must be boolean, not {mask.dtype}")
    return mask


def _cell(mask: Tensor, index: tuple[int, int, int, int]) -> bool:
    """One cell of a mask that may have fewer axes, or axes of size 1, than (B, H, Tq, Tk)."""
    return bool(mask[_place(index[4 - mask.dim() :], mask.shape)])


def _place(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """An index into an array that is broadcast along its axes of size 1."""
    return tuple(i if size > 1 else 0 for i, size in zip(index, shape, strict=True))
