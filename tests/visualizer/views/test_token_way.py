"""One token's way: the picture of a run taken apart, its tick, where its parts lead, and models without a way."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.controls import chosen
from tests.test_app import assert_healthy, components, open_app
from tests.visualizer.sample_runs import VARIANTS, run_of
from tests.visualizer.told import tell
from visualizer.components.token_way.element import token_way
from visualizer.pictures.token_way import MOST_NUMBERS, stack_of, take_apart, window_of
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

TRAINED = {
    task: Settings(weights="trained", task=task, text="abcde")
    for task in ("reverse", "repeat_block", "mark_repeats")
}
ALONE = {name for name, settings in VARIANTS.items() if settings.architecture == "attention"}


def taken(run, stage="decoder.", query=3):
    stack = stack_of(run, stage)
    return take_apart(run, stack, window_of(run, stack, query))


@pytest.mark.parametrize("variant", [*sorted(VARIANTS.keys() - ALONE), *TRAINED])
def test_the_parts_sum_to_the_stream_and_the_way_ends_in_the_prediction(variant):
    run = (run_of(variant) if variant in VARIANTS else compute_run(TRAINED[variant])).alone()
    found = taken(run)
    assert found.difference < 1e-5
    way, predicted = found.way, run.trace["probabilities"].value[0]
    best = predicted.topk(way.likely.shape[-1], dim=-1)
    torch.testing.assert_close(torch.from_numpy(way.probabilities[-1]), best.values.float())
    chosen = torch.from_numpy(way.likely[-1]).long()
    torch.testing.assert_close(predicted.gather(-1, chosen), best.values)
    bias = dict(run.model.named_parameters()).get("unembedding.bias", torch.zeros(predicted.shape[-1]))
    logits = run.trace["logits"].value[0].gather(-1, chosen[:, :1])[:, 0] - bias[chosen[:, 0]]
    torch.testing.assert_close(torch.from_numpy(way.logits.sum(0)), logits.detach().float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("variant", ["encoder-decoder", "pre-norm encoder-decoder"])
def test_the_encoder_beside_a_decoder_predicts_nothing(variant):
    found = taken(run_of(variant), "encoder.")
    assert found.difference < 1e-5
    assert found.way.likely is None
    assert found.way.end[0] == "to the decoder"


def test_the_shares_of_all_parts_of_a_stop_before_any_norm_sum_to_one():
    way = taken(run_of("encoder").alone()).way
    torch.testing.assert_close(torch.from_numpy(way.shares[:2].sum(0)), torch.ones(way.shares.shape[1]))


def test_of_a_long_text_through_a_large_model_the_tokens_around_the_chosen_one_travel():
    run = compute_run(Settings(text="a b " * 150, n_layers=4, n_heads=8, d_model=64, weights="random"))
    window = window_of(run, "encoder", 100)
    every = len(run.tokens["source"].labels)
    assert 100 in range(window.start, window.stop)
    assert window.stop - window.start < every
    found = take_apart(run, "encoder", window)
    assert len(found.way.parts) * (window.stop - window.start) * 64 <= MOST_NUMBERS
    assert len(token_way(found.way, selected=100, seq=0, key="way").data) < 5_000_000


def test_the_view_says_that_the_parts_sum():
    app = open_app(view="way", query="3")
    assert_healthy(app)
    assert any(
        ":green[" in caption.value and "sum to the residual stream at each" in caption.value
        for caption in app.caption
    )
    assert "headlight_token_way" in components(app)


def test_another_token_and_the_stage_of_a_part_are_chosen_in_the_picture():
    app = open_app(view="way", query="3")
    tell(app, "token_way_encoder", "shown", query=4)
    assert dict(app.query_params) == {"view": "way", "query": "4"}
    path = "encoder.layers.1.self_attention.weights"
    tell(app, "token_way_encoder", "open", path=path, query=4, head=1)
    assert chosen(app, "view") == "step"
    assert dict(app.query_params) == {"query": "4", "head": "1", "layer": "1"}
    assert chosen(app, "stage") == "encoder.self_attention.weights"


def test_padding_and_batches_are_followed_in_the_sequence_that_is_chosen():
    run = compute_run(replace(VARIANTS["decoder"], text="the cat sat\na dog"))
    first, second = (taken(run.at(item).alone()).way for item in (0, 1))
    assert first.tokens.labels != second.tokens.labels
    assert (first.norms != second.norms).any()
