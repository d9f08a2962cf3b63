"""What the inputs of a model say about its tokens: how many there are, and which are padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_TOKENS = ("input_ids", "inputs_embeds", "src", "x", "query", "input", "pixel_values", "input_features")
_ONE_IS_REAL = ("attention_mask", "decoder_attention_mask")
_TRUE_IS_PADDING = ("src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask", "key_padding_mask")


@dataclass(frozen=True, eq=False)
class Padding:
    """Which tokens of a batch are padding, as far as the inputs tell.

    Attributes:
        encoder: (B, T) bool, True = padding, of the only sequence or of the encoder's; None if unknown.
        decoder: the same of the decoder's; None if unknown.
    """

    encoder: Tensor | None = None
    decoder: Tensor | None = None


NO_PADDING = Padding()
"""Nothing is known of any."""


def tokens_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    """The first input that can hold tokens, (B, T) or (B, T, D)."""
    named = [kwargs[name] for name in _TOKENS if name in kwargs]
    for given in (*args, *named, *kwargs.values()):
        if isinstance(given, Tensor) and given.dim() >= 2:
            return given
    return None


def padding_of(kwargs: Mapping[str, Any], padding: Tensor | None = None) -> Padding:
    """The padding that the inputs name, in the conventions of their names.

    Args:
        kwargs: what the model is called with by name.
        padding: (B, T), True = padding; where given, it is believed in place of the inputs.

    Raises:
        ValueError: ``padding`` is not boolean with two axes.
    """
    if padding is not None:
        if padding.dtype is not torch.bool or padding.dim() != 2:
            raise ValueError(
                f"padding is {padding.dtype} {tuple(padding.shape)}: it must be boolean, (B, T), True = padding"
            )
        return Padding(padding)
    found = {
        name: _is_padding(given, true_is_padding=name in _TRUE_IS_PADDING)
        for name in (*_ONE_IS_REAL, *_TRUE_IS_PADDING)
        if isinstance(given := kwargs.get(name), Tensor) and given.dim() == 2
    }
    encoder = [
        found[name] for name in ("attention_mask", "src_key_padding_mask", "key_padding_mask") if name in found
    ]
    decoder = [found[name] for name in ("decoder_attention_mask", "tgt_key_padding_mask") if name in found]
    return Padding(encoder[0] if encoder else None, decoder[0] if decoder else None)


def _is_padding(mask: Tensor, *, true_is_padding: bool) -> Tensor:
    if not true_is_padding:
        return mask == 0
    return mask if mask.dtype is torch.bool else mask < 0
