"""Train's part of the link, and what is known of trainings without torch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.learning.tasks import TASKS
from model.learning.training import EXPERIMENTS, HIGHEST_RATE, LIMITS, RECIPES
from tests.visualizer.settings.test_settings import parts_of
from visualizer.settings.trained_models import TRAINED_MODELS
from visualizer.settings.training_settings import (
    EXPERIMENT_TITLES,
    NUMBERS,
    OPENING,
    TRAINING,
    TrainingChoice,
    fitted_training,
    read_training,
    usual_choice,
    write_training,
)
from visualizer.views.train.plan import plan_of

modest = settings(derandomize=True, max_examples=60, deadline=None)
choices = parts_of(TrainingChoice).map(fitted_training)


def read(link: dict[str, str]) -> tuple[TrainingChoice, tuple[str, ...]]:
    return read_training({name: [value] for name, value in link.items()})


@modest
@given(choices)
def test_a_link_brings_everything_back(choice):
    assert read(write_training(choice)) == (choice, ())


def test_what_is_usual_needs_no_link():
    assert write_training(OPENING) == {}
    assert write_training(usual_choice("sort")) == {"train_task": "sort"}
    assert write_training(usual_choice("copy", "heads")) == {"train_experiment": "heads"}


@modest
@given(st.dictionaries(st.sampled_from(sorted(TRAINING)), st.text(max_size=12)))
def test_a_link_with_anything_in_it_gives_a_choice_that_can_be_written_again(link):
    choice, _ = read(link)
    assert read(write_training(choice)) == (choice, ())


@pytest.mark.parametrize(
    ("link", "name", "value", "notice"),
    [
        ({"train_task": "sorrt"}, "train_task", "sort", "train_task=sorrt is not one of"),
        ({"train_layer": "3"}, "train_layer", 0, "train_layer=3 does not fit the rest of the training: 0 is used."),
        (
            {"train_task": "match_brackets", "train_attention": "decoder.self_attention"},
            "train_attention",
            "encoder.self_attention",
            "train_attention=decoder.self_attention does not fit",
        ),
        ({"train_experiment": "heads", "train_task": "copy"}, "train_task", "add", "train_task=copy does not fit"),
        ({"train_steps": "-3"}, "train_steps", 1, "train_steps=-3 is not between 1 and 20,000"),
    ],
)
def test_a_value_that_does_not_fit_is_replaced_and_said(link, name, value, notice):
    choice, (sentence,) = read(link)
    assert getattr(choice, name) == value
    assert notice in sentence


@pytest.mark.parametrize("task", TASKS)
def test_the_usual_numbers_are_those_of_the_recipe(task):
    choice = usual_choice(task)
    assert plan_of(choice).recipes == (RECIPES[task],)
    assert {name: getattr(choice, f"train_{name}") for name in NUMBERS} == {
        name: getattr(RECIPES[task], name) for name in NUMBERS
    }
    assert choice.train_text == TASKS[task].example
    assert choice.train_layer == RECIPES[task].n_layers - 1


def test_the_experiments_are_known_without_torch():
    assert list(EXPERIMENT_TITLES) == list(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        known = EXPERIMENT_TITLES[name]
        assert (known.title, known.task) == (experiment.title, experiment.intact.task)
        assert plan_of(usual_choice("copy", name)).recipes == (experiment.intact, experiment.changed)


def test_the_bounds_are_those_of_a_recipe():
    for name in NUMBERS:
        field = TRAINING[f"train_{name}"]
        bounds = (field.least, field.most)
        assert bounds == ((0, HIGHEST_RATE) if name == "learning_rate" else LIMITS[name])


def test_it_opens_with_a_task_that_there_is():
    assert usual_choice("reverse") == OPENING
    assert set(TRAINING["train_task"].choices) == set(TRAINED_MODELS)


def test_an_experiment_has_numbers_of_its_own():
    choice = fitted_training(replace(usual_choice("reverse", "heads"), train_task="copy", train_steps=7))
    assert (choice.train_task, choice.train_steps) == ("add", RECIPES["add"].steps)
