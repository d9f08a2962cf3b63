"""The masks that the settings ask for, for each attention of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from headlight.masks.language import MaskContext, MaskExpressionError, express, parse
from model import CombinedMask, MaskInputs, build_masks
from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.masks import MASK_NAMES, OWN
from visualizer.runs.tokens import TokenSequence, segments
from visualizer.settings.attentions import attentions_of, seen_by
from visualizer.settings.painted_mask import (
    Scope,
    asks_for_head,
    decode_cells,
    encode_cells,
    is_cells,
    read_planes,
    source_at,
    write_planes,
)
from visualizer.settings.settings import Settings

say = texts_of(__name__)

Masks = Mapping[str, tuple[CombinedMask, ...]]
"""The masks of each layer, by the attention's path without the layer's number."""

Batch = Sequence[TokenSequence]
"""Sequences of one length that a model reads at once."""

SHORT = 160
"""Characters up to which cells are kept as the expression that gives them: it is readable and fits any text."""


def promised_masks(settings: Settings, batches: Mapping[SequenceName, Batch]) -> Masks:
    """The masks as they were chosen, of each attention as it sees the settings (``seen_by``).

    Raises:
        ValueError: a painted mask is none.
    """
    return {
        attention.path: _in_each_layer(
            seen_by(attention, settings),
            attention.n_layers(settings),
            batches[attention.queries],
            batches[attention.keys],
        )
        for attention in attentions_of(settings.architecture)
    }


def applied_masks(settings: Settings, promised: Masks) -> Masks:
    """The masks as the model is given them: one layer goes without where that is the fault chosen."""
    if settings.fault != "left_out":
        return promised
    return {
        kind: tuple(
            CombinedMask({}) if layer == layer_left_out(len(masks)) else mask for layer, mask in enumerate(masks)
        )
        for kind, masks in promised.items()
    }


def same_masks(one: Masks, other: Masks) -> bool:
    """True if two choices of masks block the same cells, whatever they are called."""
    pairs = [pair for kind in one for pair in zip(one[kind], other[kind], strict=True)]
    return all(block_the_same(a.allowed, b.allowed) for a, b in pairs)


def block_the_same(one: Tensor | None, other: Tensor | None) -> bool:
    """True if two masks, each True = may attend or None for no mask, block the same cells."""
    nothing = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    return bool(((nothing if one is None else one) == (nothing if other is None else other)).all())


def are_one(masks: Sequence[CombinedMask]) -> bool:
    """True if the masks of some layers block the same cells."""
    return all(mask is masks[0] or block_the_same(mask.allowed, masks[0].allowed) for mask in masks)


def names_of(masks: Iterable[CombinedMask]) -> tuple[str, ...]:
    """The names of all masks among some that are combined, in their order."""
    return tuple(sorted({name for mask in masks for name in mask.names}, key=(*MASK_NAMES, OWN).index))


def layer_left_out(n_layers: int) -> int:
    """The layer of a stack that goes without its masks under the fault ``left_out``: the middle one."""
    return n_layers // 2


def painted_cells(source: str, context: MaskContext) -> Tensor:
    """The cells that a plane of the painting allows, (Tq, Tk), True = may attend.

    Raises:
        ValueError: the plane is not one.
    """
    size = (context.n_queries, context.n_keys)
    if not source:
        return torch.ones(size, dtype=torch.bool)
    if is_cells(source):
        return ~torch.from_numpy(decode_cells(source, *size))
    return parse(source).evaluate(context)


@lru_cache(maxsize=64)
def as_expression(source: str, context: MaskContext) -> str:
    """The expression of a plane; "" where it blocks nothing or no expression is short enough."""
    return _words_for(painted_cells(source, context), context) if is_cells(source) else source


def as_source(allowed: Tensor, context: MaskContext) -> str:
    """A plane that allows exactly these cells, (T, T): the expression if it is short, else the cells."""
    if bool(allowed.all()):
        return ""
    expression = _words_for(allowed, context)
    return expression if 0 < len(expression) <= SHORT else encode_cells((~allowed).numpy())


def _words_for(allowed: Tensor, context: MaskContext) -> str:
    return _found(allowed.numpy().tobytes(), tuple(allowed.shape), context)


@lru_cache(maxsize=16)
def _found(cells: bytes, size: tuple[int, int], context: MaskContext) -> str:
    """Express the cells of a stroke; cached, because the page asks for it again when it shows them."""
    return express(torch.frombuffer(bytearray(cells), dtype=torch.bool).view(size), context)


@lru_cache(maxsize=64)
def mask_context(
    queries: TokenSequence, keys: TokenSequence | None = None, head: int = 0, item: int = 0
) -> MaskContext:
    """Return the context that an expression may ask about in one head of an attention.

    Args:
        queries: the tokens that look.
        keys: those that are looked at; None where they look at each other.
        head: the number of the head.
        item: the number of the sequence in the batch.
    """
    seen = queries if keys is None else keys
    return MaskContext(
        query_tokens=queries.ids,
        key_tokens=seen.ids,
        query_is_padding=queries.is_padding,
        key_is_padding=seen.is_padding,
        query_segments=segments(queries),
        key_segments=segments(seen),
        head=head,
        sequence=item,
    )


def readable_painting(
    settings: Settings, batches: Mapping[SequenceName, Batch]
) -> tuple[Settings, tuple[str, ...]]:
    """The settings without those planes that cannot be read, and one sentence for each."""
    complaints = []
    for attention in attentions_of(settings.architecture):
        planes = read_planes(getattr(settings, attention.painting))
        context = mask_context(batches[attention.queries][0], batches[attention.keys][0])
        for scope, source in list(planes.items()):
            try:
                painted_cells(source, context)
            except MaskExpressionError as error:
                del planes[scope]
                complaints.append(
                    say("left_out", source=source, error=error)
                    if attention.has_the_list
                    else say("left_out_of", source=source, attention=attention.called, error=error)
                )
        readable: dict[str, Any] = {attention.painting: write_planes(planes)}
        if readable[attention.painting] != getattr(settings, attention.painting):
            settings = replace(settings, **readable)
    return settings, tuple(complaints)


def masks_of_list(
    settings: Settings, n_queries: int, key_is_padding: Tensor, painted: Tensor | None = None
) -> CombinedMask:
    """The masks that are chosen, over keys (B, Tk) bool; that of a painting where its cells are given."""
    sizes: dict[str, Any] = {name: getattr(settings, name) for name in ("window", "prefix", "stride")}
    inputs = MaskInputs(n_queries, key_is_padding.shape[1], key_is_padding, custom=painted, **sizes)
    return build_masks([name for name in settings.mask if name != "custom" or painted is not None], inputs)


def _in_each_layer(settings: Settings, n_layers: int, queries: Batch, keys: Batch) -> tuple[CombinedMask, ...]:
    """The masks of an attention in every layer; layers that share them share one object."""
    is_padding = torch.tensor([sequence.is_padding for sequence in keys])
    build = partial(masks_of_list, settings, len(queries[0]), is_padding)
    if "custom" not in settings.mask:
        return (build(),) * n_layers
    planes = read_planes(settings.custom)
    built: dict[tuple[str, ...], CombinedMask] = {}
    for sources in (_sources(planes, settings, layer) for layer in range(n_layers)):
        if sources not in built:
            built[sources] = build(_of_batch(sources, queries, keys))
    return tuple(built[_sources(planes, settings, layer)] for layer in range(n_layers))


def _sources(planes: Mapping[Scope, str], settings: Settings, layer: int) -> tuple[str, ...]:
    return tuple(source_at(planes, layer, head) for head in range(settings.n_heads))


def _of_batch(sources: Sequence[str], queries: Batch, keys: Batch) -> Tensor:
    """Return the cells open to each head per sequence, (B, H or 1, Tq, Tk); as ``_of_heads`` where all agree."""
    pairs = zip(queries, keys, strict=True)
    painted = [_of_heads(sources, *pair, item) for item, pair in enumerate(pairs)]
    if all(torch.equal(cells, painted[0]) for cells in painted):
        return painted[0]
    return torch.stack([cells[(None,) * (3 - cells.dim())] for cells in painted])


def _of_heads(sources: Sequence[str], queries: TokenSequence, keys: TokenSequence, item: int) -> Tensor:
    """Return the cells open to each head, (H, Tq, Tk), or (Tq, Tk) where they are the same for all."""
    if len(set(sources)) == 1 and not asks_for_head(sources[0]):
        return painted_cells(sources[0], mask_context(queries, keys, 0, item))
    contexts = [mask_context(queries, keys, head, item) for head in range(len(sources))]
    return torch.stack([painted_cells(source, context) for source, context in zip(sources, contexts, strict=True)])
