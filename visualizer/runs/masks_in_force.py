"""The masks that the settings ask for, for each attention of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from model import CombinedMask, MaskInputs, build_masks
from model.mask_tools.language import MaskContext, MaskExpressionError, parse
from visualizer.components.axis import SequenceName
from visualizer.runs.tokens import TokenSequence, segments
from visualizer.settings.painted_mask import (
    Scope,
    asks_for_head,
    decode_cells,
    is_cells,
    read_planes,
    source_at,
    write_planes,
)
from visualizer.settings.settings import Settings, masked_attention

Masks = Mapping[str, tuple[CombinedMask, ...]]
"""The masks of each layer, by the attention's path without the layer's number."""

Batch = Sequence[TokenSequence]
"""Sequences of one length that a model reads at once."""


def promised_masks(settings: Settings, batches: Mapping[SequenceName, Batch]) -> Masks:
    """The masks as they were chosen.

    Beside a decoder, the encoder and the cross-attention take the padding mask alone, as in the paper: the others
    order the tokens that the decoder writes.

    Raises:
        ValueError: the painted mask is none.
    """
    source = batches["source"]
    if settings.architecture != "encoder-decoder":
        return {masked_attention(settings.architecture): _in_each_layer(settings, source)}
    target = batches["target"]
    names = tuple(name for name in settings.mask if name == "padding")
    of_padding = {
        "encoder.self_attention": build_masks(names, _given(settings, source, source)),
        "decoder.cross_attention": build_masks(names, _given(settings, target, source)),
    }
    return {
        "encoder.self_attention": (of_padding["encoder.self_attention"],) * settings.n_layers,
        "decoder.self_attention": _in_each_layer(settings, target),
        "decoder.cross_attention": (of_padding["decoder.cross_attention"],) * settings.depth,
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
    """Whether two choices of masks block the same cells, whatever they are called."""
    pairs = [pair for kind in one for pair in zip(one[kind], other[kind], strict=True)]
    return all(_block_the_same(a.allowed, b.allowed) for a, b in pairs)


def _block_the_same(one: Tensor | None, other: Tensor | None) -> bool:
    nothing = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    return bool(((nothing if one is None else one) == (nothing if other is None else other)).all())


def padding_is_seen(masks: Mapping[str, CombinedMask], batches: Mapping[SequenceName, Batch]) -> bool:
    """Whether a token that is no padding may attend to padding, if there is no padding mask.

    Args:
        masks: by the path of every attention.
        batches: the sequences that the model reads.
    """
    pads = {name: torch.tensor([sequence.is_padding for sequence in batch]) for name, batch in batches.items()}
    for path, mask in masks.items():
        of_target = "target" in batches and path.startswith("decoder.")
        queries = pads["target" if of_target else "source"]
        keys = pads["target" if of_target and "cross" not in path else "source"]
        pairs = ~queries[:, None, :, None] & keys[:, None, None, :]
        allowed = mask.without("padding").allowed
        if bool((pairs if allowed is None else pairs & allowed).any()):
            return True
    return False


def layer_left_out(n_layers: int) -> int:
    """The layer of a stack that goes without its masks under the fault ``left_out``: the middle one."""
    return n_layers // 2


def painted_cells(source: str, context: MaskContext) -> Tensor:
    """The cells that a plane of the painting allows, (T, T), True = may attend.

    Raises:
        ValueError: the plane is not one.
    """
    n_tokens = len(context.query_tokens)
    if not source:
        return torch.ones(n_tokens, n_tokens, dtype=torch.bool)
    if is_cells(source):
        return ~torch.from_numpy(decode_cells(source, n_tokens))
    return parse(source).evaluate(context)


@lru_cache(maxsize=64)
def mask_context(sequence: TokenSequence, head: int = 0, item: int = 0) -> MaskContext:
    """What an expression may ask in one head of a sequence that attends to itself, by its number in the batch."""
    of_segments = segments(sequence)
    return MaskContext(
        query_tokens=sequence.ids,
        key_tokens=sequence.ids,
        query_is_padding=sequence.is_padding,
        key_is_padding=sequence.is_padding,
        query_segments=of_segments,
        key_segments=of_segments,
        head=head,
        sequence=item,
    )


def readable_painting(settings: Settings, sequence: TokenSequence) -> tuple[Settings, tuple[str, ...]]:
    """The settings without those planes that cannot be read, and one sentence for each."""
    planes, complaints = read_planes(settings.custom), []
    context = mask_context(sequence)
    for scope, source in list(planes.items()):
        try:
            painted_cells(source, context)
        except MaskExpressionError as error:
            del planes[scope]
            complaints.append(f"The expression “{source}” is left out of the painted mask: {error}")
    return replace(settings, custom=write_planes(planes)), tuple(complaints)


def _in_each_layer(settings: Settings, batch: Batch) -> tuple[CombinedMask, ...]:
    """The masks of a self-attention in every layer; layers that share them share one object."""
    given = _given(settings, batch, batch)
    if "custom" not in settings.mask:
        return (build_masks(settings.mask, given),) * settings.depth
    planes = read_planes(settings.custom)
    built: dict[tuple[str, ...], CombinedMask] = {}
    for sources in (_sources(planes, settings, layer) for layer in range(settings.depth)):
        if sources not in built:
            painted = replace(given, custom=_of_batch(sources, batch))
            built[sources] = build_masks(settings.mask, painted)
    return tuple(built[_sources(planes, settings, layer)] for layer in range(settings.depth))


def _sources(planes: Mapping[Scope, str], settings: Settings, layer: int) -> tuple[str, ...]:
    return tuple(source_at(planes, layer, head) for head in range(settings.n_heads))


def _of_batch(sources: Sequence[str], batch: Batch) -> Tensor:
    """What each head may attend to in each sequence, (B, H or 1, T, T); as ``_of_heads`` where it is the same."""
    painted = [_of_heads(sources, sequence, item) for item, sequence in enumerate(batch)]
    if all(torch.equal(cells, painted[0]) for cells in painted):
        return painted[0]
    return torch.stack([cells[(None,) * (3 - cells.dim())] for cells in painted])


def _of_heads(sources: Sequence[str], sequence: TokenSequence, item: int) -> Tensor:
    """What each head may attend to, (H, T, T), or (T, T) where it is the same for all."""
    if len(set(sources)) == 1 and not asks_for_head(sources[0]):
        return painted_cells(sources[0], mask_context(sequence, 0, item))
    contexts = [mask_context(sequence, head, item) for head in range(len(sources))]
    return torch.stack([painted_cells(source, context) for source, context in zip(sources, contexts, strict=True)])


def _given(settings: Settings, queries: Batch, keys: Batch) -> MaskInputs:
    return MaskInputs(
        n_queries=len(queries[0]),
        n_keys=len(keys[0]),
        key_is_padding=torch.tensor([sequence.is_padding for sequence in keys]),
        window=settings.window,
        prefix=settings.prefix,
        stride=settings.stride,
    )
