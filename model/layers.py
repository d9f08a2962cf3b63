"""Encoder and decoder layers: sub-layer, residual, norm ("Attention Is All You Need", section 3.1).

Post-norm is the paper's ``norm(x + sublayer(x))``; pre-norm is ``x + sublayer(norm(x))`` (Xiong et al. 2020).
"""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.config import TransformerConfig
from model.dropout import Dropout
from model.feed_forward import FeedForward
from model.tracing import TracedModule


class EncoderLayer(TracedModule):
    """Self-attention, then feed-forward, each with its residual connection and norm.

    It is also the layer of a decoder without cross-attention, whose self-attention is given a causal mask.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.self_attention = attention_of(config)
        self.norm1 = _layer_norm(config)
        self.feed_forward = _feed_forward(config)
        self.norm2 = _layer_norm(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model); ``mask`` as in ``MultiHeadAttention``."""
        tap, drop = self.tap, partial(_dropped, self)
        self_attention, feed_forward = self.self_attention, self.feed_forward
        if self.pre_norm:
            y = tap("norm1", self.norm1(x), "B T D")
            x = tap("residual1", x + drop(self_attention(y, y, y, mask), "dropped_output1"), "B T D")
            y = tap("norm2", self.norm2(x), "B T D")
            return tap("residual2", x + drop(feed_forward(y), "dropped_output2"), "B T D")
        x = tap("residual1", x + drop(self_attention(x, x, x, mask), "dropped_output1"), "B T D")
        x = tap("norm1", self.norm1(x), "B T D")
        x = tap("residual2", x + drop(feed_forward(x), "dropped_output2"), "B T D")
        return tap("norm2", self.norm2(x), "B T D")


class DecoderLayer(TracedModule):
    """Masked self-attention, cross-attention to the encoder's output, then feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.self_attention = attention_of(config)
        self.norm1 = _layer_norm(config)
        self.cross_attention = attention_of(config)
        self.norm2 = _layer_norm(config)
        self.feed_forward = _feed_forward(config)
        self.norm3 = _layer_norm(config)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, memory: Tensor, mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Decode one layer.

        Args:
            x: (B, T, d_model), the target so far.
            memory: (B, S, d_model), the encoder's output.
            mask: for self-attention, broadcastable to (B, H, T, T), True = may attend.
            memory_mask: for cross-attention, broadcastable to (B, H, T, S), True = may attend.

        Returns:
            (B, T, d_model).
        """
        tap, drop = self.tap, partial(_dropped, self)
        self_attention, cross_attention = self.self_attention, self.cross_attention
        feed_forward = self.feed_forward
        if self.pre_norm:
            y = tap("norm1", self.norm1(x), "B T D")
            x = tap("residual1", x + drop(self_attention(y, y, y, mask), "dropped_output1"), "B T D")
            y = tap("norm2", self.norm2(x), "B T D")
            x = tap(
                "residual2",
                x + drop(cross_attention(y, memory, memory, memory_mask), "dropped_output2"),
                "B T D",
            )
            y = tap("norm3", self.norm3(x), "B T D")
            return tap("residual3", x + drop(feed_forward(y), "dropped_output3"), "B T D")
        x = tap("residual1", x + drop(self_attention(x, x, x, mask), "dropped_output1"), "B T D")
        x = tap("norm1", self.norm1(x), "B T D")
        x = tap(
            "residual2",
            x + drop(cross_attention(x, memory, memory, memory_mask), "dropped_output2"),
            "B T D",
        )
        x = tap("norm2", self.norm2(x), "B T D")
        x = tap("residual3", x + drop(feed_forward(x), "dropped_output3"), "B T D")
        return tap("norm3", self.norm3(x), "B T D")


def _dropped(layer: EncoderLayer | DecoderLayer, output: Tensor, name: str) -> Tensor:
    """Apply dropout to a sub-layer's output before it is added (section 5.4): a stage, where it acts."""
    if not layer.dropout.active:
        return output
    return layer.tap(name, layer.dropout(output), "B T D")


def attention_of(config: TransformerConfig) -> MultiHeadAttention:
    """An attention as configured."""
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        head_dim=config.head_dim,
        d_out=config.d_out,
        bias=config.qkv_bias,
        output_bias=config.output_bias,
        fused_qkv=config.fused_qkv,
        scale_scores=config.scale_scores,
        dropout=config.dropout,
    )


def _feed_forward(config: TransformerConfig) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, activation=config.activation, dropout=config.dropout)


def _layer_norm(config: TransformerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
