"""A frozen Settings in, a finished Run out: the only way from what a person chose to numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import torch

from headlight.masks.faults import FAULTS
from model import (
    CombinedMask,
    Trace,
    TracedModule,
    record,
    seed_dropout,
)
from model.learning.training import model_with
from model.sources.weights import head_names
from model.sources.worked_examples import WORKED_EXAMPLES, WorkedExample
from model.texts import texts_of
from model.tracing import Edit, TraceError
from visualizer.components.axis import SequenceName
from visualizer.runs.built_model import config_of, forward, model_of
from visualizer.runs.checkpoints import run_checkpoint
from visualizer.runs.interventions import edits_of, joined, that_fit
from visualizer.runs.masks_in_force import Masks, applied_masks
from visualizer.runs.paths import attention_modules, in_layer
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
    config = config_of(settings, encoded)
    return _record(prepared, encoded, model_of(settings, config), head_names(config, settings.weights))


def _repeat(run: Run) -> None:
    """Run the model again on the same tokens and masks, for whoever records or differentiates it."""
    if run.model.training:
        seed_dropout(run.model, run.settings.seed)
    forward(run.model, run.batches, run.masks, run.positions)


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
            forward(model, batches, masks, positions)
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


def _by_layer(masks: Masks) -> dict[str, CombinedMask]:
    """The masks of each attention, by its whole path."""
    return {
        in_layer(kind, layer): mask for kind, in_layers in masks.items() for layer, mask in enumerate(in_layers)
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
