"""A training that runs by itself: it reports, stops, keeps what there is, and is nobody else's business.

Most jobs here train in their thread: to start a process takes longer than what they train.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from model.learning.training import Recipe, milestones, train
from model.learning.worker import packed, reports_in_turns, reports_of_a_process, unpacked
from visualizer.views.train.job import UNWATCHED_SECONDS, JobState, Training, TrainingJob

TINY = Recipe("copy", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=30)
ENDLESS = Recipe("copy", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=20_000)
PATIENCE = 60.0


def begin(recipes: Sequence[Recipe], **choices: Any) -> TrainingJob:
    return TrainingJob(recipes, trained=reports_in_turns, **choices)


def wait_for(job: TrainingJob, condition: Callable[[JobState], bool]) -> JobState:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition(state := job.look()):
            return state
        time.sleep(0.01)
    pytest.fail("the job did not come to it")


def finished(job: TrainingJob) -> JobState:
    return wait_for(job, lambda state: not state.is_running)


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_it_trains_what_the_recipe_says_and_keeps_every_milestone():
    state = finished(begin([TINY]))
    reports = list(train(TINY))
    (training,) = state.trainings
    assert state.phase == "finished"
    assert state.fraction == training.fraction == 1.0
    assert state.seconds_left == 0.0
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
    state = wait_for(job, lambda state: len(state.trainings[0].steps) > 1)
    steps, fraction = state.trainings[0].steps, state.fraction
    wait_for(job, lambda later: later.fraction > fraction)
    job.stop()
    assert state.trainings[0].steps == steps
    assert state.fraction == fraction
    assert state.is_running


def test_a_stopped_job_keeps_what_there_is():
    job = begin([ENDLESS])
    wait_for(job, lambda state: len(state.trainings[0].steps) >= 3)
    state = job.stop()
    (training,) = state.trainings
    assert state.phase == "stopped"
    assert 0 < training.fraction < 1
    assert training.moments[-1] is training.latest
    assert training.latest.step == training.steps[-1]
    expected = next(report for report in train(ENDLESS) if report.step == training.latest.step)
    assert same(training.latest.weights, expected.weights)
    assert job.stop().trainings == state.trainings


def test_a_job_that_nobody_looks_at_stops():
    now = [0.0]
    job = begin([ENDLESS], clock=lambda: now[0])
    now[0] = UNWATCHED_SECONDS
    assert wait_for(job, lambda state: len(state.trainings[0].steps) > 1).is_running  # looked at in time
    now[0] = 2 * UNWATCHED_SECONDS + 1
    job._thread.join(PATIENCE)
    assert job.look().phase == "unwatched"
    assert job.look().seconds <= now[0]


def test_a_look_keeps_a_job_going():
    now = [0.0]
    job = begin([ENDLESS], clock=lambda: now[0])
    for _ in range(10):
        now[0] += 0.9 * UNWATCHED_SECONDS
        before = job.look().fraction
        assert wait_for(job, lambda state, before=before: state.fraction > before).is_running
    assert job.stop().phase == "stopped"


def test_two_recipes_advance_together_and_each_as_it_would_alone():
    recipes = [TINY, Recipe("sort", d_model=8, n_heads=1, d_ff=8, batch_size=4, steps=60)]
    job = begin(recipes)
    state = finished(job)
    for training, recipe in zip(state.trainings, recipes, strict=True):
        assert same(training.latest.weights, list(train(recipe))[-1].weights)


def test_the_time_left_is_in_proportion_to_what_is_left():
    training = Training(TINY)
    done = [replace(report, step=step) for report, step in zip(train(TINY), (0, 6, 15, 30), strict=False)]
    left = []
    for seconds, report in enumerate(done):
        training = training.after(report)
        left.append(JobState((training,), "running", float(seconds)).seconds_left)
    assert left == [None, pytest.approx(4.0), pytest.approx(2.0), pytest.approx(0.0)]


def test_two_recipes_take_turns():
    job = begin([ENDLESS, ENDLESS])
    wait_for(job, lambda state: len(state.trainings[0].steps) > 5)
    first, second = job.stop().trainings
    assert abs(len(first.steps) - len(second.steps)) <= 1


def test_jobs_at_the_same_time_give_bitwise_the_weights_of_each_alone():
    recipes = [TINY, Recipe("reverse", d_model=8, n_heads=2, d_ff=8, batch_size=4, steps=40)]
    jobs = [begin([recipe]) for recipe in recipes]
    for job, recipe in zip(jobs, recipes, strict=True):
        assert same(finished(job).trainings[0].latest.weights, list(train(recipe))[-1].weights)


def test_only_so_many_run_at_once():
    slots = threading.BoundedSemaphore(1)
    job = begin([ENDLESS], slots=slots)
    with pytest.raises(ValueError, match=r"^As many models .*: try again in a minute\.$"):
        begin([TINY], slots=slots)
    job.stop()
    assert finished(begin([TINY], slots=slots)).phase == "finished"
    finished(begin([TINY], slots=slots))


def test_a_failure_frees_the_place_of_the_job(monkeypatch):
    def broken(recipes):
        return reports_of_a_process(recipes, [sys.executable, "-c", "raise SystemExit(3)"])

    monkeypatch.setattr(threading, "excepthook", lambda _failure: None)  # which would print it
    slots = threading.BoundedSemaphore(1)
    assert finished(TrainingJob([TINY], slots=slots, trained=broken)).phase == "failed"
    assert finished(TrainingJob([TINY], slots=slots, trained=broken)).phase == "failed"


# In a process of its own.


def test_a_process_gives_bitwise_the_weights_and_the_curves_of_the_training():
    recipes = [TINY, Recipe("sort", d_model=8, n_heads=1, d_ff=8, batch_size=4, steps=60)]
    state = finished(TrainingJob(recipes))
    assert state.phase == "finished"
    for training, recipe in zip(state.trainings, recipes, strict=True):
        reports = list(train(recipe))
        assert training.losses == tuple(report.loss for report in reports)
        assert training.matched == milestones(recipe.steps)
        kept = [report for report in reports if report.exact_match is not None]
        for snapshot, report in zip(training.snapshots, kept, strict=True):
            assert snapshot.exact_match == report.exact_match
            assert same(snapshot.weights, report.weights)


def test_a_process_ends_when_it_is_stopped(monkeypatch):
    processes = []

    class Noted(subprocess.Popen):
        def __init__(self, *arguments, **choices):
            super().__init__(*arguments, **choices)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    job = TrainingJob([ENDLESS])
    wait_for(job, lambda state: len(state.trainings[0].steps) >= 3)
    assert job.stop().phase == "stopped"
    job._thread.join(PATIENCE)
    (process,) = processes
    assert process.poll() is not None
    (training,) = job.peek().trainings
    expected = next(report for report in train(ENDLESS) if report.step == training.latest.step)
    assert same(training.latest.weights, expected.weights)


def test_what_a_process_writes_is_what_is_read():
    first, second = itertools.islice(train(TINY), 2)
    index, (one, other) = unpacked(packed(1, [first, second]))
    assert index == 1
    assert (one.step, one.loss, one.exact_match, one.weights) == (first.step, first.loss, first.exact_match, {})
    assert (other.step, other.loss, other.exact_match) == (second.step, second.loss, second.exact_match)
    assert same(other.weights, second.weights)
