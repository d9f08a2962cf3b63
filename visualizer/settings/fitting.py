"""The combinations of settings: the values to offer, the masks where none are named, and the nearest that fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from visualizer.settings.fields import NARROWEST, PRETRAINED, TRAINED, WIDEST
from visualizer.settings.settings import FIELDS, Settings, in_mask_order
from visualizer.settings.trained_models import TRAINED_MODELS

_HEAD_DIMS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)


@lru_cache(maxsize=256)
def widths(n_heads: int, d_model: int) -> tuple[int, ...]:
    """The values of d_model to offer, ascending: usual ones that ``n_heads`` heads can share, and the one in use.

    All are even, since sine and cosine come in pairs. The one in use is left out where the heads cannot share it.
    Heads with a width of their own share nothing: for them ``n_heads`` is 1.
    """
    usual = {d_model, *(n_heads * head_dim for head_dim in _HEAD_DIMS)}
    return tuple(
        width for width in sorted(usual) if width % n_heads == 0 and width % 2 == 0 and NARROWEST <= width <= WIDEST
    )


def offered(name: str, in_use: float) -> tuple[float, ...]:
    """The usual values of a setting, ascending, and among them the one in use."""
    return tuple(sorted({*FIELDS[name].offered, in_use}))


_SAME_FOR_TRAINED = (
    *("order", "dropout", "activation", "n_decoder_layers", "shared_vocabulary"),
    *("head_dim", "d_out", "final_norm", "layer_norm_eps"),
    *("qkv_bias", "fused_qkv", "output_bias", "unembedding_bias"),
)

PLAIN: Mapping[str, Any] = {name: getattr(Settings(), name) for name in _SAME_FOR_TRAINED}
"""The settings that are the same for every model that was trained: the defaults."""


OF_CHECKPOINT = (
    *("weights", "architecture", "text", "target", "mask", "window", "prefix", "stride", "edits", "other_text"),
    *("custom", "custom_encoder", "custom_cross", "encoder_padding", "cross_padding"),
    *("pretrained_model", "pretrained_chat", "pretrained_batch", "pretrained_dtype", "pretrained_device"),
)
"""The settings that a pass of a checkpoint depends on."""

EXAMPLE_TEXT = "When Mary and John went to the store, John gave a drink to"
"""The text that a checkpoint reads where none is chosen."""


def usual_mask(settings: Settings) -> tuple[str, ...]:
    """The masks where none are named: a batch of several sequences comes with the padding mask.

    A shipped model comes with what it was trained with, a checkpoint with the masks of its own.
    """
    is_batch = len(settings.lines) > 1
    if settings.weights == PRETRAINED:
        own = () if settings.architecture == "encoder" else Settings().mask
        return in_mask_order((*own, "padding")) if is_batch else own
    if settings.weights == TRAINED:
        return TRAINED_MODELS[settings.task].masks(settings.pad > 0 or is_batch)
    return in_mask_order((*Settings().mask, "padding")) if is_batch else Settings().mask


def fitted(settings: Settings) -> Settings:
    """The nearest settings that can be combined.

    A width that the heads can share, the masks in their order, and, for a model that was trained, what it is. Of a
    checkpoint nothing but what can be chosen of it.
    """
    if settings.weights == PRETRAINED:
        return replace(Settings(), **{name: getattr(settings, name) for name in OF_CHECKPOINT})
    if settings.weights == TRAINED:
        settings = replace(settings, mask=in_mask_order(settings.mask), **PLAIN)
        return settings if settings.checkpoint else replace(settings, **TRAINED_MODELS[settings.task].shape)
    possible = widths(1 if settings.head_dim else settings.n_heads, settings.d_model)
    width = min(possible, key=lambda width: abs(width - settings.d_model))
    mask = in_mask_order(settings.mask)
    is_fitted = (width, mask) == (settings.d_model, settings.mask)
    return settings if is_fitted else replace(settings, d_model=width, mask=mask)


def width_to_come_back_to(settings: Settings) -> int:
    """The width asked for, where the heads cannot share it and ``fitted`` takes another; 0 where they can."""
    is_fitted = settings.weights not in (TRAINED, PRETRAINED) and fitted(settings).d_model != settings.d_model
    return settings.d_model if is_fitted else 0


def as_asked(settings: Settings) -> Settings:
    """The settings of a run without what its checkpoint fixes, which no link says."""
    return fitted(settings) if settings.weights == PRETRAINED else settings
