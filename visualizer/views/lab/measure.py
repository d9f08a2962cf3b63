"""The influence of tokens on outputs, measured at once or in the background, for the parts that show it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.runs.promises import AT_ONCE, Measurement, effort, layers_passed
from visualizer.runs.run import Subject
from visualizer.views.lab.case import Case
from visualizer.views.lab.kept import Measured, estimated_seconds, measure_and_keep, measurement
from visualizer.work import background
from visualizer.work.jobs import duration

say = texts_of(__name__)


def measurement_of(case: Case, sequence: SequenceName) -> Measurement | None:
    """The measurement of a case: at once where that is quick, else when it is asked for; None before."""
    subject = Subject(replace(case.run.settings, dropout=0.0), case.run.item)
    measured = Measured(subject, sequence, of_encoder=case.of_encoder)
    if found := measurement(measured):
        return found
    n_tokens = len(case.run.tokens[sequence])
    if effort(subject.settings, n_tokens) <= AT_ONCE:
        return background.at_once(partial(measure_and_keep, measured), say("doing"))
    _say_how_long(measured, n_tokens)
    background.offer(
        "measuring",
        measured,
        say("measure"),
        lambda report: measure_and_keep(measured, partial(report, say("doing"))),
    )
    return None


def _say_how_long(measured: Measured, n_tokens: int) -> None:
    """Say how much there is to do."""
    settings = measured.subject.settings
    st.caption(
        say(
            "how_long",
            n_directions=n_tokens * settings.d_model,
            n_tokens=n_tokens,
            d_model=settings.d_model,
            n_layers=layers_passed(settings, measured.sequence, of_encoder=measured.of_encoder),
            time=duration(estimated_seconds(measured)),
        )
    )
