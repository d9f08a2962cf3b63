"""Landing: at the end of the path, from a click in a picture, and when another text comes into sight."""

from __future__ import annotations

import pytest

from tests.controls import chosen
from tests.test_app import assert_healthy, open_app, open_examples
from tests.visualizer.told import tell
from visualizer.components.packing import header_of
from visualizer.settings.examples import OPENING


def card_of(app):
    found = [one.proto.bytes for one in app.get("bidi_component") if "path_card" in one.proto.component_name]
    return header_of(found[0]) if found else None


@pytest.mark.parametrize("view", ["lab", "heads", "generate"])
def test_the_path_ends_with_three_ways_on_after_which_it_begins_anew(view):
    app = open_app(architecture="decoder", text="the cat sat", guided="on", stop="14", stage="probabilities")
    assert_healthy(app)
    assert [one for one, _ in card_of(app)["onward"]] == ["lab", "heads", "generate"]
    tell(app, "path_card", "onward", view=view)
    assert_healthy(app)
    assert (chosen(app, "view"), card_of(app)) == (view, None)
    open_examples(app).button("begin").click().run()
    assert card_of(app)["current"] == 0
    assert not card_of(app)["onward"]


def test_an_encoder_which_writes_nothing_leads_on_to_the_comparison():
    app = open_app(text="the cat sat", guided="on", stop="14", stage="probabilities")
    assert [one for one, _ in card_of(app)["onward"]] == ["lab", "heads", "compare"]


def test_who_opened_a_stage_in_follow_a_token_is_offered_the_way_back():
    app = open_app(view="way", query="3")
    path = "encoder.layers.0.self_attention.weights"
    tell(app, "token_way_encoder.layers.0.self_attention.weights", "open", path=path, query=3, head=1)
    assert chosen(app, "view") == "step"
    app.button("back_to_the_way").click().run()
    assert chosen(app, "view") == "way"
    app.segmented_control("view").set_value("step").run()
    assert "back_to_the_way" not in {button.key for button in app.button}


def test_a_token_of_the_text_is_in_focus_when_a_shorter_text_comes_into_sight():
    app = open_app(text="the cat sat on the mat and it was happy\na dog", architecture="decoder")
    assert chosen(app, "query") == 8
    app.segmented_control("batch").set_value(1).run()
    assert_healthy(app)
    assert chosen(app, "query") == 1
    tell(app, "token_strip", "select", sequence="source", index=5)
    assert chosen(app, "query") == 5, "padding that is chosen is looked at"
    named = open_app(text="a dog", pad="4", query="5")
    assert chosen(named, "query") == 5
    assert chosen(open_app(text="a dog", pad="9"), "query") == 1
    assert chosen(open_app(text="a dog", pad="9", pad_side="left"), "query") == 9


def test_a_trained_model_has_no_order_to_shuffle():
    for link in ({}, {"order": "3"}):
        app = open_app(weights="trained", task=OPENING.settings.task, **link)
        assert_healthy(app)
        assert not {"shuffle", "as_typed"} & {button.key for button in app.button}


@pytest.mark.parametrize(
    ("example", "views"),
    [("three_heads", ["step", "heads"]), ("two_causal_heads", ["step", "heads", "compare"])],
)
def test_a_worked_example_leads_on_to_what_it_has(example, views):
    app = open_app(weights=example, guided="on", stop="14", stage="attention.weights")
    assert [one for one, _ in card_of(app)["onward"]] == views
    for view in views:
        assert_healthy(open_app(weights=example, view=view))


def test_an_attention_alone_which_has_no_way_to_follow_leads_on_to_its_stages():
    app = open_app(view="way", architecture="attention")
    app.button("step_instead").click().run()
    assert_healthy(app)
    assert chosen(app, "view") == "step"
