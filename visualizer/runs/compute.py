"""A frozen Settings in, a finished Run out: the only way from what a person chose to numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from headlight.masks.faults import FAULTS
from model import (
    CombinedMask,
    Trace,
    TracedModule,
    TransformerConfig,
    record,
    seed_dropout,
)
from model.learning.training import model_with
from model.sources.weights import build_attention_alone, build_model, head_names
from model.sources.worked_examples import WORKED_EXAMPLES, WorkedExample
from model.texts import texts_of
from model.tracing import Edit, TraceError
from visualizer.components.axis import SequenceName
from visualizer.runs.checkpoints import run_checkpoint
from visualizer.runs.interventions import edits_of, joined, that_fit
from visualizer.runs.limits import n_positions
from visualizer.runs.masks_in_force import Masks, applied_masks
from visualizer.runs.paths import attention_modules, in_layer, without_layer
from visualizer.runs.prepare import Prepared, prepare
from visualizer.runs.run import Run, positions_in
from visualizer.runs.score_changes import change_scores, changed_attentions
from visualizer.runs.tokens import Encoded, TokenSequence
from visualizer.runs.trained import checkpoint_of
from visualizer.settings.fields import PRETRAINED, TRAINED
from visualizer.settings.interventions import read_interventions, write_interventions
from visualizer.settings.settings import Settings

say = texts_of(__name__)


def compute_run(settings: Settings) -> Run:
    """Run the model, or the worked example, that the settings name.

    Raises:
        ValueError: as ``prepare``.
    """
    return compute(prepare(settings))


def compute(prepared: Prepared) -> Run:
    """Run what was prepared."""
    settings, encoded = prepared.settings, prepared.encoded
    if settings.weights == PRETRAINED:
        return run_checkpoint(settings, prepared.n_bytes, prepared.complaints)
    if encoded is None:
        return _run_example(settings, WORKED_EXAMPLES[settings.weights]())
    if settings.weights == TRAINED:
        checkpoint = checkpoint_of(settings)
        trained = model_with(checkpoint.recipe, checkpoint.weights).requires_grad_(False)
        change_scores(trained, settings)
        return _record(prepared, encoded, trained, head_names=())
    config = _config(settings, encoded)
    return _record(prepared, encoded, _model(settings, config), head_names(config, settings.weights))


def _model(settings: Settings, config: TransformerConfig) -> TracedModule:
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


def _repeat(run: Run) -> None:
    """Run the model again on the same tokens and masks, for whoever records or differentiates it."""
    if run.model.training:
        seed_dropout(run.model, run.settings.seed)
    _forward(run.model, run.batches, run.masks, run.positions)


def _record(prepared: Prepared, encoded: Encoded, model: TracedModule, head_names: tuple[str, ...]) -> Run:
    """Run a model under the masks, and with the edits, that the settings ask for."""
    settings, batches = prepared.settings, prepared.batches
    masks = _by_layer(applied_masks(settings, prepared.promised))
    positions = positions_in(settings, batches)
    broken, wanted = edits_of_fault(settings, masks), read_interventions(settings.edits)
    complaints: tuple[str, ...] = ()
    labels = encoded.output_vocabulary.labels
    other = cache(lambda: _trace_of_other_text(settings, labels))

    def recorded(edits: Mapping[str, Edit]) -> Trace:
        if model.training:
            seed_dropout(model, settings.seed)
        with torch.inference_mode(), record(model, edits) as trace:
            _forward(model, batches, masks, positions)
        return trace

    try:
        edits = joined(broken, edits_of(wanted, other))
        trace = recorded(edits)
    except (TraceError, ValueError):  # an edit of what is not in this model, or a pass that fails without any too
        wanted, complaints = that_fit(wanted, recorded(broken), other)
        edits = joined(broken, edits_of(wanted, other))
        trace = recorded(edits)
    return Run(
        replace(settings, edits=write_interventions(wanted)),
        model,
        trace,
        masks,
        _by_layer(prepared.promised),
        batches,
        labels,
        head_names,
        _repeat,
        complaints=(*prepared.complaints, *complaints),
        n_bytes=prepared.n_bytes,
        source_vocabulary=() if encoded.target_vocabulary is None else encoded.vocabulary.labels,
        edits=edits,
    )


def _trace_of_other_text(settings: Settings, vocabulary: Sequence[str]) -> Trace:
    """Return the trace of the same model, without an edit, on the other text.

    Raises:
        ValueError: there is none, it cannot be read, or it has other words and with them another model.
    """
    if not settings.other_text.strip():
        raise ValueError(say("no_other_text"))
    run = compute_run(replace(settings, text=settings.other_text, edits="", other_text=""))
    if run.vocabulary != vocabulary:
        raise ValueError(say("other_vocabulary"))
    return run.trace


def _config(settings: Settings, encoded: Encoded) -> TransformerConfig:
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
        max_len=n_positions(len(encoded.sources[0]), len(encoded.targets[0]) if encoded.targets else 0),
        final_norm=settings.final_norm,
        qkv_bias=settings.qkv_bias,
        fused_qkv=settings.fused_qkv,
        output_bias=settings.output_bias,
        layer_norm_eps=settings.layer_norm_eps,
        unembedding_bias=settings.unembedding_bias,
    )


def _by_layer(masks: Masks) -> dict[str, CombinedMask]:
    """The masks of each attention, by its whole path."""
    return {
        in_layer(kind, layer): mask for kind, in_layers in masks.items() for layer, mask in enumerate(in_layers)
    }


def _forward(
    model: TracedModule,
    batches: Mapping[SequenceName, Sequence[TokenSequence]],
    masks: Mapping[str, CombinedMask],
    positions: Mapping[SequenceName, Tensor],
) -> None:
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


def edits_of_fault(settings: Settings, masks: Mapping[str, CombinedMask]) -> dict[str, Edit]:
    """Return the edits that break the model where that was asked for."""
    if settings.fault not in FAULTS:
        return {}
    found = FAULTS[settings.fault].edits([path for path, mask in masks.items() if mask.names])
    for path in changed_attentions(settings):
        if f"{path}.scaled_scores" in found:
            found[f"{path}.modified_scores"] = found.pop(f"{path}.scaled_scores")
    return found


def _run_example(settings: Settings, example: WorkedExample) -> Run:
    """Run a worked example under its own mask, or under none where none is chosen."""
    own_mask = example.mask if settings.mask else None
    trace = example.run(mask=own_mask)
    parts = {} if own_mask is None else {example.mask_name: own_mask}
    masks = {module: CombinedMask(parts) for module in attention_modules(trace)}
    published = {} if example.mask is not None and own_mask is None else example.expected
    batches = {name: (_numbered(name, n_tokens),) for name, n_tokens in example.sequences.items()}
    model = example.module.requires_grad_(False)
    return Run(
        *(replace(settings, edits=""), model, trace, masks, masks, batches, (), ()),
        forward=lambda run: example.forward(own_mask),
        complaints=(say("of_example"),) if settings.edits else (),
        example=example,
        published=published,
    )


def _numbered(name: SequenceName, n_tokens: int) -> TokenSequence:
    """The unnamed vectors of a worked example: x0, x1, ... and, for a target, y0, y1, ..."""
    labels = tuple(f"{_LETTERS[name]}{i}" for i in range(n_tokens))
    return TokenSequence(labels, tuple(range(n_tokens)), (False,) * n_tokens, labels)


_LETTERS: dict[SequenceName, str] = {"source": "x", "target": "y"}
