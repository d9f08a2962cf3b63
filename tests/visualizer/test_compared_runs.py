"""Compare with what was kept: any two runs, side by side or in the same grids."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest

from tests.test_app import assert_healthy, in_link, open_app
from tests.visualizer.told import tell
from tests.visualizer.unpacking import unpacked
from visualizer.components.packing import header_of
from visualizer.pictures.compare import baseline_of, compared_settings
from visualizer.routes.address import read_picture_address
from visualizer.routes.answers import answer_picture
from visualizer.runs.compute import compute_run
from visualizer.settings.fields import changed
from visualizer.settings.link import read_query
from visualizer.settings.settings import Selection, Settings

A = {"text": "a b c", "weights": "random", "seed": "3"}


def compare(baseline, **now):
    return open_app(view="compare", baseline=urlencode(baseline), **{**A, **now})


def pictures_named(app, name):
    """The headers of the pictures of a component."""
    drawn = (element.proto for element in app.get("bidi_component"))
    return [header_of(proto.bytes) for proto in drawn if proto.component_name == name]


def said(app):
    """All text of a page, as a person reads it."""
    return re.sub(r"\\|\u2060", "", " ".join(each.value for each in app.markdown))


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        ({"positions": "none"}, "Positions (Sinusoidal → None)"),
        ({"scale_scores": "off"}, "Scale scores (on → off)"),
        ({"text": "a b d"}, "Text"),
        ({"seed": "4"}, "Seed (3 → 4)"),
        ({"norm": "pre"}, "Norm"),
        ({"mask": "causal,padding"}, "Masks (Causal → Causal, Padding)"),
        ({"edits": "encoder.layers.0.self_attention.context-h0-zero"}, "edit"),
    ],
)
def test_two_runs_of_one_shape_stand_in_the_same_grids(now, difference):
    app = compare(A, **now)
    assert_healthy(app)
    assert difference.lower() in said(app).lower()
    (header,) = pictures_named(app, "headlight_compare_grids")
    assert (header["sides"]["a"]["title"], header["sides"]["b"]["title"]) == ("A · kept", "B · now")
    view, _, query = header["address"].partition("?")
    address = read_picture_address(view.rpartition("/")[2], parse_qs(query, keep_blank_values=True))
    _, arrays = unpacked(answer_picture(address).body)
    for name, link in (("a", A), ("b", {**A, **now})):
        run = compute_run(read_query({key: [value] for key, value in link.items()})[0])
        for layer, weights in enumerate(arrays[name]):
            expected = run.trace[f"encoder.layers.{layer}.self_attention.weights"].value[0]
            np.testing.assert_array_equal(weights, expected.numpy())


@pytest.mark.parametrize(
    "now", [{"n_heads": "2"}, {"text": "a b c d"}, {"n_layers": "1"}, {"architecture": "decoder"}]
)
def test_runs_of_other_shapes_stand_below_each_other(now):
    app = compare(A, **now)
    assert_healthy(app)
    assert not pictures_named(app, "headlight_compare_grids")
    first, second = pictures_named(app, "headlight_attention_heads")
    for header, link in ((first, A), (second, {**A, **now})):
        assert f"seed={link['seed']}" in header["address"]
    assert len(second["head_names"][0]) == int(now.get("n_heads", 4))


def test_other_tokens_are_named_in_both_runs():
    (header,) = pictures_named(compare(A, text="a b d"), "headlight_compare_grids")
    assert header["rows"]["labels"] == ["a", "b", "c / d"]


def test_what_is_run_is_kept_and_let_go_again():
    app = open_app(view="compare", **A)
    app.button(key="keep_baseline").click().run()
    assert_healthy(app)
    assert "B is still the same as A" in said(app)
    app.slider(key="n_heads").set_value(2).run()
    assert "Heads (4 → 2)" in said(app)
    kept = baseline_of(changed(Selection(), baseline=in_link(app, "baseline")))
    assert kept == read_query({name: [value] for name, value in A.items()})[0]
    app.button(key="drop_baseline").click().run()
    assert_healthy(app)
    assert "baseline" not in app.query_params
    assert app.slider(key="n_heads").value == 2


def test_what_is_usual_is_kept_too():
    app = open_app(view="compare")
    app.button(key="keep_baseline").click().run()
    assert "B is still the same as A" in said(app)
    assert baseline_of(changed(Selection(), baseline=in_link(app, "baseline"))) == Settings()


def test_answers_to_targets_of_other_lengths_are_not_compared():
    pair = A | {"architecture": "encoder-decoder", "target": "x y z"}
    app = compare(pair, **pair | {"target": "x y", "stage": "encoder.self_attention.weights"})
    assert_healthy(app)
    assert pictures_named(app, "headlight_compare_grids")
    assert "Most likely" not in said(app)


def test_words_that_are_numbered_alike_are_named():
    def captions(app):
        return " ".join(each.value for each in app.caption)

    assert "“c” in A and “d” in B both have the id 4" in captions(compare(A, text="a b d"))
    learned = {"weights": "trained", "task": "small_english"}
    app = open_app(view="compare", baseline=urlencode({**learned, "text": "the cat"}), **learned, text="the mat")
    assert "both have the id" not in captions(app)


def test_a_run_that_cannot_be_had_says_why_and_is_let_go():
    app = compare({"weights": "trained", "checkpoint": "gone"})
    assert not app.exception
    assert "no longer kept" in app.error[0].value
    app.button(key="drop_baseline").click().run()
    assert_healthy(app)
    assert not app.error


@pytest.mark.parametrize(
    "baseline", ["&&&", "n_heads=x", "text=%ff", "baseline=baseline%3D1", "view=heads", "\u0000"]
)
def test_a_baseline_may_say_anything(baseline):
    app = open_app(view="compare", baseline=baseline, **A)
    assert_healthy(app)


def test_without_one_two_masks_are_compared():
    a, b = compared_settings(Settings(text="a"), changed(Selection(), mask_a=(), mask_b=("causal",)))
    assert (a.mask, b.mask) == ((), ("causal",))


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"fault": "after_softmax", "mask": "none"}, "This model is broken on purpose"),
        ({"fault": "after_softmax", "mask": "causal", "baseline": "text=a"}, "This model is broken on purpose"),
        (
            {"weights": "trained", "task": "reverse", "mask": "none", "baseline": "text=a"},
            "here it runs with no mask",
        ),
        ({"text": "a b\nc", "mask": "causal", "baseline": "text=a+b"}, "The padding mask is off"),
    ],
)
def test_what_is_said_of_masks_is_said_of_those_that_are_compared(link, said):
    app = open_app(view="compare", mask_b="causal,padding", **link)
    assert_healthy(app)
    notes = " ".join(each.value for each in (*app.caption, *app.warning))
    assert said in notes
    assert ("there is no padding" in notes) == ("baseline" not in link)
    unmasked = open_app(view="compare", **{**link, "mask_a": "none", "mask_b": "none", "mask": "none"})
    assert not any("broken on purpose" in each.value for each in unmasked.warning)


def test_the_way_to_the_model_as_it_is_lets_go_of_what_was_kept():
    app = open_app(view="step", baseline="text=b", edits="encoder.layers.0.self_attention.context-h0-zero", **A)
    app.button(key="compare_edits").click().run()
    assert_healthy(app)
    assert "baseline" not in app.query_params
    assert "A and B have the same masks here (causal). " in said(app)


@pytest.mark.parametrize("hidden", ["on", "off"])
@pytest.mark.parametrize(
    "baseline", ["weights=feed_forward", "weights=one_head", "architecture=encoder-decoder", "n_heads=2&text=a"]
)
def test_what_has_other_attentions_or_none_is_beside_it_or_refused(baseline, hidden):
    app = open_app(view="compare", baseline=baseline, hidden=hidden, **A)
    assert not app.exception
    refused = hidden == "off" and "feed_forward" in baseline
    assert ["with no attention" in error.value for error in app.error] == [True] * refused
    assert ("mask_a" in {pills.key for pills in app.pills}) == (hidden == "on")  # it is asked about two masks


def test_what_no_link_carries_is_not_kept():
    app = open_app(view="compare", text="a b")
    assert app.button(key="keep_baseline")
    app.text_area(key="text").set_value("donaudampfschifffahrt " * 400).run()
    assert_healthy(app)
    assert not [button for button in app.button if button.key == "keep_baseline"]


@pytest.mark.parametrize("now", [{"text": "a b c d"}, {"n_layers": "1"}, {"n_heads": "2"}], ids=str)
def test_heads_of_other_shapes_show_the_same_layer_and_head_and_the_link_says_which(now):
    app = compare(A, **now)
    tell(app, "beside_0", "shown", layer=1, head=3)
    assert_healthy(app)
    assert (in_link(app, "layer"), in_link(app, "head")) == ("1", "3")
    kept = pictures_named(app, "headlight_attention_heads")[0]
    assert (kept["layer"], kept["head"]) == (1, 3)
    tell(app, "beside_1", "select", layer=0, head=1, query=0, key=0)
    assert "layer" not in app.query_params  # the first, which no link says
    assert in_link(app, "head") == "1"


def test_heads_of_other_shapes_mark_the_cell_that_was_chosen_in_one_of_them():
    app = compare({"text": "a b c d e f"}, text="a b c")
    tell(app, "beside_0", "select", layer=0, head=1, query=2, key=0)
    assert_healthy(app)
    assert (in_link(app, "query"), in_link(app, "key")) == ("2", "0")
    assert [each["selected"] for each in pictures_named(app, "headlight_attention_heads")] == [[2, 0]] * 2
    tell(app, "beside_0", "select", layer=0, head=2, query=5, key=1)
    assert in_link(app, "query") == "2", "the other text has no such token"
