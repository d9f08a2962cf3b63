"""The effect of padding on the outputs is computed by a run without it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from visualizer.runs.compute import compute_run
from visualizer.runs.padding import effect_of_padding
from visualizer.settings.settings import Settings

PADDED = Settings(
    architecture="decoder", text="a b c d", weights="random", n_heads=2, d_model=8, d_ff=8, pad=2, pad_side="left"
)
MASKED = replace(PADDED, mask=("causal", "padding"))
PAIR = replace(MASKED, architecture="encoder-decoder", target="x y", pad_side="right")


def effect(settings, item=0):
    return effect_of_padding(compute_run(settings).at(item).alone())


@pytest.mark.parametrize(
    "settings",
    [
        MASKED,
        replace(MASKED, pad_side="right"),
        replace(MASKED, mask=("padding",), architecture="encoder"),
        replace(MASKED, mask=("padding", "custom"), custom="k <= q;*.1:q - k < 2"),
        replace(MASKED, architecture="attention"),
        PAIR,
        replace(MASKED, mask=("causal",), pad_side="right"),
    ],
)
def test_padding_that_is_hidden_changes_nothing(settings):
    found = effect(settings)
    assert not found.changes
    assert found.largest < 1e-5


@pytest.mark.parametrize(
    "settings",
    [
        replace(MASKED, mask=("causal",)),
        replace(MASKED, fault="padding_counted"),
        replace(MASKED, fault="after_softmax"),
        replace(PADDED, mask=(), pad_side="right"),
        replace(PAIR, mask=("causal",)),
    ],
)
def test_padding_that_is_seen_or_counted_changes_the_outputs(settings):
    found = effect(settings)
    assert found.changes
    assert found.largest > 1e-3


def test_it_is_the_difference_from_the_settings_without_padding():
    padded = replace(MASKED, fault="padding_counted")
    alone = compute_run(replace(padded, pad=0)).trace["logits"].value[0]
    shifted = compute_run(padded).trace["logits"].value[0, 2:]
    found = effect(padded)
    assert found.largest == pytest.approx(float((shifted - alone).abs().max()), abs=1e-6)
    assert found.row == 2 + int((shifted - alone).abs().amax(-1).argmax())


def test_each_sequence_of_a_batch_is_compared_with_itself_alone():
    batch = replace(MASKED, text="a b c d\na b", pad=0, pad_side="right")
    assert effect(batch) is None
    assert not effect(batch, 1).changes
    assert effect(replace(batch, mask=()), 1).changes


@pytest.mark.parametrize("settings", [replace(MASKED, pad=0), replace(MASKED, dropout=0.5)])
def test_where_there_is_nothing_to_compare_nothing_is_said(settings):
    assert effect(settings) is None


def test_nothing_of_the_run_is_changed():
    run = compute_run(MASKED)
    before = run.trace["logits"].value.clone()
    effect_of_padding(run)
    assert torch.equal(run.trace["logits"].value, before)
