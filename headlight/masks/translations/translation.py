"""The libraries that a mask can be translated for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headlight.masks.translations import hugging_face, pytorch
from headlight.masks.translations.mask_to_translate import MaskToTranslate
from headlight.masks.translations.numpy_arrays import numpy_arrays
from model.texts import texts_of

say = texts_of(__name__)


@dataclass(frozen=True)
class Translation:
    """The form in which one library takes a mask.

    Attributes:
        title: the library and, where it has several, the kind of mask.
        note: one sentence on the convention.
        write: makes a whole piece of Python; its last line is the call, as a comment. Where the convention cannot
            say the mask, comments say why. Raises ValueError where the library wants as many queries as keys.
    """

    title: str
    note: str
    write: Callable[[MaskToTranslate], str]


TRANSLATIONS: dict[str, Translation] = {
    "multihead_attention": Translation(
        "nn.MultiheadAttention", say("multihead_attention"), pytorch.multihead_attention
    ),
    "multihead_attention_float": Translation(
        "nn.MultiheadAttention, float", say("multihead_attention_float"), pytorch.multihead_attention_float
    ),
    "multihead_attention_padding": Translation(
        "nn.MultiheadAttention, key_padding_mask",
        say("multihead_attention_padding"),
        pytorch.multihead_attention_padding,
    ),
    "transformer_encoder": Translation(
        "nn.TransformerEncoder", say("transformer_encoder"), pytorch.transformer_encoder
    ),
    "transformer_decoder": Translation(
        "nn.TransformerDecoder", say("transformer_decoder"), pytorch.transformer_decoder
    ),
    "scaled_dot_product_attention": Translation(
        "F.scaled_dot_product_attention", say("scaled_dot_product_attention"), pytorch.scaled_dot_product_attention
    ),
    "flex_attention": Translation("FlexAttention", say("flex_attention"), pytorch.flex_attention),
    "hugging_face_2d": Translation("Hugging Face, 2-D", say("hugging_face_2d"), hugging_face.two_axes),
    "hugging_face_4d": Translation("Hugging Face, 4-D", say("hugging_face_4d"), hugging_face.four_axes),
    "numpy": Translation("NumPy", say("numpy"), numpy_arrays),
}
"""The libraries, each with how it takes a mask."""
