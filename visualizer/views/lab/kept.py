"""The measurements, kept for all sessions: a measurement takes seconds or minutes and follows from its run."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

import streamlit as st

from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.runs.promises import Measurement, estimate, measure
from visualizer.runs.run import Run, Subject
from visualizer.work.cache import Kept, cached_run

say = texts_of(__name__)


class Measured(NamedTuple):
    """The quantity that is measured.

    Attributes:
        subject: a sequence of a run, or one pair.
        sequence: whose embeddings the outputs are differentiated by.
        of_encoder: whether the outputs are those of the encoder beside a decoder.
    """

    subject: Subject
    sequence: SequenceName
    of_encoder: bool = False


_MEASUREMENTS: Kept[Measured, Measurement] = Kept(room=16)
_SECONDS: Kept[Measured, float] = Kept(room=64)

_timing = Lock()
"""One after the other: side by side each would time the others too, and take as much memory."""


def measurement(measured: Measured) -> Measurement | None:
    """A finished measurement; None before there is one."""
    return _MEASUREMENTS.get(measured)


def measure_and_keep(measured: Measured, progress: Callable[[float], None]) -> Measurement:
    """Measure, telling the fraction done meanwhile, and keep what was found."""
    found = measure(_run_of(measured), measured.sequence, progress, of_encoder=measured.of_encoder)
    return _MEASUREMENTS.keep(measured, found)


def estimated_seconds(measured: Measured) -> float:
    """Estimate the time of a measurement on this machine, timed once."""
    timed = _SECONDS.get(measured)
    if timed is not None:
        return timed
    with st.spinner(say("timing")), _timing:
        seconds = estimate(_run_of(measured), measured.sequence, of_encoder=measured.of_encoder)
        return _SECONDS.keep(measured, seconds)


def _run_of(measured: Measured) -> Run:
    subject = measured.subject
    return cached_run(subject.settings).at(subject.item).alone()
