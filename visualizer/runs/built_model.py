"""The model that some settings ask for, and one pass of it over tokens under masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from model import CombinedMask, TracedModule, TransformerConfig
from model.sources.weights import build_attention_alone, build_model
from visualizer.components.axis import SequenceName
from visualizer.runs.paths import without_layer
from visualizer.runs.score_changes import change_scores
from visualizer.runs.tokens import Encoded, TokenSequence
from visualizer.settings.fields import MAX_TOKENS, USUAL_POSITIONS
from visualizer.settings.settings import Settings


def config_of(settings: Settings, encoded: Encoded) -> TransformerConfig:
    """Return the shape of the model that reads some tokens."""
    return TransformerConfig(
        architecture=settings.architecture,
        vocab_size=len(encoded.vocabulary),
        target_vocab_size=None if encoded.target_vocabulary is None else len(encoded.target_vocabulary),
        d_model=settings.d_model,
        n_heads=settings.n_heads,
        head_dim=settings.head_dim or None,
        d_out=(settings.d_out or None) if settings.architecture == "attention" else None,
        d_ff=settings.d_ff,
        n_layers=settings.n_layers,
        n_decoder_layers=settings.depth if settings.architecture == "encoder-decoder" else None,
        dropout=settings.dropout,
        norm=settings.norm,
        positions=settings.positions,
        activation=settings.activation,
        scale_scores=settings.scale_scores,
        max_len=_n_positions(len(encoded.sources[0]), len(encoded.targets[0]) if encoded.targets else 0),
        final_norm=settings.final_norm,
        qkv_bias=settings.qkv_bias,
        fused_qkv=settings.fused_qkv,
        output_bias=settings.output_bias,
        layer_norm_eps=settings.layer_norm_eps,
        unembedding_bias=settings.unembedding_bias,
    )


def _n_positions(*n_tokens: int) -> int:
    """Return the number of positions that a model has for sequences of so many tokens."""
    return USUAL_POSITIONS if max(n_tokens) <= USUAL_POSITIONS else MAX_TOKENS


def model_of(settings: Settings, config: TransformerConfig) -> TracedModule:
    """The model of some settings; one that a run still holds where nothing but the text or the masks is other."""
    if settings.dropout > 0:
        model = _built(settings, config)
        return model.train()
    key = (config, settings.weights, settings.seed, settings.score)
    found = _MODELS.get(key)
    return _MODELS.setdefault(key, _built(settings, config)) if found is None else found


def _built(settings: Settings, config: TransformerConfig) -> TracedModule:
    build = build_attention_alone if settings.architecture == "attention" else build_model
    model = build(config, settings.weights, settings.seed).requires_grad_(False)
    change_scores(model, settings)
    return model


_MODELS: WeakValueDictionary[tuple[TransformerConfig, str, int, str], TracedModule] = WeakValueDictionary()
"""The models of the runs that are kept. They are never changed: masks, and what breaks a model, are a run's own."""


def forward(
    model: TracedModule,
    batches: Mapping[SequenceName, Sequence[TokenSequence]],
    masks: Mapping[str, CombinedMask],
    positions: Mapping[SequenceName, Tensor],
) -> None:
    """Run a model on the sequences of a batch, under a mask for each attention, by its path."""
    ids = [torch.tensor([sequence.ids for sequence in batch]) for batch in batches.values()]
    counted = {f"{name}_positions": of_sequence for name, of_sequence in positions.items()}
    model(*ids, **_mask_arguments(masks), **counted)


def _mask_arguments(masks: Mapping[str, CombinedMask]) -> dict[str, list[Tensor | None]]:
    """The masks, one per layer, as the arguments of the model."""
    has_target = any(without_layer(path) == "decoder.cross_attention" for path in masks)
    arguments: dict[str, list[Tensor | None]] = {}
    for path, mask in masks.items():
        name = _ARGUMENTS[without_layer(path)] if has_target else "source_mask"
        arguments.setdefault(name, []).append(mask.allowed)
    return arguments


_ARGUMENTS = {
    "encoder.self_attention": "source_mask",
    "decoder.self_attention": "target_mask",
    "decoder.cross_attention": "memory_mask",
}
