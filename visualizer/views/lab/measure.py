"""The influence of tokens on outputs, measured at once or in the background, for the parts that show it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from visualizer.components.axis import SequenceName
from visualizer.runs.promises import AT_ONCE, Measurement, effort, layers_passed
from visualizer.runs.run import Subject
from visualizer.session import background
from visualizer.session.jobs import duration
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
    if background.running(_JOB, measured) is None:
        _say_how_long(measured, n_tokens)
    background.offer(_JOB, measured, "Measure", lambda progress: measure_and_keep(measured, progress), _SAID)
    return None


def _say_how_long(measured: Measured, n_tokens: int) -> None:
    """Say how much there is to do."""
    settings = measured.subject.settings
    n_layers = layers_passed(settings, measured.sequence, of_encoder=measured.of_encoder)
    n_directions = n_tokens * settings.d_model
    st.caption(
        f"To measure it, {n_directions:,} directions ({n_tokens} tokens × {settings.d_model} numbers) go "
        f"through {n_layers} layers. By the first of them, timed here, that takes "
        f"about {duration(estimated_seconds(measured))}; it can be stopped."
    )
