"""What was measured, kept for all sessions: a measurement takes seconds or minutes and follows from its run."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from visualizer.components.axis import SequenceName
from visualizer.runs.promises import Measurement, estimate, measure
from visualizer.runs.run import Run, Subject
from visualizer.session.cache import Kept, cached_run

Measured = tuple[Subject, SequenceName]
"""A sequence of a run, or one pair, and the sequence whose embeddings the outputs are differentiated by."""

_MEASUREMENTS: Kept[Measured, Measurement] = Kept(room=16)
_SECONDS: Kept[Measured, float] = Kept(room=64)


def measurement(measured: Measured) -> Measurement | None:
    """A finished measurement; None before there is one."""
    return _MEASUREMENTS.get(measured)


def measure_and_keep(measured: Measured, progress: Callable[[float], None]) -> Measurement:
    """Measure, telling the fraction done meanwhile, and keep what was found."""
    return _MEASUREMENTS.keep(measured, measure(_run_of(measured), measured[1], progress))


def estimated_seconds(measured: Measured) -> float:
    """How long a measurement will take on this machine, timed once."""
    timed = _SECONDS.get(measured)
    if timed is not None:
        return timed
    with st.spinner("Timing the first derivatives …"):
        return _SECONDS.keep(measured, estimate(_run_of(measured), measured[1]))


def _run_of(measured: Measured) -> Run:
    subject = measured[0]
    return cached_run(subject.settings).at(subject.item).alone()
