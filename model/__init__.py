"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) in PyTorch, with every stage named."""

from model.attention import MultiHeadAttention, scaled_dot_product_attention
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
