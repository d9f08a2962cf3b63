"""The sources of the weights of a Transformer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.attention_alone import AttentionAlone
from model.config import TransformerConfig
from model.feed_forward import FeedForward
from model.fused_projection import Projection, projections_of
from model.positional_encoding import LearnedPositions
from model.randomness import named_generator
from model.sources.hand_built import fill_hand_built, hand_built_names
from model.transformer import InputEmbedding, Transformer
from model.unfilled import unfilled

_VOCABULARY_ROWS = 16
"""PyTorch makes normal numbers sixteen at a time, the same ones however many follow."""

_BIAS_DEVIATION = 0.02


@dataclass(frozen=True)
class WeightSource:
    """One source of weights.

    Attributes:
        fill: gives every parameter of a model its value, from a seed.
        head_names: what each head of a layer does, in order; none where nothing is known of them.
        can_be_tied: whether the final linear layer may share the matrix of the embedding.
    """

    fill: Callable[[Transformer | AttentionAlone, int], None]
    head_names: Callable[[TransformerConfig], tuple[str, ...]] = lambda config: ()
    can_be_tied: bool = True


def build_model(config: TransformerConfig, source: str, seed: int) -> Transformer:
    """A model with weights, in evaluation mode.

    Its own ``config`` says whether the embeddings ended up tied.

    Raises:
        ValueError: there is no such source, or it cannot fill such a model.
    """
    weights = _source(source)
    tied = config.tied_embeddings and weights.can_be_tied
    model = unfilled(Transformer, replace(config, tied_embeddings=tied))
    weights.fill(model, seed)
    return model


def build_attention_alone(config: TransformerConfig, source: str, seed: int) -> AttentionAlone:
    """An attention alone with weights, in evaluation mode.

    Raises:
        ValueError: there is no such source, or it cannot fill such a model.
    """
    model = unfilled(AttentionAlone, config)
    _source(source).fill(model, seed)
    return model


def head_names(config: TransformerConfig, source: str) -> tuple[str, ...]:
    """Name what each head of a layer does, in the order of the heads; empty where the source does not know.

    Raises:
        ValueError: there is no such source.
    """
    return _source(source).head_names(config)


def fill_random(model: Transformer | AttentionAlone, seed: int) -> None:
    """Fill every parameter at random, as before training.

    Each is drawn by itself, so that another size of one part leaves all others as they are, and a longer vocabulary
    its first words. A fused projection has the rows of the three that it stands for.

    - Linear layers: Xavier-uniform, as in ``nn.Transformer``; biases small, so that it is seen where they enter.
    - Embeddings: deviation d_model^-0.5, so that times sqrt(d_model) they have unit variance.
    - Learned positions: as strong as the sinusoids. Layer norm: scale one, shift zero.
    """
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
            elif isinstance(module, InputEmbedding):
                is_of_target = name == "decoder.inputs" and model.config.target_vocab_size is not None
                _fill_inputs(module, name, "target embedding" if is_of_target else "embedding", seed)
            elif isinstance(module, MultiHeadAttention):
                for part, projection in zip(("w_q", "w_k", "w_v"), projections_of(module), strict=True):
                    _fill_linear(projection, f"{name}.{part}", seed)
                if module.w_o is not None:
                    _fill_linear(module.w_o, f"{name}.w_o", seed)
            elif isinstance(module, FeedForward):
                _fill_linear(module.w_1, f"{name}.w_1", seed)
                _fill_linear(module.w_2, f"{name}.w_2", seed)
        if isinstance(model, AttentionAlone):
            return
        if not model.config.tied_embeddings:
            _fill_vocabulary(model.unembedding.weight, "unembedding", seed, model.config.d_model**-0.5)
        if model.unembedding.bias is not None:
            _fill_vocabulary(model.unembedding.bias[:, None], "unembedding bias", seed, _BIAS_DEVIATION)


def _fill_inputs(inputs: InputEmbedding, name: str, table: str, seed: int) -> None:
    _fill_vocabulary(inputs.tokens.weight, table, seed, inputs.d_model**-0.5)
    if isinstance(inputs.positions, LearnedPositions):
        inputs.positions.table.normal_(0.0, 0.5**0.5, generator=named_generator(seed, f"{name}.positions"))


def _fill_vocabulary(table: Tensor, name: str, seed: int, deviation: float) -> None:
    """Fill (V, width), drawing a multiple of ``_VOCABULARY_ROWS`` rows whatever V is."""
    vocab_size, width = table.shape
    n_rows = -(-vocab_size // _VOCABULARY_ROWS) * _VOCABULARY_ROWS
    rows = torch.empty(n_rows, width).normal_(0.0, deviation, generator=named_generator(seed, name))
    table.copy_(rows[:vocab_size])


def _fill_linear(layer: nn.Linear | Projection, name: str, seed: int) -> None:
    nn.init.xavier_uniform_(layer.weight, generator=named_generator(seed, f"{name}.weight"))
    if layer.bias is not None:
        layer.bias.normal_(0.0, _BIAS_DEVIATION, generator=named_generator(seed, f"{name}.bias"))


def _source(name: str) -> WeightSource:
    try:
        return WEIGHT_SOURCES[name]
    except KeyError:
        raise ValueError(f"weights ({name!r}) must be one of: {', '.join(WEIGHT_SOURCES)}") from None


WEIGHT_SOURCES: dict[str, WeightSource] = {
    "random": WeightSource(fill_random),
    "hand_built": WeightSource(fill_hand_built, hand_built_names, can_be_tied=False),
}
"""Every source by its name."""
