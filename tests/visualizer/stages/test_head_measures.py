"""The measures of the heads of a run: of heads built to do one thing, and of a model that learned a task."""

import math
from dataclasses import replace

import pytest

from model.analysis.metrics import METRICS
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import attention_modules
from visualizer.settings.fields import TRAINED
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings
from visualizer.stages.head_measures import applying, measure_heads

BUILT = Settings(text="the dog saw the cat and the cat saw the dog", mask=(), n_heads=8, d_model=128, n_layers=1)


def test_hand_built_heads_measure_as_they_were_built():
    run = compute_run(BUILT)
    found = {run.names_of(8)[one.head]: one.values for one in measure_heads(run, attention_modules(run.trace))}
    assert found["previous token"]["previous_token"] > 0.99
    assert found["same token"]["same_token"] > 0.99
    assert found["first token"]["first_token"] > 0.99
    assert found["uniform"]["entropy"] == pytest.approx(math.log2(11), abs=1e-4)
    assert all(math.isnan(values["expected_token"]) for values in found.values())


def test_no_token_is_the_same_in_two_vocabularies():
    both = replace(BUILT, architecture="encoder-decoder", target=BUILT.text)
    shared, apart = (compute_run(replace(both, shared_vocabulary=shared)) for shared in (True, False))
    same = [
        [one.values["same_token"] for one in measure_heads(run, ["decoder.layers.0.cross_attention"])]
        for run in (shared, apart)
    ]
    assert max(same[0]) > 0.9
    assert all(math.isnan(value) for value in same[1])


def test_the_heads_that_reverse_look_at_the_expected_letter():
    run = compute_run(fitted(Settings(weights=TRAINED, task="reverse", text="headlight")))
    modules = {path.rpartition(".")[2]: path for path in attention_modules(run.trace) if path.startswith("decoder")}
    crossing = measure_heads(run, [modules["cross_attention"]])
    assert max(one.values["expected_token"] for one in crossing) > 0.8
    own = measure_heads(run, [modules["self_attention"]])
    assert all(math.isnan(one.values["expected_token"]) for one in own)


def test_heads_come_layer_by_layer():
    run = compute_run(replace(BUILT, n_layers=2, n_heads=2, d_model=32))
    found = measure_heads(run, attention_modules(run.trace))
    assert [(one.layer, one.head) for one in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_measures_that_apply_to_no_head_are_left_out_and_that_of_the_answer_is_first():
    learned = compute_run(fitted(Settings(weights=TRAINED, task="reverse", text="headlight")))
    modules = {path.rpartition(".")[2]: path for path in attention_modules(learned.trace) if "decoder" in path}
    crossing = applying(measure_heads(learned, [modules["cross_attention"]]))
    assert crossing[0] == "expected_token"
    assert "expected_token" not in applying(measure_heads(learned, [modules["self_attention"]]))
    built = compute_run(BUILT)
    assert applying(measure_heads(built, attention_modules(built.trace))) == tuple(
        name for name in METRICS if name != "expected_token"
    )
