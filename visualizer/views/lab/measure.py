"""The influence of tokens on outputs, measured at once or in the background, for the parts that show it.

What was measured is kept for all sessions: it takes seconds or minutes, and follows from the run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import streamlit as st

from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.runs.promises import AT_ONCE, Measurement, effort, measure
from visualizer.runs.run import Run, Subject
from visualizer.views.lab.case import Case
from visualizer.work import background
from visualizer.work.cache import Cache, cached_run

say = texts_of(__name__)


class _Measured(NamedTuple):
    """The quantity that is measured.

    Attributes:
        subject: a sequence of a run, or one pair.
        sequence: whose embeddings the outputs are differentiated by.
        of_encoder: whether the outputs are those of the encoder beside a decoder.
    """

    subject: Subject
    sequence: SequenceName
    of_encoder: bool

    @property
    def run(self) -> Run:
        return cached_run(self.subject.settings).at(self.subject.item).alone()


_MEASUREMENTS: Cache[Hashable, Measurement] = Cache(room=16)


def measurement_of(case: Case, sequence: SequenceName) -> Measurement | None:
    """The measurement of a case of a model that was built here; None before it is made."""
    subject = Subject(replace(case.run.settings, dropout=0.0), case.run.item)
    measured = _Measured(subject, sequence, case.of_encoder)
    n_tokens, d_model = len(case.run.tokens[sequence]), subject.settings.d_model
    return made(
        measured,
        lambda progress: measure(measured.run, sequence, progress, of_encoder=measured.of_encoder),
        is_quick=effort(subject.settings, n_tokens) <= AT_ONCE,
        how_much=say("how_much", n_directions=n_tokens * d_model, n_tokens=n_tokens, d_model=d_model),
    )


def made(
    key: Hashable,
    work: Callable[[Callable[[float], None]], Measurement],
    *,
    is_quick: bool,
    how_much: str,
) -> Measurement | None:
    """Return a measurement: at once where that is quick, else when it is asked for; None before.

    Args:
        key: what it is of.
        work: makes it, telling the fraction done.
        is_quick: whether nobody has to ask for it.
        how_much: a sentence on how much there is to do.
    """
    if (found := _MEASUREMENTS.get(key)) is not None:
        return found

    def make(progress: Callable[[float], None]) -> Measurement:
        return _MEASUREMENTS.put(key, work(progress))

    if is_quick:
        return background.at_once(make, say("doing"))
    st.caption(how_much)
    background.offer("measuring", key, say("measure"), lambda report: make(partial(report, say("doing"))))
    return None
