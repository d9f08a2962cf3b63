"""The influence of tokens on outputs, measured at once or in the background, for the parts that show it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from visualizer.components.axis import SequenceName
from visualizer.runs.promises import AT_ONCE, Measurement, effort, layers_passed
from visualizer.runs.run import Subject
from visualizer.safe_text import markdown_safe
from visualizer.session import background
from visualizer.session.jobs import Job, duration
from visualizer.views.lab.case import Case
from visualizer.views.lab.kept import Measured, estimated_seconds, measure_and_keep, measurement

_JOB = "measuring"
_SAID = "Differentiating every output by every embedding …"


def measurement_of(case: Case, sequence: SequenceName) -> Measurement | None:
    """The measurement of a case: at once where that is quick, else when it is asked for; None before."""
    subject = Subject(replace(case.run.settings, dropout=0.0), case.run.item)
    measured = Measured(subject, sequence, of_encoder=case.of_encoder)
    if found := measurement(measured):
        return found
    n_tokens = len(case.run.tokens[sequence])
    if effort(subject.settings, n_tokens) <= AT_ONCE:
        return background.at_once(lambda progress: measure_and_keep(measured, progress), _SAID)
    job = background.last(_JOB)
    if job is None or job.subject != measured or not job.peek().is_running:
        job = _offer(measured, n_tokens)
    if job is not None:
        background.show(_JOB, job, lambda seen: background.how_far(_SAID, seen.fraction, seen.seconds_left))
    return None


def _offer(measured: Measured, n_tokens: int) -> Job[None] | None:
    """Say how much there is to do, and begin when that is wanted; None before."""
    place, settings = st.empty(), measured.subject.settings
    n_layers = layers_passed(settings, measured.sequence, of_encoder=measured.of_encoder)
    n_directions = n_tokens * settings.d_model
    with place.container():
        if (
            (last := background.last(_JOB)) is not None
            and last.subject == measured
            and last.peek().phase == "failed"
        ):
            st.error(f"The measurement failed: {markdown_safe(last.peek().failure)}.", icon=":material/error:")
        st.caption(
            f"To measure it, {n_directions:,} directions ({n_tokens} tokens × {settings.d_model} numbers) go "
            f"through {n_layers} layers. By the first of them, timed here, that takes "
            f"about {duration(estimated_seconds(measured))}; it can be stopped."
        )
        if not st.button("Measure", icon=":material/science:", key="measure"):
            return None
    job = background.begin(_JOB, measured, lambda progress: measure_and_keep(measured, progress))
    if job is not None:
        place.empty()
    return job
