"""The libraries that a mask can be translated for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from model.mask_tools.translations import hugging_face, pytorch
from model.mask_tools.translations.case import MaskToTranslate
from model.mask_tools.translations.numpy_arrays import numpy_arrays


@dataclass(frozen=True)
class Translation:
    """How one library takes a mask.

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
        "nn.MultiheadAttention",
        "A boolean attn_mask: True = blocked, the opposite of F.scaled_dot_product_attention.",
        pytorch.multihead_attention,
    ),
    "multihead_attention_float": Translation(
        "nn.MultiheadAttention, float",
        "A float attn_mask is added to the scores: 0 = may attend, -inf = blocked.",
        pytorch.multihead_attention_float,
    ),
    "multihead_attention_padding": Translation(
        "nn.MultiheadAttention, key_padding_mask",
        "The padding by key_padding_mask (B, Tk), True = padding; what else is blocked by attn_mask.",
        pytorch.multihead_attention_padding,
    ),
    "transformer_encoder": Translation(
        "nn.TransformerEncoder",
        "Two boolean masks, True = blocked in both: mask for the cells, src_key_padding_mask for the padding.",
        pytorch.transformer_encoder,
    ),
    "transformer_decoder": Translation(
        "nn.TransformerDecoder",
        "Two boolean masks, True = blocked in both: tgt_mask for the cells, tgt_key_padding_mask for the padding.",
        pytorch.transformer_decoder,
    ),
    "scaled_dot_product_attention": Translation(
        "F.scaled_dot_product_attention",
        "A boolean attn_mask: True = takes part, as in Headlight and the opposite of nn.MultiheadAttention.",
        pytorch.scaled_dot_product_attention,
    ),
    "flex_attention": Translation(
        "FlexAttention",
        "A function of batch, head, query and key that says whether the cell takes part.",
        pytorch.flex_attention,
    ),
    "hugging_face_2d": Translation(
        "Hugging Face, 2-D",
        "Padding alone, 1 = token, 0 = padding: a causal model adds its own causal mask; more takes the 4-D mask.",
        hugging_face.two_axes,
    ),
    "hugging_face_4d": Translation(
        "Hugging Face, 4-D",
        "Added to the scores as it is: 0 = may attend, the lowest number = blocked; no causal mask is added.",
        hugging_face.four_axes,
    ),
    "numpy": Translation(
        "NumPy",
        "Added to the scores before the softmax: 0 = may attend, -inf = blocked.",
        numpy_arrays,
    ),
}
"""The libraries, each with how it takes a mask."""
