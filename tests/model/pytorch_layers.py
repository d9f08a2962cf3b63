"""PyTorch's own layers, filled with the weights of ours. In their masks True means blocked."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model import DecoderLayer, EncoderLayer, MultiHeadAttention, TransformerConfig
from model.fused_projection import projections_of


def pytorch_encoder_layer(layer: EncoderLayer, config: TransformerConfig) -> nn.TransformerEncoderLayer:
    """``nn.TransformerEncoderLayer`` that computes the same."""
    reference = nn.TransformerEncoderLayer(**_sizes(config))
    _copy_attention(layer.self_attention, reference.self_attn)
    return _copy_rest(layer, reference)


def pytorch_decoder_layer(layer: DecoderLayer, config: TransformerConfig) -> nn.TransformerDecoderLayer:
    """``nn.TransformerDecoderLayer`` that computes the same."""
    reference = nn.TransformerDecoderLayer(**_sizes(config))
    _copy_attention(layer.self_attention, reference.self_attn)
    _copy_attention(layer.cross_attention, reference.multihead_attn)
    reference.norm3.load_state_dict(layer.norm3.state_dict())
    return _copy_rest(layer, reference)


def _sizes(config: TransformerConfig) -> dict[str, object]:
    return {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "layer_norm_eps": config.layer_norm_eps,
        "norm_first": config.norm == "pre",
        "batch_first": True,
    }


def _copy_attention(attention: MultiHeadAttention, reference: nn.MultiheadAttention) -> None:
    """PyTorch has a bias on both projections or on none: where ours has none, its is zero."""
    projections = projections_of(attention)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
        reference.in_proj_bias.copy_(
            torch.cat([_bias(projection.bias, projection.weight) for projection in projections])
        )
        reference.out_proj.weight.copy_(attention.w_o.weight)
        reference.out_proj.bias.copy_(_bias(attention.w_o.bias, attention.w_o.weight))


def _bias(bias: Tensor | None, weight: Tensor) -> Tensor:
    return torch.zeros(len(weight)) if bias is None else bias


def _copy_rest(layer, reference):
    pairs = [
        (layer.feed_forward.w_1, reference.linear1),
        (layer.feed_forward.w_2, reference.linear2),
        (layer.norm1, reference.norm1),
        (layer.norm2, reference.norm2),
    ]
    for ours, theirs in pairs:
        theirs.load_state_dict(ours.state_dict())
    return reference.eval()
