"""The trainings that a server remembers, and how several visitors share one."""

from __future__ import annotations

import time

import pytest

from model.learning.training import RECIPES, Recipe
from visualizer.views.train.job import Trainings
from visualizer.views.train.known_trainings import KnownTrainings, recorded_state, untrained_state
from visualizer.work.jobs import Seen
from visualizer.work.trainings import reports_in_turns

TINY = (Recipe("copy", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=6),)
OTHER = (Recipe("copy", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=6, seed=1),)
ENDLESS = (Recipe("copy", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=20_000),)
PATIENCE = 60.0


def ended(trainings: KnownTrainings, recipes: tuple[Recipe, ...]) -> Seen[Trainings]:
    job = trainings.start(recipes)
    deadline = time.monotonic() + PATIENCE
    while job.look().is_running:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return job.peek()


def test_what_is_running_is_found_by_its_recipe_and_started_once():
    trainings = KnownTrainings(trained=reports_in_turns)
    job = trainings.start(ENDLESS)
    assert trainings.running(ENDLESS) is job
    assert trainings.start(ENDLESS) is job
    assert trainings.running(TINY) is None
    job.stop()
    assert trainings.running(ENDLESS) is None
    assert trainings.finished(ENDLESS) is None
    assert trainings.interrupted(ENDLESS).phase == "stopped"


def test_what_was_finished_stays_while_it_is_trained_anew():
    trainings = KnownTrainings(trained=reports_in_turns)
    first = ended(trainings, TINY)
    assert trainings.finished(TINY) is first
    again = trainings.start(TINY)
    assert trainings.finished(TINY) is not None
    again.stop()
    assert trainings.finished(TINY).value[0].losses == first.value[0].losses


def test_a_training_that_ends_again_leaves_the_page_of_the_first_as_it_is():
    trainings = KnownTrainings(trained=reports_in_turns)
    first = ended(trainings, TINY)
    assert ended(trainings, TINY).seconds != first.seconds
    assert trainings.finished(TINY) is first


def test_the_oldest_is_forgotten_where_there_is_no_room():
    trainings = KnownTrainings(kept_bytes=0, trained=reports_in_turns)
    ended(trainings, TINY)
    ended(trainings, OTHER)
    assert trainings.finished(TINY) is None
    assert trainings.finished(OTHER) is not None


@pytest.mark.parametrize("task", ["reverse", "match_brackets"])
def test_a_recording_is_a_training_that_has_ended(task):
    state = recorded_state((RECIPES[task],))
    (training,) = state.value
    assert not state.is_running
    assert training.fraction == 1.0
    assert len(training.steps) == len(training.losses)
    assert len(training.matched) == len(training.matches)
    assert training.moments == training.snapshots


def test_before_the_first_step_there_are_random_weights():
    (training,) = untrained_state(TINY).value
    assert [moment.step for moment in training.moments] == [0]
    assert recorded_state(TINY) is None
