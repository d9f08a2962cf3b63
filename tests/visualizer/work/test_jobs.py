"""A job in the background: how far it is, what ends it, and what is seen of it."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from visualizer.work import jobs
from visualizer.work.jobs import LEFT_SECONDS, UNWATCHED_SECONDS, Job, Jobs, duration


def endless(report):
    while True:
        report("some", 0.1)


def begin(work, **choices):
    return Job("none", work, slots=threading.Semaphore(1), **choices)


def ended(job):
    job._thread.join(5)
    return job.peek()


def test_a_job_says_how_far_it_is_and_ends_when_it_is_done():
    reported, go_on = threading.Event(), threading.Event()

    def work(report):
        report("half", 0.5)
        reported.set()
        go_on.wait()
        report("all", 1.0)

    job = begin(work)
    assert reported.wait(5)
    half = job.look()
    assert (half.value, half.fraction, half.is_running) == ("half", 0.5, True)
    go_on.set()
    assert (ended(job).value, ended(job).phase) == ("all", "finished")
    assert (half.value, half.phase) == ("half", "running")


def test_a_stopped_job_ends_and_keeps_what_there_is():
    job = begin(endless)
    while job.look().value == "none":
        pass
    assert (job.stop().phase, ended(job).value) == ("stopped", "some")
    assert not job._thread.is_alive()


def test_a_job_that_nobody_looks_at_ends():
    now = [0.0]
    job = begin(endless, clock=lambda: now[0])
    now[0] = UNWATCHED_SECONDS
    job.look()
    now[0] = 2 * UNWATCHED_SECONDS
    assert job.peek().is_running
    now[0] += 1
    assert ended(job).phase == "unwatched"


def test_a_job_goes_on_until_the_last_who_looks_leaves():
    job = begin(endless)
    job.look("one")
    job.look("other")
    assert job.leave("one").is_running
    assert job.leave("other").phase == "stopped"


def test_who_left_by_a_reload_does_not_keep_a_job_that_is_stopped_after_it():
    now = [0.0]
    job = begin(endless, clock=lambda: now[0])
    job.look("before the reload")
    job.look("after it")
    assert job.leave("after it").is_running
    now[0] = LEFT_SECONDS + 0.1
    assert ended(job).phase == "unwatched"


def test_who_has_no_page_any_more_does_not_keep_a_job(monkeypatch):
    monkeypatch.setattr(jobs, "has_page", lambda name: name == "open")
    job = begin(endless)
    for name in ("open", "before the reload", "after it"):
        job.look(name)
    assert job.leave("after it").is_running
    assert job.leave("open").phase == "stopped"
    assert ended(job).phase == "stopped"


def test_what_fails_once_it_is_stopped_is_stopped():
    stopped = threading.Event()

    def cut_off(_report):
        assert stopped.wait(60)
        raise RuntimeError("the line was cut")

    job = begin(cut_off)
    threading.Timer(0, lambda: (job.stop(), stopped.set())).start()
    while job.peek().is_running:
        pass
    stopped.wait(60)
    assert (ended(job).phase, ended(job).failure) == ("stopped", "")


def test_a_job_tells_how_long_it_will_go_on_at_its_pace_once_there_is_one():
    now = [0.0]
    seen = []

    def work(report):
        for second, done in ((1.0, 0.1), (1.1, 0.11), (2.0, 0.2), (4.0, 0.6), (6.0, 1.0)):
            now[0] = second
            report("some", done)
            seen.append(started.result().look().seconds_left)

    started = Future()
    job = begin(work, clock=lambda: now[0])
    started.set_result(job)
    assert ended(job).seconds == 5.0
    assert seen == [None, None, pytest.approx(8.0), pytest.approx(3 / 0.5 * 0.4), 0.0]


def test_the_time_left_never_grows_whatever_the_pace():
    now = [0.0]
    seen = []

    def work(report):
        for second, done in ((0.0, 0.0), (8.0, 0.5), (20.0, 0.52), (30.0, 0.9), (31.0, 0.95), (32.0, 1.0)):
            now[0] = second
            report("some", done)
            seen.append(started.result().look().seconds_left)
            now[0] = second + 0.5
            seen.append(started.result().look().seconds_left)

    started = Future()
    job = begin(work, clock=lambda: now[0], stops_unwatched=False)
    started.set_result(job)
    assert ended(job).seconds == 32.5
    assert seen[:4] == [None, None, 8.0, 7.5], "it falls between two reports too"
    assert seen[4:6] == [None, None], "longer than was foreseen"
    told = [left for left in seen if left is not None]
    assert told == sorted(told, reverse=True)


def test_a_job_that_no_closed_page_stops_ends_when_it_is_left():
    now = [0.0]
    job = begin(endless, clock=lambda: now[0], stops_unwatched=False)
    job.look("a page")
    now[0] = 100 * UNWATCHED_SECONDS
    job._report("later", 0.2)
    assert job.look("the page again").is_running
    assert job.leave("a page").is_running
    assert job.leave("the page again").phase == "stopped"


def test_a_failure_is_one_sentence_and_frees_the_place_of_the_job():
    def broken(report):
        raise RuntimeError("the process ended with 3")

    slots = threading.BoundedSemaphore(1)
    for _ in range(2):
        seen = ended(Job("none", broken, slots=slots))
        assert (seen.phase, seen.failure) == ("failed", "the process ended with 3")


def test_only_so_many_run_at_once():
    slots = threading.BoundedSemaphore(1)
    job = Job("none", endless, slots=slots)
    with pytest.raises(ValueError, match=r"^As much as this server has room for .*: try again in a minute\.$"):
        Job("none", endless, slots=slots)
    job.stop()
    assert ended(job).phase == "stopped"
    assert ended(Job("none", lambda report: None, slots=slots)).phase == "finished"


def test_what_a_job_came_to_is_kept_before_anybody_sees_that_it_has_ended():
    kept = []
    job = begin(lambda report: report("all", 1.0), keep=kept.append)
    while job.peek().is_running:
        pass
    assert [(seen.value, seen.phase) for seen in kept] == [("all", "finished")]


def test_what_a_stopped_job_came_to_is_kept_though_its_work_goes_on_for_a_moment(monkeypatch):
    monkeypatch.setattr(jobs, "_PATIENCE", 0)
    kept, has_reported, may_end = [], threading.Event(), threading.Event()

    def work(report):
        report("some", 0.5)
        has_reported.set()
        may_end.wait(60)

    job = begin(work, keep=kept.append)
    assert has_reported.wait(60)
    assert job.stop().phase == "stopped"
    assert [(seen.value, seen.phase) for seen in kept] == [("some", "stopped")]
    may_end.set()
    ended(job)


def test_of_many_jobs_the_newest_are_known_and_one_that_runs_is_shared():
    known = Jobs[str](room=2)
    started = [known.start(subject, lambda: begin(endless)) for subject in "abc"]
    assert known.of("a") is None
    assert known.start("c", lambda: begin(endless)) is known.of("c") is started[2]
    for job in started:
        job.stop()
    assert known.start("c", lambda: begin(lambda report: None)) is not started[2]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 second"), (3.4, "3 seconds"), (38, "40 seconds"), (61, "60 seconds"), (131, "2 minutes")],
)
def test_a_duration_is_as_exact_as_an_estimate_deserves(seconds, text):
    assert duration(seconds) == text
