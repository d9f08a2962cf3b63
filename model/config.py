"""The architecture of a Transformer as one frozen, validated value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

TransformerArchitecture = Literal["encoder", "decoder", "encoder-decoder"]
Architecture = Literal[TransformerArchitecture, "attention"]
Norm = Literal["post", "pre"]
Positions = Literal["sinusoidal", "learned", "none"]
Activation = Literal["relu", "gelu"]


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that fixes the shape of a Transformer ("Attention Is All You Need", section 3).

    Attributes:
        architecture: ``encoder`` (BERT-like), ``decoder`` (GPT-like, no cross-attention), ``encoder-decoder``, or
            ``attention``: one self-attention alone, to which nothing said of layers applies.
        vocab_size: number of tokens in the vocabulary, shared by source and target (section 5.1).
        target_vocab_size: number of tokens in that of the target, where it has one of its own beside that of the
            source; no other architecture has a target. Embeddings are then not tied across the two sides.
        d_model: width of the residual stream.
        n_heads: attention heads per layer; must divide ``d_model`` unless ``head_dim`` is given.
        head_dim: width of one head (d_k = d_v in section 3.2.2); d_model / n_heads, as in the paper, unless given,
            as in T5 (Raffel et al. 2020).
        d_out: width of what an attention alone puts out; ``d_model`` unless given. In a Transformer the residual
            connection adds it to the stream, which fixes it to ``d_model`` (section 3.1).
        d_ff: width of the hidden feed-forward layer.
        n_layers: layers of the encoder and of the decoder.
        n_decoder_layers: layers of the decoder beside an encoder, where they are not as many, as
            ``num_decoder_layers`` of ``nn.Transformer``; no other architecture has them.
        dropout: probability of a zero, at the paper's places (section 5.4) and on the attention weights.
        norm: ``post`` normalises after the residual addition (the paper), ``pre`` before each sub-layer.
        positions: how positions enter.
        activation: of the feed-forward layer.
        scale_scores: divide the scores by sqrt(head_dim) (section 3.2.1).
        max_len: longest sequence that learned positions are made for.
        final_norm: normalise once more after the last post-norm layer, as ``nn.Transformer`` does. A pre-norm stack
            always ends so (Xiong et al. 2020, section 3.1).
        qkv_bias: whether the projections to queries, keys and values add a bias: the paper's have none, those of
            ``nn.MultiheadAttention``, BERT and GPT-2 do.
        fused_qkv: one matrix instead of three makes queries, keys and values, as ``in_proj_weight`` of
            ``nn.MultiheadAttention`` does.
        output_bias: whether the output projection of the attention does.
        layer_norm_eps: added to the variance in layer normalisation (Ba et al. 2016); above 0.
        unembedding_bias: whether the final linear layer adds a bias, as in BERT (Devlin et al. 2019) and in
            ``nn.Linear`` unless told otherwise; the paper's has none.
        tied_embeddings: one matrix serves both embeddings and the final linear layer (section 3.4).

    Raises:
        ValueError: a value is out of its range; the message names it and what would do.
    """

    architecture: Architecture = "encoder"
    vocab_size: int = 256
    target_vocab_size: int | None = None
    d_model: int = 512
    n_heads: int = 8
    head_dim: int | None = None
    d_out: int | None = None
    d_ff: int = 2048
    n_layers: int = 6
    n_decoder_layers: int | None = None
    dropout: float = 0.0
    norm: Norm = "post"
    positions: Positions = "sinusoidal"
    activation: Activation = "relu"
    scale_scores: bool = True
    max_len: int = 512
    final_norm: bool = False
    qkv_bias: bool = True
    fused_qkv: bool = False
    output_bias: bool = True
    layer_norm_eps: float = 1e-5
    unembedding_bias: bool = False
    tied_embeddings: bool = True

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} ({getattr(self, name)!r}) must be one of: {', '.join(choices)}")
        for name in ("vocab_size", "d_model", "n_heads", "d_ff", "n_layers", "max_len"):
            check_at_least(1, name, getattr(self, name))
        for name, instead in (("n_decoder_layers", "n_layers"), ("target_vocab_size", "vocab_size")):
            value = getattr(self, name)
            if value is not None:
                check_at_least(1, name, value)
                if self.architecture != "encoder-decoder":
                    raise ValueError(
                        f"{name} ({value}) is for encoder-decoder alone: {self.architecture} has {instead}"
                    )
        if self.d_out is not None:
            check_at_least(1, "d_out", self.d_out)
            if self.architecture != "attention" and self.d_out != self.d_model:
                raise ValueError(
                    f"d_out ({self.d_out}) must be d_model ({self.d_model}): the residual adds the two"
                )
        check_dropout(self.dropout)
        if not 0.0 < self.layer_norm_eps < math.inf:
            raise ValueError(f"layer_norm_eps ({self.layer_norm_eps}) must be a number above 0")
        _ = self.width_of_head

    @property
    def output_vocab_size(self) -> int:
        """Number of tokens that the decoder reads and the final linear layer scores."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size

    @property
    def decoder_depth(self) -> int:
        """Layers of the decoder, whether given apart or not."""
        return self.n_layers if self.n_decoder_layers is None else self.n_decoder_layers

    @property
    def width_of_head(self) -> int:
        """Width of one head, whether given or d_model / n_heads."""
        return width_of_head(self.d_model, self.n_heads, self.head_dim)


_CHOICES: dict[str, tuple[str, ...]] = {
    "architecture": get_args(Architecture),
    "norm": get_args(Norm),
    "positions": get_args(Positions),
    "activation": get_args(Activation),
}


def check_at_least(least: int, name: str, value: int) -> None:
    """Raise ValueError, naming the value, where it is below ``least``."""
    if value < least:
        raise ValueError(f"{name} ({value}) must be at least {least}")


def check_divisible(d_model: int, n_heads: int) -> None:
    """Raise ValueError, naming the nearest widths that would do, unless ``n_heads`` divides ``d_model``."""
    if d_model % n_heads:
        below = d_model // n_heads * n_heads
        widths = [width for width in (below, below + n_heads) if width > 0]
        raise ValueError(
            f"d_model ({d_model}) must be divisible by n_heads ({n_heads}): try {' or '.join(map(str, widths))}"
        )


def width_of_head(d_model: int, n_heads: int, head_dim: int | None) -> int:
    """``head_dim``, or d_model / n_heads where it is not given.

    Raises:
        ValueError: a number is below 1, or ``n_heads`` does not divide ``d_model``.
    """
    check_at_least(1, "n_heads", n_heads)
    if head_dim is None:
        check_divisible(d_model, n_heads)
        return d_model // n_heads
    check_at_least(1, "head_dim", head_dim)
    return head_dim


def attention_widths(
    d_model: int, n_heads: int, head_dim: int | None, d_out: int | None, is_projected: bool
) -> tuple[int, int, int]:
    """Width of one head, of all heads side by side and of the output of an attention, whether given or not.

    Raises:
        ValueError: as ``width_of_head``, or only an output projection could give the output that width.
    """
    head_dim = width_of_head(d_model, n_heads, head_dim)
    d_inner = n_heads * head_dim
    if is_projected:
        return head_dim, d_inner, d_model if d_out is None else d_out
    if d_out not in (None, d_inner):
        raise ValueError(f"d_out ({d_out}) must be n_heads * head_dim ({d_inner}) without an output projection")
    return head_dim, d_inner, d_inner


def check_dropout(dropout: float) -> None:
    """Raise ValueError unless ``dropout`` is a probability below one."""
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout ({dropout}) must be at least 0 and below 1")
