"""The masks that the painter does not show are judged too, and said which they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.test_app import open_app
from visualizer.runs.compute import compute_run
from visualizer.safe_text import markdown_safe
from visualizer.settings.settings import Selection, Settings
from visualizer.views.lab.case import case_of
from visualizer.views.lab.everywhere import found_beside, found_everywhere
from visualizer.views.lab.intent import intent_of

SETTINGS = Settings(architecture="decoder", text="a b c d", n_heads=2, d_model=8, d_ff=8, mask=("custom",))
LOOK = Selection(view="lab", intent="causal", layer=0, head=0)


def said(settings, selection=LOOK):
    case = case_of(compute_run(settings).alone(), selection)
    return [(one.finding.title, one.where) for one in found_everywhere(case, ())]


def test_the_head_of_the_layer_that_is_wrong_is_named():
    settings = replace(SETTINGS, custom="k <= q;1.1:k < 3")
    assert said(settings) == [("This is not causal", "In layer 1, head 1: ")]


def test_the_sequence_that_is_wrong_is_named():
    settings = replace(SETTINGS, text="a b c d\na b", mask=())
    found = said(settings, replace(LOOK, intent="bidirectional+padding"))
    assert ("This is not bidirectional, padding ignored", "In sequence 1: ") in found


PAIR = replace(SETTINGS, architecture="encoder-decoder", text="a b c d\na b", target="x y\nx")


def test_the_encoder_and_the_cross_attention_are_judged_too():
    seen = found_beside(case_of(compute_run(replace(PAIR, mask=("causal",))).alone(), LOOK))
    assert {(other.attention.name, one.where) for other, one in seen} == {
        ("encoder", "In sequence 1: "),
        ("cross", "In sequence 1: "),
    }
    assert all("Padding is not ignored" in one.finding.why for _, one in seen)
    assert found_beside(case_of(compute_run(replace(PAIR, mask=("causal", "padding"))).alone(), LOOK)) == ()
    assert found_beside(case_of(compute_run(SETTINGS).alone(), LOOK)) == ()


def test_one_mask_for_all_says_nothing_of_others():
    assert said(replace(SETTINGS, custom="k < 2")) == []


def test_the_way_to_a_wrong_mask_is_one_click():
    link = {"text": "a b c d", "weights": "random", "mask": "custom", "custom": "k <= q;1.1:k < 3"}
    app = open_app(view="lab", architecture="decoder", intent="causal", **link)
    assert any(markdown_safe("In layer 1, head 1") in text.value for text in app.markdown)
    app.button(key="show_found_0").click().run()
    assert (app.session_state["layer"], app.session_state["head"]) == (1, 1)


@pytest.mark.parametrize(
    ("painted", "before", "words"),
    [
        ("", -1, "bidirectional"),
        ("not (q == 2 and k == 3)", -1, "bidirectional"),
        ("k <= q", 1, "causal, after 1 key"),
    ],
)
def test_the_guess_of_a_cross_attention_stands_where_it_was_said(painted, before, words):
    settings = replace(SETTINGS, architecture="encoder-decoder", target="x y", custom_cross=painted)
    case = case_of(compute_run(settings), Selection(attention="cross", keys_before=before))
    assert intent_of(case).words.startswith(words)
    assert ("cache" in intent_of(case).words) == (before > 0)
    assert "first key" not in intent_of(case).words
