"""The view without a browser: choose, train a little, look at a moment, go on with the model."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from model.training import RECIPES, milestones
from visualizer.training.session import difference

APP = str(Path(__file__).parents[3] / "app.py")
STEPS = 4
PATIENCE = 120.0


def open_view(task: str = "reverse") -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["view"] = "train"
    app.run()
    if task != "reverse":
        app.segmented_control(key="train_task").set_value(task).run()
    return app


def make_tiny(app: AppTest, task: str, steps: int = STEPS) -> None:
    for name, value in {"n_heads": 2, "n_layers": 1, "d_model": 8, "d_ff": 8, "steps": steps}.items():
        app.number_input(key=f"train_{task}_{name}").set_value(value)
    app.run()


def wait_for_a_picture(app: AppTest) -> None:
    """Run the script until the training that has begun shows its first numbers."""
    deadline = time.monotonic() + PATIENCE
    while "of held-out texts right" not in shown(app):
        assert time.monotonic() < deadline
        app.run()


def wait_for_the_end(app: AppTest) -> None:
    """Run the script again and again, as the page does by itself."""
    deadline = time.monotonic() + PATIENCE
    while any(button.key == "stop_training" for button in app.button):
        assert time.monotonic() < deadline
        app.run()
    assert_healthy(app)


def assert_healthy(app: AppTest) -> None:
    assert not app.exception, app.exception
    assert not app.error, app.error[0].value


def shown(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def moments_of(app: AppTest) -> list:
    """The sliders through the snapshots."""
    return [slider for slider in app.select_slider if str(slider.key).startswith("moment_")]


@pytest.mark.parametrize("task", RECIPES)
def test_before_the_start_each_task_shows_what_random_weights_do(task):
    app = open_view(task)
    assert_healthy(app)
    assert "of held-out texts right" in shown(app)
    assert len(app.get("bidi_component")) >= 1
    assert not moments_of(app)


@pytest.mark.parametrize("task", ["reverse", "repeat_block", "match_brackets"])
def test_a_training_ends_with_a_slider_through_its_moments(task):
    app = open_view(task)
    make_tiny(app, task)
    app.button(key="start_training").click().run()
    wait_for_the_end(app)
    (slider,) = moments_of(app)
    assert list(slider.options) == [f"step {step}" for step in milestones(STEPS)]
    assert slider.value == STEPS
    last = shown(app)
    slider.set_value(0).run()
    assert_healthy(app)
    assert shown(app) != last


def test_stop_keeps_what_there_is():
    app = open_view()
    make_tiny(app, "reverse", steps=20_000)
    app.button(key="start_training").click().run()
    wait_for_a_picture(app)
    app.button(key="stop_training").click().run()
    wait_for_the_end(app)
    said = [slider.label for slider in app.select_slider] + [caption.value for caption in app.caption]
    assert any("Stopped after" in text for text in said)
    assert app.button(key="step_through_training_0_0")


def test_the_model_of_a_moment_opens_in_the_step_view():
    app = open_view()
    make_tiny(app, "reverse")
    app.button(key="start_training").click().run()
    wait_for_the_end(app)
    app.button(key="step_through_training_0_0").click().run()
    assert_healthy(app)
    assert app.query_params["weights"] in ("trained", ["trained"])
    assert app.segmented_control(key="view").value == "step"


def test_a_refused_recipe_gives_one_sentence_and_cannot_be_started():
    app = open_view()
    app.number_input(key="train_reverse_n_heads").set_value(5).run()
    assert not app.exception
    (error,) = app.error
    assert "n\\_heads" in error.value
    assert app.button(key="start_training").disabled


def test_a_text_that_is_none_of_the_task_gives_one_sentence():
    app = open_view()
    app.text_input(key="train_text_reverse").set_value("HELLO 7").run()
    assert not app.exception
    (error,) = app.error
    assert "letters from a to z" in error.value


def test_an_experiment_trains_both_at_one_click_and_tells_them_apart():
    app = open_view("sort")
    app.button(key="experiment_no_causal_mask").click().run()
    assert_healthy(app)
    assert app.segmented_control(key="train_task").value == "reverse"
    assert app.segmented_control(key="train_attention_of_encoder-decoder").value == "decoder.self_attention"
    wait_for_a_picture(app)
    app.button(key="stop_training").click().run()
    wait_for_the_end(app)
    headings = " ".join(text.value for text in app.markdown)
    assert "With the causal mask" in headings
    assert "Without the causal mask" in headings
    assert app.button(key="step_through_training_0_1")


def test_two_recipes_are_called_by_what_differs():
    one = RECIPES["reverse"]
    assert difference(one, replace(one, positions="none")) == ("With sinusoidal positions", "Without positions")
    assert difference(replace(one, n_heads=8), replace(one, n_heads=1)) == ("8 heads", "One head")
