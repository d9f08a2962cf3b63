"""The whole view without a browser."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from model.decoding import Reader, Sampling
from tests.test_app import assert_healthy, components, in_link, open_app
from tests.visualizer.told import tell
from visualizer.runs.compute import compute_run
from visualizer.runs.continuation import OneByOne, write
from visualizer.runs.writer import writer_of
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings

REVERSE = {"view": "generate", "weights": "trained", "task": "reverse", "text": "headlight"}
DECODER = {"view": "generate", "architecture": "decoder", "weights": "random"}
BOTH = {"view": "generate", "architecture": "encoder-decoder"}


def picture(app: AppTest) -> dict[str, Any]:
    """Return the data that the component received, without its arrays."""
    found = [each.proto for each in app.get("bidi_component") if "generation" in each.proto.component_name]
    assert len(found) == 1
    data = found[0].bytes
    (length,) = struct.unpack_from("<I", data)
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    return header


def said(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.caption, *app.markdown)).replace("\\", "")


def choose(app: AppTest, strategy: str) -> AppTest:
    return app.segmented_control(key="strategy").set_value(strategy).run()


@pytest.mark.parametrize("query", [REVERSE, DECODER, BOTH], ids=["trained", "decoder", "encoder-decoder"])
def test_every_strategy_of_every_model(query):
    app = open_app(**query)
    assert_healthy(app)
    assert "headlight_generation_steps" in components(app)
    for strategy, component in (("sampling", "headlight_generation_steps"), ("beam", "headlight_generation_tree")):
        choose(app, strategy)
        assert_healthy(app)
        assert component in components(app)


def test_a_trained_model_reverses_and_stops():
    app = open_app(**REVERSE)
    assert picture(app)["labels"] == ["<sos>", *"thgildaeh", "<eos>"]
    assert "the answer is right" in said(app)


def test_other_weights_stop_at_the_limit_and_say_so():
    app = open_app(**BOTH)
    assert len(picture(app)["steps"]) == 12
    assert "no end token, so it stops at the limit of 12" in said(app)
    app.number_input(key="most_tokens").set_value(3).run()
    assert len(picture(app)["steps"]) == 3
    assert "the model did not run" in said(app)


@pytest.mark.parametrize(
    ("query", "what", "offered"),
    [
        ({"architecture": "encoder"}, "An encoder only reads", "decoder"),
        ({"weights": "one_head"}, "worked example", "reverse"),
        ({"weights": "trained", "task": "match_brackets"}, "An encoder only reads", "repeat_block"),
    ],
)
def test_beside_what_cannot_write_a_click_opens_what_can(query, what, offered):
    app = open_app(view="generate", **query)
    assert not app.exception
    assert [what in info.value for info in app.info] == [True]
    app.button(key=f"write_with_{offered}").click().run()
    assert_healthy(app)
    assert not app.info
    assert picture(app)["steps"]
    assert picture(app)["step"] == 0


def test_another_temperature_keeps_what_it_can_and_going_back_computes_nothing(monkeypatch):
    app = choose(open_app(**DECODER, seed="7"), "sampling")
    first = picture(app)["labels"]
    app.slider(key="temperature").set_value(3.0).run()
    assert_healthy(app)
    assert "another token is chosen now" in said(app)
    steps = picture(app)["steps"]
    n_kept = sum(step["kept"] for step in steps)
    assert 0 < n_kept < 12
    assert f"from step {n_kept + 1} on" in said(app)
    assert [step["kept"] for step in steps] == [True] * n_kept + [False] * (12 - n_kept)

    def refuse(*_arguments):
        raise ValueError("the model ran")

    monkeypatch.setattr(Reader, "run", refuse)
    app.slider(key="temperature").set_value(1.0).run()
    assert_healthy(app)
    assert picture(app)["labels"] == first
    assert "One run of the model for each token: 12 times." in said(app)
    assert not any(step["kept"] for step in picture(app)["steps"])


def test_another_temperature_and_other_views_keep_the_step():
    app = choose(open_app(**DECODER, text="a b c d", seed="7"), "sampling")
    tell(app, "generation_steps", "shown", step="3", row_layer="-1")
    app.slider(key="temperature").set_value(3.0).run()
    warm = picture(app)
    assert warm["step"] == 3
    for view in ("heads", "generate"):
        app.segmented_control(key="view").set_value(view).run()
    assert_healthy(app)
    assert (picture(app)["step"], picture(app)["labels"]) == (3, warm["labels"])
    assert in_link(app, "step") == "3"


def test_top_k_and_the_seed_choose():
    app = choose(open_app(**DECODER), "sampling")
    app.number_input(key="likely_tokens_left").set_value(1).run()
    greedy = open_app(**DECODER)
    assert picture(app)["labels"] == picture(greedy)["labels"]
    assert sum(bar["share"] > 0 for bar in picture(app)["steps"][0]["bars"]) == 1


def test_the_cache_gives_the_same_numbers_from_fewer_rows():
    app = open_app(**DECODER)
    plain = picture(app)["labels"]
    app.toggle(key="cached").set_value(True).run()
    assert_healthy(app)
    drawn = picture(app)
    assert drawn["labels"] == plain
    assert [step["computed"] for step in drawn["steps"]][1:] == [1] * 11
    assert ":green[:material/check_circle:] With the cache as without" in said(app)


def test_a_cache_needs_a_causal_mask():
    app = open_app(**DECODER, mask="none")
    assert_healthy(app)
    app.toggle(key="cached").set_value(True).run()
    assert not app.exception
    assert "needs a causal mask" in app.warning[0].value.replace("\\", "")


def test_the_beam_is_as_wide_as_asked():
    app = choose(open_app(**REVERSE), "beam")
    assert len(picture(app)["best"]) == 3
    app.slider(key="beams").set_value(5).run()
    assert_healthy(app)
    drawn = picture(app)
    assert len(drawn["best"]) == 5
    assert "".join(drawn["nodes"][drawn["best"][0]]["text"]) == "thgildaeh<eos>"


@pytest.mark.parametrize("cached", ["on", "off"])
def test_a_beam_says_that_it_leaves_out_a_cache_that_is_switched_on(cached):
    app = open_app(**DECODER, strategy="beam", limit="3", cached=cached)
    assert ("leaves out the key/value cache" in said(app)) == (cached == "on")
    choose(app, "greedy")
    assert "leaves out" not in said(app)
    assert ("With the cache as without" in said(app)) == (cached == "on")


@pytest.mark.parametrize("text", ["$x$ **b** :red[x]", "שלום עולם", "a " * 505, "x"])
def test_any_text_can_be_continued(text):
    app = open_app(**DECODER | {"text": text})
    assert_healthy(app)
    assert picture(app)["steps"]


@pytest.mark.parametrize(
    "link",
    [
        {"strategy": "sampling", "temperature": "2.5", "top_k": "4", "top_p": "0.9", "draws": "3", "limit": "5"},
        {"strategy": "beam", "beams": "2", "length_penalty": "1.2", "limit": "4"},
        {"cached": "on"},
    ],
    ids=["sampling", "beam", "cache"],
)
def test_a_link_says_how_the_model_writes(link):
    app = open_app(**DECODER | link)
    assert_healthy(app)
    assert not app.warning
    assert {name: in_link(app, name) for name in link} == link
    drawn = picture(app)
    if "beams" in link:
        assert len(drawn["best"]) == 2
        assert max(node["depth"] for node in drawn["nodes"]) == 4
        assert app.slider(key="length_penalty").value == 1.2
        return
    assert len(drawn["steps"]) == int(link.get("limit", 12))
    assert drawn["cached"] == ("cached" in link)
    if "top_k" in link:
        sampling = Sampling(temperature=2.5, top_k=4, top_p=0.9, seed=3)
        run = compute_run(fitted(Settings(architecture="decoder", weights="random")))
        expected = write(writer_of(run), OneByOne(sampling, 5)).tokens
        assert drawn["labels"][-5:] == [run.vocabulary[token] for token in expected]


def test_the_usual_number_of_tokens_is_no_choice():
    app = open_app(**DECODER)
    app.number_input(key="most_tokens").set_value(3).run()
    assert in_link(app, "limit") == "3"
    app.number_input(key="most_tokens").set_value(12).run()
    assert "limit" not in app.query_params
    assert len(picture(app)["steps"]) == 12


ASKS_FOR_LENGTH = {"text": "a b c", "n_layers": "2", "d_model": "8", "n_heads": "2", "limit": "4", "cached": "on"}


@pytest.mark.parametrize(
    ("score", "n_layers", "differs"),
    [("score * n_keys", "2", True), ("score * n_keys", "1", False), ("score * 2 - (q - k)", "2", False)],
)
def test_a_change_that_asks_for_the_number_of_keys_differs_with_a_cache_and_that_is_said(score, n_layers, differs):
    app = open_app(**DECODER, **ASKS_FOR_LENGTH | {"score": score, "n_layers": n_layers})
    assert ("asks how many tokens there are" in said(app)) == differs
