"""A training that runs by itself: it reports, stops, keeps what there is, and is nobody else's business.

Most jobs here train in their thread: to start a process takes longer than what they train.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue

import pytest
import torch

from model.learning.training import Recipe, milestones, train
from visualizer.views.train.job import Trainings, start_job
from visualizer.work.jobs import Job, Seen
from visualizer.work.trainings import packed, reports_in_turns, reports_of_a_process, unpacked

TINY = Recipe("copy", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=30)
ENDLESS = Recipe("copy", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=20_000)
PATIENCE = 60.0


def begin(recipes: Sequence[Recipe]) -> Job[Trainings]:
    return start_job(recipes, reports_in_turns)


def wait_for(job: Job[Trainings], condition: Callable[[Seen[Trainings]], bool]) -> Seen[Trainings]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition(state := job.look()):
            return state
        time.sleep(0.01)
    pytest.fail("the job did not come to it")


def finished(job: Job[Trainings]) -> Seen[Trainings]:
    return wait_for(job, lambda state: not state.is_running)


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_it_trains_what_the_recipe_says_and_keeps_every_milestone():
    state = finished(begin([TINY]))
    reports = list(train(TINY))
    (training,) = state.value
    assert state.phase == "finished"
    assert state.fraction == training.fraction == 1.0
    assert state.seconds_left is None
    assert training.steps == tuple(report.step for report in reports)
    assert training.losses == tuple(report.loss for report in reports)
    assert tuple(snapshot.step for snapshot in training.snapshots) == milestones(TINY.steps)
    kept = [report for report in reports if report.exact_match is not None]
    for snapshot, report in zip(training.snapshots, kept, strict=True):
        assert snapshot.exact_match == report.exact_match
        assert same(snapshot.weights, report.weights)
    assert training.moments == training.snapshots


def test_what_was_looked_at_never_changes():
    job = begin([ENDLESS])
    state = wait_for(job, lambda state: len(state.value[0].steps) > 1)
    steps, fraction = state.value[0].steps, state.fraction
    wait_for(job, lambda later: later.fraction > fraction)
    job.stop()
    assert state.value[0].steps == steps
    assert state.fraction == fraction
    assert state.is_running


def test_a_stopped_job_keeps_what_there_is():
    job = begin([ENDLESS])
    wait_for(job, lambda state: len(state.value[0].steps) >= 3)
    state = job.stop()
    (training,) = state.value
    assert state.phase == "stopped"
    assert 0 < training.fraction < 1
    assert training.moments[-1] is training.latest
    assert training.latest.step == training.steps[-1]
    expected = next(report for report in train(ENDLESS) if report.step == training.latest.step)
    assert same(training.latest.weights, expected.weights)
    assert job.stop().value == state.value


def test_two_recipes_advance_together_and_each_as_it_would_alone():
    recipes = [TINY, Recipe("sort", d_model=8, n_heads=1, d_ff=8, batch_size=4, steps=60)]
    job = begin(recipes)
    state = finished(job)
    for training, recipe in zip(state.value, recipes, strict=True):
        assert same(training.latest.weights, list(train(recipe))[-1].weights)


def test_two_recipes_take_turns():
    job = begin([ENDLESS, ENDLESS])
    wait_for(job, lambda state: len(state.value[0].steps) > 5)
    first, second = job.stop().value
    assert abs(len(first.steps) - len(second.steps)) <= 1


def test_jobs_at_the_same_time_give_bitwise_the_weights_of_each_alone():
    recipes = [TINY, Recipe("reverse", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=40)]
    jobs = [begin([recipe]) for recipe in recipes]
    for job, recipe in zip(jobs, recipes, strict=True):
        assert same(finished(job).value[0].latest.weights, list(train(recipe))[-1].weights)


def test_a_process_that_fails_is_a_sentence():
    broken = partial(reports_of_a_process, command=[sys.executable, "-c", "raise SystemExit(3)"])
    for n_recipes in (1, 500):  # of which no pipe holds so many: the process is gone before it has read them
        state = finished(start_job([TINY] * n_recipes, broken))
        assert (state.phase, state.failure) == ("failed", "the process ended with exit code 3")


# In a process of its own.


THE_WORKER = """
import sys
from visualizer.work.trainings import main
from headlight.process import work
work(main)
sys.exit("torch._dynamo" in sys.modules)
"""
"""Trains as the program does, and fails where it has loaded what takes a second and trains nothing."""


def test_a_process_gives_bitwise_the_weights_and_the_curves_of_the_training_and_loads_no_compiler():
    recipes = [TINY, Recipe("sort", d_model=8, n_heads=1, d_ff=8, batch_size=4, steps=60)]
    state = finished(start_job(recipes, partial(reports_of_a_process, command=[sys.executable, "-c", THE_WORKER])))
    assert state.phase == "finished", state.failure
    for training, recipe in zip(state.value, recipes, strict=True):
        reports = list(train(recipe))
        assert training.losses == tuple(report.loss for report in reports)
        assert training.matched == milestones(recipe.steps)
        kept = [report for report in reports if report.exact_match is not None]
        for snapshot, report in zip(training.snapshots, kept, strict=True):
            assert snapshot.exact_match == report.exact_match
            assert same(snapshot.weights, report.weights)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> SimpleQueue[subprocess.Popen[bytes]]:
    """Those that are started."""
    started: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    class Noted(subprocess.Popen):
        def __init__(self, *arguments, **choices):
            super().__init__(*arguments, **choices)
            started.put(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    return started


def test_a_process_ends_that_is_stopped_before_it_has_reported_anything(processes):
    silent = [sys.executable, "-c", "import time; time.sleep(600)"]
    job = start_job([TINY], partial(reports_of_a_process, command=silent))
    process = processes.get(timeout=PATIENCE)
    job.stop()
    job._thread.join(PATIENCE)
    assert not job._thread.is_alive()
    assert process.poll() is not None
    assert (job.peek().phase, job.peek().failure) == ("stopped", "")


def test_a_process_ends_when_it_is_stopped(processes):
    job = start_job([ENDLESS])
    wait_for(job, lambda state: len(state.value[0].steps) >= 3)
    assert job.stop().phase == "stopped"
    job._thread.join(PATIENCE)
    assert processes.get(timeout=PATIENCE).poll() is not None
    (training,) = job.peek().value
    expected = next(report for report in train(ENDLESS) if report.step == training.latest.step)
    assert same(training.latest.weights, expected.weights)


def test_what_a_process_writes_is_what_is_read():
    first, second = itertools.islice(train(TINY), 2)
    index, (one, other) = unpacked(packed(1, [first, second]))
    assert index == 1
    assert (one.step, one.loss, one.exact_match, one.weights) == (first.step, first.loss, first.exact_match, {})
    assert (other.step, other.loss, other.exact_match) == (second.step, second.loss, second.exact_match)
    assert same(other.weights, second.weights)
