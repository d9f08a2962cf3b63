"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) in PyTorch, with every stage named.

PyTorch, which takes a second to load, is loaded with the first of these names that is asked for (PEP 562), so that
modules without tensors (``model.config``, ...) can be imported alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.attention import MultiHeadAttention, scaled_dot_product_attention
    from model.attention_alone import AttentionAlone
    from model.config import TransformerConfig
    from model.dropout import Dropout, seed_dropout
    from model.feed_forward import FeedForward
    from model.layers import DecoderLayer, EncoderLayer
    from model.masks import MASKS, CombinedMask, MaskInputs, build_masks
    from model.positional_encoding import positions_from_first_token, sinusoidal_encoding
    from model.tracing import Stage, Trace, TracedModule, TraceError, record
    from model.transformer import Decoder, Encoder, InputEmbedding, Transformer

__all__ = [
    "MASKS",
    "AttentionAlone",
    "CombinedMask",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "InputEmbedding",
    "MaskInputs",
    "MultiHeadAttention",
    "Stage",
    "Trace",
    "TraceError",
    "TracedModule",
    "Transformer",
    "TransformerConfig",
    "build_masks",
    "positions_from_first_token",
    "record",
    "scaled_dot_product_attention",
    "seed_dropout",
    "sinusoidal_encoding",
]

_MODULES = {
    "AttentionAlone": "attention_alone",
    "CombinedMask": "masks",
    "Decoder": "transformer",
    "DecoderLayer": "layers",
    "Dropout": "dropout",
    "Encoder": "transformer",
    "EncoderLayer": "layers",
    "FeedForward": "feed_forward",
    "InputEmbedding": "transformer",
    "MASKS": "masks",
    "MaskInputs": "masks",
    "MultiHeadAttention": "attention",
    "Stage": "tracing",
    "Trace": "tracing",
    "TraceError": "tracing",
    "TracedModule": "tracing",
    "Transformer": "transformer",
    "TransformerConfig": "config",
    "build_masks": "masks",
    "positions_from_first_token": "positional_encoding",
    "record": "tracing",
    "scaled_dot_product_attention": "attention",
    "seed_dropout": "dropout",
    "sinusoidal_encoding": "positional_encoding",
}


def __getattr__(name: str) -> object:
    """The module of a public name is imported when the name is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
