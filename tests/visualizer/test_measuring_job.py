"""A measurement in a thread of its own: how far it is, and what ends it."""

from __future__ import annotations

import threading

from visualizer.lab.measuring_job import UNWATCHED_SECONDS, MeasuringJob


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
