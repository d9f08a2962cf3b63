"""A measurement in a thread of its own: how far it is, and what ends it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest

from visualizer.runs.promises import layers_passed
from visualizer.settings.settings import Settings
from visualizer.views.lab.measuring import duration
from visualizer.views.lab.measuring_job import UNWATCHED_SECONDS, MeasuringJob


def test_a_job_says_how_far_it_is_and_ends_when_it_is_done():
    reported, go_on = threading.Event(), threading.Event()

    def work(report):
        report(0.5)
        reported.set()
        go_on.wait()

    job = MeasuringJob("a", work)
    assert reported.wait(5)
    assert (job.subject, job.look(), job.is_running) == ("a", 0.5, True)
    go_on.set()
    job.stop()
    assert not job.is_running


def test_stopping_a_job_ends_its_work():
    def work(report):
        while True:
            report(0.1)

    job = MeasuringJob("a", work)
    job.stop()
    assert not job.is_running


def test_a_job_that_nobody_looks_at_ends():
    now = [0.0]

    def work(report):
        while True:
            report(0.1)

    job = MeasuringJob("a", work, clock=lambda: now[0])
    now[0] = UNWATCHED_SECONDS
    job.look()
    now[0] = 2 * UNWATCHED_SECONDS
    assert job.is_running
    now[0] += 1
    job._thread.join(5)
    assert not job.is_running


def test_a_job_tells_how_long_it_will_go_on_at_its_pace():
    now = [0.0]
    seen = []

    def work(report):
        for second, done in ((1.0, 0.1), (2.0, 0.2), (4.0, 0.6)):
            now[0] = second
            report(done)
            seen.append(started.result().seconds_left)

    started = Future()
    job = MeasuringJob("a", work, clock=lambda: now[0])
    started.set_result(job)
    job._thread.join(5)
    assert seen == [None, pytest.approx(8.0), pytest.approx(3 / 0.5 * 0.4)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 second"), (3.4, "3 seconds"), (38, "40 seconds"), (61, "60 seconds"), (131, "2 minutes")],
)
def test_a_duration_is_as_exact_as_an_estimate_deserves(seconds, text):
    assert duration(seconds) == text


def test_directions_pass_the_layers_that_lie_between_a_token_and_the_logits():
    deeper = Settings(architecture="encoder-decoder", n_layers=2, n_decoder_layers=5)
    assert [layers_passed(deeper, sequence) for sequence in ("source", "target")] == [7, 5]
    assert layers_passed(replace(deeper, architecture="decoder"), "source") == 2
