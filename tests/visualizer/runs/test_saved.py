"""A run that is saved as a recording opens again with the same numbers, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import headlight
from model.dataflow import Operation
from visualizer.runs.compute import compute
from visualizer.runs.prepare import prepare
from visualizer.runs.saved import as_file
from visualizer.runs.watched import WatchedRun
from visualizer.settings.settings import Settings

SMALL = Settings(text="the cat sat\non a mat", d_model=16, d_ff=16, mask=("causal", "padding"))
CASES = {
    "encoder": SMALL,
    "both": replace(SMALL, architecture="encoder-decoder", target="die Katze\nauf der Matte"),
    "fused": replace(SMALL, architecture="decoder", fused_qkv=True, norm="pre", score="score - 0.5 * (q - k)"),
    "broken": replace(SMALL, fault="after_softmax", dropout=0.2),
    "worked": replace(Settings(), weights="two_causal_heads"),
}


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_a_saved_run_comes_back_bit_by_bit(settings):
    run = compute(prepare(settings))
    loaded = headlight.load(as_file(run).getvalue())
    assert list(loaded.stages) == list(run.trace)
    for path, stage in loaded.stages.items():
        assert torch.equal(stage.value, run.trace[path].value), path
    for attention in loaded:
        path = attention.module and f"{attention.module}."
        assert torch.equal(attention.weights, run.trace[f"{path}weights"].value)
        assert attention.allowed is None or torch.equal(attention.allowed, run.trace[f"{path}mask"].value)
    if settings.weights != "two_causal_heads":
        assert loaded.texts.encoder == tuple(tuple(one.tokens) for one in run.batches["source"])


def test_a_saved_run_can_be_followed_back_and_has_its_labels():
    run = compute(prepare(CASES["both"]))
    watched = WatchedRun(headlight.load(as_file(run).getvalue()), "mine")
    for path, stage in watched.trace.stages.items():
        assert isinstance(run.dataflow[path], Operation) == (stage.node is not None), path
        if stage.node is not None:
            assert torch.equal(watched.values(stage.node), stage.value), path
    cross = watched.trace["decoder.layers.0.cross_attention"]
    assert watched.labels(cross, 1) == (run.batches["target"][1].tokens, run.batches["source"][1].tokens)
    assert {paths for paths, _ in watched.findings} == set()
