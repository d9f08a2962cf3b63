"""The masks that the painter does not show are judged too, and said which they are."""

from __future__ import annotations

from dataclasses import replace

from tests.controls import chosen
from tests.test_app import open_app
from visualizer.runs.compute import compute_run
from visualizer.safe_text import markdown_safe
from visualizer.settings.fields import changed
from visualizer.settings.settings import Selection, Settings
from visualizer.views.lab.case import case_of
from visualizer.views.lab.everywhere import found_beside, found_everywhere
from visualizer.views.lab.intent import chosen_intent

SETTINGS = Settings(architecture="decoder", text="a b c d", n_heads=2, d_model=8, d_ff=8, mask=("custom",))
LOOK = changed(Selection(view="lab", layer=0, head=0), intent="causal")


def said(settings, selection=LOOK):
    case = case_of(compute_run(settings).alone(), selection)
    return [(one.finding.title, one.where) for one in found_everywhere(case, ())]


def test_the_head_of_the_layer_that_is_wrong_is_named():
    settings = replace(SETTINGS, custom="k <= q;1.1:k < 3")
    assert said(settings) == [("This is not causal", "In layer 1, head 1: ")]


def test_the_sequence_that_is_wrong_is_named():
    settings = replace(SETTINGS, text="a b c d\na b", mask=())
    found = said(settings, changed(LOOK, intent="bidirectional+padding"))
    assert ("This is not bidirectional, padding ignored", "In sequence 1: ") in found


PAIR = replace(SETTINGS, architecture="encoder-decoder", text="a b c d\na b", target="x y\nx")


def test_the_encoder_and_the_cross_attention_are_judged_too():
    look = changed(LOOK, intent_encoder="bidirectional+padding", intent_cross="bidirectional+padding")
    seen = found_beside(case_of(compute_run(replace(PAIR, mask=("causal",))).alone(), look))
    assert {(other.attention.name, one.where) for other, one in seen} == {
        ("encoder", "In sequence 1: "),
        ("cross", "In sequence 1: "),
    }
    assert all("Padding is not ignored" in one.finding.why for _, one in seen)
    assert found_beside(case_of(compute_run(replace(PAIR, mask=("causal", "padding"))).alone(), look)) == ()
    assert found_beside(case_of(compute_run(SETTINGS).alone(), look)) == ()


def test_one_mask_for_all_says_nothing_of_others():
    assert said(replace(SETTINGS, custom="k < 2")) == []


def test_the_way_to_a_wrong_mask_is_one_click():
    link = {"text": "a b c d", "weights": "random", "mask": "custom", "custom": "k <= q;1.1:k < 3"}
    app = open_app(view="lab", architecture="decoder", intent="causal", **link)
    assert any(markdown_safe("In layer 1, head 1") in text.value for text in app.markdown)
    app.button(key="show_found_0").click().run()
    assert (chosen(app, "layer"), chosen(app, "head")) == (1, 1)


def test_where_a_cross_attention_stands_is_said():
    settings = replace(SETTINGS, architecture="encoder-decoder", target="x y", custom_cross="k <= q")
    for before, words in ((-1, "causal, top-left aligned"), (1, "causal, bottom-right aligned")):
        case = case_of(
            compute_run(settings),
            changed(Selection(), attention="cross", intent_cross="causal", keys_before=before),
        )
        assert chosen_intent(case).words_over(case.context) == words


def test_nothing_is_said_of_a_mask_that_nobody_asked_about():
    pair = compute_run(replace(PAIR, mask=("causal",), custom="k <= q;1.1:k < 3")).alone()
    case = case_of(pair, changed(LOOK, intent="unsaid"))
    assert found_everywhere(case, ()) == () == found_beside(case)


def test_an_answer_that_asks_for_the_head_is_worked_out_for_each():
    settings = replace(SETTINGS, custom="k <= q;*.1:k == q")
    assert said(settings, changed(LOOK, intent="expression:k <= q and (h == 0 or k == q)")) == []
    found = said(replace(SETTINGS, custom="k <= q"), changed(LOOK, intent="expression:k <= q - h"))
    assert found == [("This is not open where k <= q - h", "In head 1: ")]
