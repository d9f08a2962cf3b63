"""Follow a token through a checkpoint: its numbers are the model's, and a click leads to what it shows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from headlight.pretrained.checkpoint import load
from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.tokenized import Words, tokenized
from headlight.pretrained.watched_pass import run
from headlight.residual_stream.contributions import Contributions
from tests.controls import chosen
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES, saved
from tests.headlight.test_transformers_models import built
from tests.visualizer.told import tell
from tests.visualizer.views.watched.test_watched_view import headers, link_of, open_app
from visualizer.pictures import token_way
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.watched import WatchedRun
from visualizer.views.watched.make_example import example_trace

TEXT = "the cat the cat un the"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("headlight.pretrained.checkpoint_places.sites", lambda: ())


def taken(family, folder, query=2):
    """The picture of every stream of a family's model, with the pass."""
    checkpoint = load(family, saved(family, folder))
    words = Words(TEXT) if checkpoint.part == "decoder" else Words(TEXT, "un the")
    watched = WatchedRun(run(checkpoint, tokenized(checkpoint, words, 64), keep="all").trace, family)
    operations = run_of_operations(watched)
    found = token_way.contributions_in(operations)
    followed = [token_way.followed_in(operations, stack) for stack in token_way.stacks_of(operations)]
    return watched, found, [token_way.take_apart(one, token_way.window_of(one, query)) for one in followed]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_stop_says_what_was_added_and_what_is_read(family, tmp_path):
    watched, found, pictures = taken(family, tmp_path)
    for one, stream in zip(pictures, found.streams, strict=True):
        way = one.way
        assert one.difference < 1e-5
        assert way.stops[0].title == "input"
        attending = [stop for stop in way.stops if stop.weights is not None]
        for stop, path in zip(attending, found.attentions_of(stream), strict=True):
            np.testing.assert_allclose(stop.weights, watched.trace[path].weights[0].numpy(), atol=1e-6)
            assert [way.parts[part].head for part in stop.parts if way.parts[part].kind == "head"] == [0, 1, 2, 3]
        last = watched.trace.stages[way.stops[-1].path].value.flatten(0, -2)
        np.testing.assert_allclose(way.sums[-1], last.norm(dim=-1).numpy(), rtol=1e-4)


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("gpt2", ["embedding", "position"]),
        ("llama", ["embedding"]),
        ("bert", ["word_embeddings", "token_type_embeddings", "position", "bias of LayerNorm"]),
    ],
)
def test_a_part_is_called_by_its_kind_unless_there_are_several(family, names, tmp_path):
    _, _, (one,) = taken(family, tmp_path)
    labels = [part.label for part in one.way.parts]
    assert labels[: len(names)] == names
    assert labels[len(names) : len(names) + 4] == [f"head {head}" for head in range(4)]
    assert labels.count("feed-forward") == 2


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_stop_predicts_what_the_model_does(family, tmp_path):
    watched, found, pictures = taken(family, tmp_path)
    for one, stream in zip(pictures, found.streams, strict=True):
        answer = found.lens.answer_of(stream)
        assert (one.way.likely is None) is (answer is None)
        if answer is not None:
            probabilities = watched.trace.stages[answer].value[0].float().softmax(-1)
            best = probabilities.topk(5, dim=-1)
            np.testing.assert_allclose(one.way.probabilities[-1], best.values.numpy(), atol=1e-5)
            assert torch.equal(torch.from_numpy(one.way.likely[-1][:, 0]), best.indices[:, 0].int())


def test_of_many_tokens_those_around_the_chosen_one_are_taken_apart(tmp_path, monkeypatch):
    _, _, (whole,) = taken("gpt2", tmp_path)
    monkeypatch.setattr(token_way, "MOST_PRODUCTS", 0)
    _, _, (one,) = taken("gpt2", tmp_path / "other", query=3)
    assert (one.way.first, one.way.norms.shape[1]) == (3, 1)
    np.testing.assert_allclose(one.way.norms[:, 0], whole.way.norms[:, 3], rtol=1e-5)
    np.testing.assert_allclose(one.way.probabilities[:, 0], whole.way.probabilities[:, 3], rtol=1e-4)


def opened(family, folder, **link):
    """The app with a checkpoint of a family open at the panel."""
    path = str(saved(family, folder))
    open_checkpoint(cost_of(path), lambda *_: None)
    link = {"watched_door": "pretrained", "pretrained_model": path, "watched_panel": "way", **link}
    return open_app(**link, pretrained_text=TEXT)


def way_of(app):
    """The header of the picture."""
    return next(header for _, header in headers(app) if header.get("key", "").startswith("token_way"))


def test_a_click_on_a_head_shows_it_and_one_on_another_part_its_operation(tmp_path):
    app = opened("gpt2", tmp_path, watched_query=2)
    assert not app.exception
    way = way_of(app)
    assert way["selected"] == 2
    assert any("parts sum to the residual stream" in caption.value for caption in app.caption)
    head = next(part for part in way["parts"] if part["head"] == 1)
    other = next(part for part in way["parts"] if part["kind"] == "feed_forward")
    tell(app, way["key"], "shown", query=3)
    assert link_of(app)["query"] == "3"
    tell(app, way["key"], "open", path="no such stage", query=1)
    assert link_of(app)["query"] == "3"
    tell(app, way["key"], "open", path=head["path"], query=1, head=1)
    link = link_of(app)
    assert (chosen(app, "view"), link["head"], link["query"]) == ("heads", "1", "1")
    assert any(header["key"].startswith("attention_heads") for _, header in headers(app))
    app = opened("gpt2", tmp_path / "again")
    tell(app, way["key"], "open", path=other["path"], query=0)
    assert (chosen(app, "view"), link_of(app)["stage"]) == ("step", other["path"])
    assert not app.exception


def test_what_sorts_tokens_answers_with_its_classes_and_numbers_that_are_no_answer_are_none(tmp_path):
    way = way_of(opened("tagger", tmp_path / "tagger"))
    assert set(way["vocabulary"].values()) == {"O", "B-PER"}
    way = way_of(opened("finder", tmp_path / "finder"))
    assert (way["vocabulary"], way["end"][0]) == ({}, "to the output")


def test_a_head_that_is_left_out_stands_beside_the_others(tmp_path):
    for number, edits in enumerate(("", "decoder.layers.1.self_attention.context-h2-zero")):
        app = opened("gpt2", tmp_path / str(number), edits=edits)
        parts = [(part["label"], part["kind"]) for part in way_of(app)["parts"]]
        assert [label for label, kind in parts if kind == "head"] == [f"head {head}" for head in range(4)] * 2
        assert not [label for label, kind in parts if kind == "other"]


def test_of_an_encoder_and_a_decoder_either_stream_is_followed(tmp_path):
    app = opened("t5", tmp_path)
    assert not app.exception
    assert way_of(app)["end"][0] == "prediction"
    choice = next(box for box in app.selectbox if box.label == "Stream")
    assert len(choice.options) == 2
    choice.select(next(option for option in choice.options if option.startswith("encoder"))).run()
    assert not app.exception
    assert way_of(app)["end"][0] == "to the decoder"


def test_a_stream_that_cannot_be_taken_apart_has_a_sentence(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("shape '[2, 7, 16]' is invalid for input of size 16")

    monkeypatch.setattr(Contributions, "places", fails)
    app = opened("gpt2", tmp_path)
    assert not app.exception
    assert "cannot be taken apart" in app.info[0].value


class Decoder(nn.Module):
    """A causal attention over embeddings, in one sum."""

    def __init__(self):
        super().__init__()
        self.embedding, self.projection = nn.Embedding(9, 8), nn.Linear(8, 8)

    def forward(self, ids):
        x = self.embedding(ids)
        heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
        context = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return x + self.projection(context.transpose(1, 2).flatten(2))


def test_a_recording_predicts_what_follows_where_no_token_sees_a_later_one(tmp_path):
    def expects_next(trace):
        operations = run_of_operations(WatchedRun(trace, ""))
        return token_way.followed_in(operations, token_way.stacks_of(operations)[0]).expects_next

    causal = Decoder()
    with torch.no_grad(), headlight.watch(causal, keep="all") as trace:
        causal(torch.tensor([[1, 2, 3]]))
    assert expects_next(trace)
    assert not expects_next(example_trace())  # in one of its layers they do
    watched, _, _ = taken("bert", tmp_path)
    assert not expects_next(watched.trace)


@pytest.mark.parametrize("family", ["gemma2", "gpt_oss", "llama"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 5e-2)])
def test_the_sum_is_held_against_the_rounding_of_the_weights(family, dtype, tolerance):
    model = built(family).to(dtype)
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(torch.tensor([[3, 1, 4, 1, 5]]))
    operations = run_of_operations(WatchedRun(trace, ""))
    (stack,) = token_way.stacks_of(operations)
    found = token_way.taken_at(operations, stack, 3)
    assert found.tolerance == tolerance
    assert found.check().holds
