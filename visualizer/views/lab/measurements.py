"""What was measured, kept for all sessions: a measurement takes seconds or minutes and follows from its run."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from visualizer.components.axis import SequenceName
from visualizer.runs.promises import Measurement, estimate, measure
from visualizer.runs.run import Run, Subject
from visualizer.session.cache import Kept, cached_run

_MEASUREMENTS: Kept[tuple[Subject, SequenceName], Measurement] = Kept(room=16)
_SECONDS: Kept[tuple[Subject, SequenceName], float] = Kept(room=64)


def cached_measurement(subject: Subject, sequence: SequenceName) -> Measurement | None:
    """A finished measurement of one sequence of a run, or one pair; None before there is one."""
    return _MEASUREMENTS.get((subject, sequence))


def measured(subject: Subject, sequence: SequenceName, progress: Callable[[float], None]) -> Measurement:
    """Measure, telling the fraction done meanwhile, and keep what was found."""
    return _MEASUREMENTS.keep((subject, sequence), measure(_run_of(subject), sequence, progress))


def estimated_seconds(subject: Subject, sequence: SequenceName) -> float:
    """How long a measurement will take on this machine, timed once."""
    timed = _SECONDS.get((subject, sequence))
    if timed is not None:
        return timed
    with st.spinner("Timing the first derivatives …"):
        return _SECONDS.keep((subject, sequence), estimate(_run_of(subject), sequence))


def _run_of(subject: Subject) -> Run:
    return cached_run(subject.settings).at(subject.item).alone()
