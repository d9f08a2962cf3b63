"""The view without a browser: what is recorded, train a little, look at a moment, open the link again, go on."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget

from model.learning.training import EXPERIMENTS, RECIPES, milestones
from model.learning.training_recordings import recorded
from tests.visualizer.work.test_live import picture_at
from visualizer.components.packing import header_of
from visualizer.views.train import session
from visualizer.views.train.known_trainings import KnownTrainings
from visualizer.views.train.plan import difference
from visualizer.work.trainings import reports_in_turns

APP = str(Path(__file__).parents[4] / "app.py")
STEPS = 4
PATIENCE = 120.0
SEEDS = itertools.count(1000)  # each training here is one that no other test has left in memory


@pytest.fixture(autouse=True)
def trains_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """To start a process for each training takes longer than all that is trained here; the browser tests do."""
    monkeypatch.setattr(session, "KNOWN_TRAININGS", KnownTrainings(trained=reports_in_turns))


def open_view(**query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["view"] = "train"
    for name, value in query.items():
        app.query_params[f"train_{name}"] = value
    return app.run()


def tiny(task: str = "reverse", steps: int = STEPS) -> dict[str, str]:
    """A training of a moment, as a link holds it."""
    sizes = {"n_heads": 2, "n_layers": 1, "d_model": 8, "d_ff": 8, "steps": steps, "seed": next(SEEDS)}
    return {"task": task} | {name: str(value) for name, value in sizes.items()}


def link_of(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def open_again(app: AppTest) -> AppTest:
    """The same link in another session, as after a reload."""
    opened = AppTest.from_file(APP, default_timeout=60)
    for name, value in link_of(app).items():
        opened.query_params[name] = value
    return opened.run()


def start(app: AppTest) -> None:
    app.button(key="start_training").click().run()


def wait_for_a_picture(app: AppTest) -> None:
    """Run the script until the training that has begun shows its first numbers."""
    deadline = time.monotonic() + PATIENCE
    while "of held-out texts right" not in shown(app):
        assert time.monotonic() < deadline
        app.run()


def is_running(app: AppTest) -> bool:
    return any(button.key == "stop_training" for button in app.button)


def wait_for_the_end(app: AppTest) -> None:
    """Ask the address of the picture until nothing more is to come, and run the script once, as the page does."""
    deadline = time.monotonic() + PATIENCE
    for picture in (one for one in pictures(app) if one["key"] == "training" and one["address"]):
        while picture_at(picture["address"]):
            assert time.monotonic() < deadline
    app.run()
    assert not is_running(app)
    assert_healthy(app)


def assert_healthy(app: AppTest) -> None:
    assert not app.exception, app.exception
    assert not app.error, app.error[0].value


def shown(app: AppTest) -> str:
    """Return what the picture says in words."""
    found = next((header for header in pictures(app) if header["key"] == "training"), None)
    if found is None or not found["sides"]:
        return ""
    numbers = [f"{number} {what}" for side in found["sides"] for number, what in side["numbers"]]
    answers = [
        f"{side['asked']} → {side['joint'][0].join(token for token, _ in side['answer'])} {side['note']}"
        for side in found["sides"]
    ]
    return " ".join([*numbers, *answers])


def pictures(app: AppTest) -> list[dict[str, Any]]:
    return [header_of(element.proto.bytes) for element in app.get("bidi_component")]


def laid_open(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def going_on(app: AppTest) -> list[str]:
    """Say what the page says of a training that goes on elsewhere."""
    return [bar["text"] for one in pictures(app) if one["key"] == "training_elsewhere" for bar in one["bars"]]


def said(app: AppTest) -> str:
    """Return the label of the slider, where there is one, and all captions."""
    return " ".join([slider.label for slider in app.select_slider] + [caption.value for caption in app.caption])


# Recorded.


@pytest.mark.parametrize("task", RECIPES)
def test_each_task_opens_with_a_recording_that_has_learned_it(task):
    app = open_view(task=task)
    assert_healthy(app)
    assert f"Recorded: {RECIPES[task].steps:,} steps with seed 0" in said(app)
    assert "in half precision" in said(app)
    continues = task == "small_english"
    assert f"{'99' if continues else '100'}% of held-out texts right" in shown(app)
    assert ("✓ a sentence" if continues else "✓ right") in shown(app)
    slider = app.select_slider(key="train_moment")
    assert list(slider.options) == [f"step {step:,}" for step in recorded(RECIPES[task]).snapshots]
    slider.set_value(0).run()
    assert_healthy(app)
    assert link_of(app)["train_step"] == "0"
    assert "✗" in shown(app)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_opens_with_both_recordings(name):
    app = open_view()
    app.selectbox(key="train_experiment").set_value(name).run()
    assert_healthy(app)
    assert link_of(app) == {"view": "train", "train_experiment": name}
    assert app.selectbox(key="train_task").value == EXPERIMENTS[name].intact.task
    assert "Recorded: both" in said(app)
    (drawn,) = (one for one in pictures(app) if one["key"] == "training")
    names = difference(EXPERIMENTS[name].intact, EXPERIMENTS[name].changed)
    assert tuple(side["name"] for side in drawn["sides"]) == names
    assert shown(app).count("of held-out texts right") == 2
    assert app.button(key="step_through_1")


def test_the_experiment_about_the_causal_mask_shows_where_it_was():
    app = open_view(experiment="no_causal_mask")
    assert app.segmented_control(key="train_attention").value == "decoder.self_attention"


# Live.


def test_what_is_drawn_while_it_trains_comes_from_the_address_of_the_picture():
    app = open_view(**tiny(steps=20_000))
    start(app)
    wait_for_a_picture(app)
    (live,) = (one for one in pictures(app) if one["key"] == "training")
    deadline = time.monotonic() + PATIENCE
    while (newer := header_of(picture_at(live["address"]).data))["bar"] == live["bar"]:
        assert time.monotonic() < deadline
    assert newer["address"] == live["address"]
    assert newer["bar"]["fraction"] > live["bar"]["fraction"]
    assert re.fullmatch(r"Step [\d,]+ of 20,000.*", newer["bar"]["text"])
    app.text_input(key="train_text").set_value("cab").run()
    (asked,) = (one for one in pictures(app) if one["key"] == "training")
    assert asked["address"] != live["address"], "an answer on its way is about another text"
    assert "cab → " in shown(app)
    app.button(key="stop_training").click().run()
    assert picture_at(asked["address"]) is None
    (at_rest,) = (one for one in pictures(app) if one["key"] == "training")
    assert (at_rest["address"], at_rest["bar"]) == ("", None)


@pytest.mark.parametrize("task", ["reverse_digits", "repeat_block", "match_brackets"])
def test_a_training_ends_with_a_slider_through_its_moments(task):
    app = open_view(**tiny(task))
    assert "Not trained yet" in said(app)
    start(app)
    wait_for_the_end(app)
    slider = app.select_slider(key="train_moment")
    assert list(slider.options) == [f"step {step}" for step in milestones(STEPS)]
    assert slider.value == STEPS
    last = shown(app)
    slider.set_value(0).run()
    assert_healthy(app)
    assert shown(app) != last


def test_a_link_finds_the_finished_training_at_the_same_moment_and_start_trains_it_anew():
    app = open_view(**tiny(), text="cab")
    start(app)
    wait_for_the_end(app)
    app.segmented_control(key="train_attention").set_value("decoder.self_attention").run()
    app.select_slider(key="train_moment").set_value(milestones(STEPS)[1]).run()
    again = open_again(app)
    assert_healthy(again)
    assert link_of(again) == link_of(app)
    assert shown(again) == shown(app)
    assert f"Trained {STEPS} steps" in said(again)
    assert again.text_input(key="train_text").value == "cab"
    start(again)
    wait_for_the_end(again)
    assert shown(again) == shown(app)


def test_of_one_recipe_that_two_sessions_trained_both_show_what_was_trained_last(monkeypatch):
    app = open_view(**tiny())
    start(app)
    wait_for_the_end(app)
    finished = session.KNOWN_TRAININGS.finished
    monkeypatch.setattr(
        session.KNOWN_TRAININGS, "finished", lambda recipes: replace(finished(recipes), seconds=77.0)
    )
    assert "in 77 s" in said(open_again(app))
    assert "in 77 s" in said(app.run())


def test_a_finished_training_is_there_again_once_another_run_of_it_is_stopped(monkeypatch):
    lengths = iter((STEPS, 20_000))

    def trained(recipes):
        steps = next(lengths)
        return reports_in_turns(tuple(replace(recipe, steps=steps) for recipe in recipes))

    monkeypatch.setattr(session, "KNOWN_TRAININGS", KnownTrainings(trained=trained))
    app = open_view(**tiny())
    start(app)
    wait_for_the_end(app)
    before = shown(app)
    start(app)
    app.button(key="stop_training").click().run()
    wait_for_the_end(app)
    assert shown(app) == shown(open_again(app)) == before


def test_a_reload_finds_the_training_that_is_running():
    app = open_view(**tiny(steps=20_000))
    start(app)
    again = open_again(app)
    assert is_running(again)
    wait_for_a_picture(again)
    again.button(key="stop_training").click().run()
    again.run()
    assert not is_running(again)
    assert "Stopped after" in said(again)
    wait_for_a_picture(app)  # the first session still looks at it
    app.button(key="stop_training").click().run()


def test_stop_keeps_what_there_is():
    app = open_view(**tiny(steps=20_000))
    start(app)
    wait_for_a_picture(app)
    app.button(key="stop_training").click().run()
    wait_for_the_end(app)
    assert "Stopped after" in said(app)
    assert app.button(key="step_through_0")


def stopped_after_a_while(**query: str) -> AppTest:
    app = open_view(**query)
    start(app)
    wait_for_a_picture(app)
    app.button(key="stop_training").click().run()
    wait_for_the_end(app)
    assert "Stopped after" in said(app)
    return app


def test_what_a_stopped_training_learned_is_there_after_a_reload_also_beside_a_recording():
    app = stopped_after_a_while()
    before = said(app)
    again = open_again(app)
    assert_healthy(again)
    assert said(again) == before
    assert shown(again) == shown(app)
    assert "Recorded: 1,000 steps" in said(open_view())  # who did not start it sees what there was


def test_after_back_to_before_a_start_the_recording_is_shown_again(monkeypatch):
    app = stopped_after_a_while()
    monkeypatch.setattr("visualizer.state.state.has_gone_back", lambda: True)
    del app.query_params["train_started"]
    assert "Recorded: 1,000 steps" in said(app.run())


def test_a_link_that_is_of_no_training_shows_the_recording_whoever_trains_the_same_meanwhile(monkeypatch):
    app = open_view()
    start(app)
    wait_for_a_picture(app)
    of_another = open_view()
    assert not is_running(of_another)
    assert "Recorded: 1,000 steps" in said(of_another)
    with monkeypatch.context() as back:
        back.setattr("visualizer.state.state.has_gone_back", lambda: True)
        del app.query_params["train_started"]
        app.run()
    assert "Recorded: 1,000 steps" in said(app)
    assert "Training goes on: Reverse" in going_on(app)[0]
    app.button(key="show_training").click().run()
    assert is_running(app)
    app.button(key="stop_training").click().run()


def test_a_training_that_its_server_no_longer_knows_is_missed(monkeypatch):
    app = stopped_after_a_while(**tiny(steps=20_000))
    monkeypatch.setattr(session, "KNOWN_TRAININGS", KnownTrainings(trained=reports_in_turns))  # as after a restart
    again = open_again(app)
    (missed,) = again.info
    assert "does not know the training that was started" in missed.value
    assert "Not trained yet" in said(again)
    again.number_input(key="train_seed").set_value(next(SEEDS)).run()
    assert not again.info
    start(again)
    assert not again.info
    wait_for_a_picture(again)
    again.button(key="stop_training").click().run()


def test_a_training_whose_process_dies_says_so_also_after_a_reload(monkeypatch):
    def dying(recipes):
        yield next(reports_in_turns(recipes))
        raise RuntimeError("the training process ended with exit code -9")

    monkeypatch.setattr(session, "KNOWN_TRAININGS", KnownTrainings(trained=dying))
    app = open_view()
    start(app)
    wait_for_the_end(app)
    sentence = "The training failed (the training process ended with exit code \\-9)"
    assert sentence in said(app)
    assert sentence in said(open_again(app))


def test_a_training_that_there_is_no_room_for_is_refused_once(monkeypatch):
    def refuse(*_):
        raise ValueError("As much as this server has room for is being computed.")

    monkeypatch.setattr(session.KNOWN_TRAININGS, "start", refuse)
    app = open_view(**tiny())
    start(app)
    assert not app.exception
    assert ["As much as this server has room for" in error.value for error in app.error] == [True]
    assert not app.run().error


def test_after_a_reload_another_task_says_that_the_first_still_trains():
    app = open_view(**tiny(steps=20_000))
    start(app)
    again = open_again(app)
    again.selectbox(key="train_task").set_value("sort").run()
    assert_healthy(again)
    assert "Recorded" in said(again)
    again.button(key="show_training").click().run()
    assert is_running(again)
    assert link_of(again) == link_of(app)
    again.button(key="stop_training").click().run()
    app.button(key="stop_training").click().run()


def test_of_two_clicks_at_once_none_is_lost():
    app = open_view(**tiny(steps=20_000))
    app.button(key="start_training").click()
    app.selectbox(key="train_task").set_value("sort")
    app.text_input(key="train_text").set_value("31")
    app.run()
    assert_healthy(app)
    assert "Recorded: 1,500 steps" in said(app)  # of sort, while the other one trains
    app.button(key="show_training").click().run()
    assert is_running(app)
    assert app.selectbox(key="train_task").value == "reverse"
    assert app.number_input(key="train_steps").value == 20_000
    app.button(key="stop_training").click().run()


def click_and_change_late(app: AppTest, clicked: str, late: Widget, value: object) -> None:
    """Click, and then give another control a value on a page that has drawn nothing of the click yet."""
    address, before = link_of(app), late._value
    late.set_value(value)
    said = app._tree.get_widget_states().widgets  # a browser says of a button only that it was clicked
    states = WidgetStates(widgets=[one for one in said if one.trigger_value or not one.HasField("trigger_value")])
    late._value = before
    app.button(key=clicked).click().run()
    app.query_params.clear()
    for name, given in address.items():
        app.query_params[name] = given
    app._run(states)
    assert_healthy(app)


def test_stop_right_after_show_it_stops_what_is_shown():
    app = open_view(**tiny(steps=20_000))
    start(app)
    wait_for_a_picture(app)
    training = link_of(app)
    app.selectbox(key="train_task").set_value("sort").run()
    click_and_change_late(app, "show_training", app.button(key="stop_training"), True)
    wait_for_the_end(app)
    assert "Stopped after" in said(app)
    assert link_of(app) == training


def test_a_number_that_is_typed_right_before_start_is_trained():
    app = open_view(**tiny(steps=20_000))
    app.number_input(key="train_steps").set_value(19_900)
    start(app)
    assert is_running(app)
    assert (app.number_input(key="train_steps").value, going_on(app)) == (19_900, [])
    app.button(key="stop_training").click().run()


def test_another_task_chosen_in_the_instant_of_start_does_not_take_its_place():
    app = open_view(**tiny(steps=20_000))
    click_and_change_late(app, "start_training", app.selectbox(key="train_task"), "sort")
    assert app.selectbox(key="train_task").value == "sort"
    assert "Training goes on: Reverse" in going_on(app)[0]
    app.button(key="stop_training").click().run()
    assert not is_running(app)
    assert not going_on(app)


def test_another_task_is_shown_alone_while_one_is_trained():
    app = open_view(**tiny(steps=20_000))
    start(app)
    app.selectbox(key="train_task").set_value("sort").run()
    assert_healthy(app)
    assert app.text_input(key="train_text").value == "3141592653"
    assert "3141592653 →" in shown(app)
    assert "headlight" not in shown(app)
    assert "Recorded" in said(app)
    app.button(key="show_training").click().run()
    assert_healthy(app)
    assert app.selectbox(key="train_task").value == "reverse"
    assert app.number_input(key="train_steps").value == 20_000
    assert is_running(app)
    app.selectbox(key="train_task").set_value("sort").run()
    app.button(key="stop_training").click().run()
    app.run()
    assert not is_running(app)
    assert "Recorded" in said(app)


def test_the_model_of_a_moment_opens_in_the_step_view_and_the_training_is_kept():
    app = open_view(**tiny())
    start(app)
    wait_for_the_end(app)
    app.button(key="step_through_0").click().run()
    assert_healthy(app)
    assert link_of(app)["weights"] == "trained"
    assert app.segmented_control(key="view").value == "step"
    app.segmented_control(key="view").set_value("train").run()
    assert_healthy(app)
    assert f"Trained {STEPS} steps" in said(app)


@pytest.mark.parametrize(("typed", "opened"), [("abcd", "abcd"), ("1234", "headlight")])
def test_a_text_that_is_typed_right_before_its_model_is_opened_comes_with_it(typed, opened):
    app = open_view()
    app.text_input(key="train_text").set_value(typed)
    app.button(key="step_through_0").click().run()
    assert_healthy(app)
    assert (app.segmented_control(key="view").value, app.text_area(key="text").value) == ("step", opened)


# Refused.


def test_a_refused_recipe_gives_one_sentence_and_cannot_be_started():
    app = open_view()
    app.number_input(key="train_n_heads").set_value(5).run()
    assert not app.exception
    (error,) = app.error
    assert "n\\_heads" in error.value
    assert app.button(key="start_training").disabled
    assert "of held-out texts right" in shown(app)


def test_a_text_that_is_none_of_the_task_gives_one_sentence_and_the_example_is_asked():
    example = shown(open_view())
    app = open_view(text="cab")
    app.text_input(key="train_text").set_value("Hello, world").run()
    assert not app.exception
    (error,) = app.error
    assert "letters from a to z" in error.value
    assert "“headlight” is used meanwhile" in error.value
    assert shown(app) == example
    assert app.select_slider(key="train_moment")


def test_capitals_are_read_as_small_letters_and_it_is_said():
    app = open_view(text="ABC")
    assert_healthy(app)
    assert "“ABC” is read as “abc”" in said(app)
    assert "abc →" in shown(app)


# Laid open.


@pytest.mark.parametrize("task", RECIPES)
def test_the_loss_of_the_text_is_laid_open(task):
    app = open_view(task=task, step="0")
    assert_healthy(app)
    text = laid_open(app)
    assert "−log p" in text
    assert "&lt;pad&gt;" in text or task == "sort"  # whose example is as long as any text
    assert "final linear layer" in text
    assert "A training step takes one mean over all labels" in said(app)


def test_two_recipes_are_called_by_what_differs():
    one = RECIPES["reverse"]
    assert difference(one, replace(one, positions="none")) == ("With sinusoidal positions", "Without positions")
    assert difference(replace(one, n_heads=8), replace(one, n_heads=1)) == ("8 heads", "One head")
