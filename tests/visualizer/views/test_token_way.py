"""One token's way: the picture of a run taken apart, its tick, where its parts lead, and models without a way."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from model import record
from tests.controls import chosen
from tests.test_app import assert_healthy, components, open_app
from tests.visualizer.sample_runs import VARIANTS, run_of
from tests.visualizer.told import tell
from visualizer.components.token_way.element import token_way
from visualizer.pictures.token_way import MOST_NUMBERS, followed_in, stack_of, stacks_of, take_apart, window_of
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

TRAINED = {
    task: Settings(weights="trained", task=task, text="abcde")
    for task in ("reverse", "repeat_block", "mark_repeats")
}
ALONE = {name for name, settings in VARIANTS.items() if settings.architecture == "attention"}


def taken(run, stage="decoder.", query=3):
    followed = followed_in(run, stack_of(run, stage))
    return take_apart(followed, window_of(followed, query))


@pytest.mark.parametrize("variant", [*sorted(VARIANTS.keys() - ALONE)])
def test_a_stack_is_followed_from_its_input_through_every_sum_and_norm(variant):
    run = run_of(variant)
    for stack in stacks_of(run):
        part = stack.partition(".")[0]
        normed = "norm" if run.settings.norm == "post" else "never"
        names = ("embedded", "residual", normed)
        expected = [path for path in run.trace if path.startswith(part) and path.split(".")[-1].startswith(names)]
        expected += [f"{part}.norm"] * (f"{part}.norm" in run.trace and f"{part}.norm" not in expected)
        followed = followed_in(run, stack)
        places = list(followed.found.places(followed.stream))
        assert [place.path for place in places] == expected
        for place in places:
            assert len(place.parts) == len(place.terms) == len(set(place.terms))
            stage = run.trace[place.path].value[0].double()
            torch.testing.assert_close(place.parts.sum(0), stage, rtol=1e-5, atol=1e-5)
        (*_, some) = followed.found.places(followed.stream, tokens=slice(2, 4))
        torch.testing.assert_close(some.parts, places[-1].parts[:, 2:4])


def test_every_part_has_the_name_and_the_stage_of_what_wrote_it():
    way = taken(run_of("encoder-decoder")).way
    layer = "decoder.layers.1"
    assert [(part.label, part.path) for part in way.parts[:2]] == [
        ("embedding", "decoder.inputs.scaled_embedding"),
        ("position", "decoder.inputs.positional_encoding"),
    ]
    assert [(part.label, part.path) for part in way.parts if layer in part.path] == [
        *(("head " + str(head), f"{layer}.self_attention.weights") for head in range(4)),
        ("bias of w_o", f"{layer}.self_attention.output"),
        ("bias of norm1", f"{layer}.norm1"),
        *(("head " + str(head), f"{layer}.cross_attention.weights") for head in range(4)),
        ("bias of w_o", f"{layer}.cross_attention.output"),
        ("bias of norm2", f"{layer}.norm2"),
        ("feed-forward", f"{layer}.feed_forward.output"),
        ("bias of w_2", f"{layer}.feed_forward.output"),
        ("bias of norm3", f"{layer}.norm3"),
    ]
    assert [stop.title for stop in way.stops[-3:]] == [
        "layer 1 · self-attention",
        "layer 1 · cross-attention",
        "layer 1 · feed-forward",
    ]


def test_a_head_is_what_its_ablation_takes_from_the_output():
    run = run_of("decoder")
    followed, module = followed_in(run, stack_of(run, "decoder.")), "decoder.layers.0.self_attention"
    place = next(one for one in followed.found.places(followed.stream) if one.path.endswith("0.residual1"))
    head = next(i for i, term in enumerate(place.terms) if term.head == 1)
    without = torch.ones(run.settings.n_heads, 1, 1)
    without[1] = 0
    with record(run.model, edits={f"{module}.context": lambda context: context * without}) as ablated:
        run.forward(run)
    taken_away = (run.trace[f"{module}.output"].value - ablated[f"{module}.output"].value)[0].double()
    torch.testing.assert_close(place.parts[head], taken_away, rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("variant", ["decoder", "pre-norm", "final norm"])
def test_the_lens_applies_the_last_norm_that_belongs_to_no_layer_at_every_stop(variant):
    run = run_of(variant)
    stack = stack_of(run, "logits")
    part, followed = stack.partition(".")[0], followed_in(run, stack)
    stream = run.trace[f"{part}.inputs.embedded"].value[0]
    norm = dict(run.model.get_submodule(part).named_children()).get("norm") or torch.nn.Identity()
    expected = run.model.unembedding(norm(stream))
    torch.testing.assert_close(followed.found.lens.logits(followed.stream, stream), expected)


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
    followed = followed_in(run, stack_of(run, "encoder."))
    window = window_of(followed, 100)
    every = len(run.tokens["source"].labels)
    assert 100 in range(window.start, window.stop)
    assert window.stop - window.start < every
    found = take_apart(followed, window)
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
    tell(app, "token_way_encoder.layers.0.self_attention.weights", "shown", query=4, layer=1)
    assert dict(app.query_params) == {"view": "way", "query": "4", "layer": "1"}
    path = "encoder.layers.1.self_attention.weights"
    tell(app, "token_way_encoder.layers.0.self_attention.weights", "open", path=path, query=4, head=1)
    assert chosen(app, "view") == "step"
    assert dict(app.query_params) == {"query": "4", "head": "1", "layer": "1"}
    assert chosen(app, "stage") == "encoder.self_attention.weights"


def test_padding_and_batches_are_followed_in_the_sequence_that_is_chosen():
    run = compute_run(replace(VARIANTS["decoder"], text="the cat sat\na dog"))
    first, second = (taken(run.at(item).alone()).way for item in (0, 1))
    assert first.tokens.labels != second.tokens.labels
    assert (first.norms != second.norms).any()
