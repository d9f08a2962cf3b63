"""The measured influence of tokens on outputs, with its progress, for the parts that show it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from visualizer.components.axis import SequenceName
from visualizer.runs.promises import AT_ONCE, Measurement, effort, layers_passed
from visualizer.runs.run import Subject
from visualizer.session import state
from visualizer.views.lab.case import Case
from visualizer.views.lab.measurements import cached_measurement, estimated_seconds, measured
from visualizer.views.lab.measuring_job import MeasuringJob

EVERY_SECONDS = 0.5
"""How often the progress of a long measurement is drawn again."""

_JOB = "measuring"


def measurement_of(case: Case, sequence: SequenceName) -> Measurement | None:
    """The measurement of a case: at once where that is quick, else when it is asked for; None before."""
    subject = Subject(replace(case.run.settings, dropout=0.0), case.run.item)
    if found := cached_measurement(subject, sequence):
        return found
    n_tokens = len(case.run.tokens[sequence])
    if effort(subject.settings, n_tokens) <= AT_ONCE:
        return _at_once(subject, sequence)
    job = _job()
    if job is not None and job.is_running and job.subject == (subject, sequence):
        st.fragment(_watch, run_every=EVERY_SECONDS)(job)
    else:
        _offer(subject, sequence, n_tokens)
    return None


def _at_once(subject: Subject, sequence: SequenceName) -> Measurement:
    bar = st.progress(0.0, text=_text(0.0))

    def show(done: float) -> None:
        bar.progress(done, text=_text(done))

    found = measured(subject, sequence, show)
    bar.empty()
    return found


def _text(done: float, left: float | None = None) -> str:
    remaining = "" if left is None else f", about {duration(left)} left"
    return f"Differentiating every output by every embedding … {done:.0%}{remaining}"


def duration(seconds: float) -> str:
    """``3 seconds``, ``40 seconds``, ``2 minutes``: as exactly as an estimate deserves."""
    if seconds < 10:
        number = max(1, round(seconds))
    elif seconds < 90:
        number = 5 * round(seconds / 5)
    else:
        return f"{round(seconds / 60)} minutes"
    return f"{number} second{'s' if number > 1 else ''}"


def _offer(subject: Subject, sequence: SequenceName, n_tokens: int) -> None:
    """Say how much there is to do, and begin when that is wanted."""
    settings = subject.settings
    n_directions = n_tokens * settings.d_model
    st.caption(
        f"To measure it, {n_directions:,} directions ({n_tokens} tokens × {settings.d_model} numbers) go through "
        f"{layers_passed(settings, sequence)} layers. By the first of them, timed here, that takes about "
        f"{duration(estimated_seconds(subject, sequence))}; it can be stopped."
    )

    def begin() -> None:
        if (before := _job()) is not None:
            before.stop()
        job = MeasuringJob((subject, sequence), lambda report: measured(subject, sequence, report))
        state.put_by(_JOB, job)

    st.button("Measure", icon=":material/science:", key="measure", on_click=begin)


def _watch(job: MeasuringJob) -> None:
    """How far a measurement is, and the way to end it."""
    if not job.is_running:
        st.rerun()  # to be drawn without the clock, and with what was found
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        done = job.look()
        st.progress(done, text=_text(done, job.seconds_left))
        st.button("Stop", icon=":material/stop:", key="stop_measuring", on_click=job.stop, width="content")


def _job() -> MeasuringJob | None:
    """The measurement that was begun last in this session."""
    job = state.put_by_before(_JOB)
    return job if isinstance(job, MeasuringJob) else None
