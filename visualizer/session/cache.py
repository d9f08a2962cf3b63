"""The only caches: finished runs and measurements, shared by all sessions and never changed."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable

import streamlit as st
import torch

from model.decoding import BeamTree
from visualizer.components.axis import SequenceName
from visualizer.runs.compute import compute_run
from visualizer.runs.limits import estimate_run
from visualizer.runs.promises import Measurement, estimate, measure
from visualizer.runs.run import Run, Subject
from visualizer.runs.writer import Writer
from visualizer.runs.writing import Beam, OneByOne, Written, search
from visualizer.settings.settings import Settings

SMALL_RUN = 64 * 2**20
"""Bytes up to which a run is worth keeping in numbers."""


def cached_run(settings: Settings) -> Run:
    """The run of these settings, computed once.

    Raises:
        ValueError: as ``compute_run``.
    """
    prepare_process()
    return _small_run(settings) if estimate_run(settings) <= SMALL_RUN else _large_run(settings)


MEASUREMENTS = 16
"""How many measurements are kept."""


def cached_measurement(subject: Subject, sequence: SequenceName) -> Measurement | None:
    """A finished measurement of one sequence of a run, or one pair; None before there is one."""
    return _measurements().get((subject, sequence))


def measured(subject: Subject, sequence: SequenceName, progress: Callable[[float], None]) -> Measurement:
    """Measure, and keep what was found.

    Not a function with a cache around it: it draws its progress while it runs.
    """
    measurement = measure(cached_run(subject.settings).at(subject.item).alone(), sequence, progress)
    kept = _measurements()
    kept[subject, sequence] = measurement
    while len(kept) > MEASUREMENTS:
        kept.popitem(last=False)
    return measurement


@st.cache_resource(max_entries=64, show_spinner="Timing the first derivatives …")
def estimated_seconds(subject: Subject, sequence: SequenceName) -> float:
    """How long a measurement will take on this machine, timed once."""
    return estimate(cached_run(subject.settings).at(subject.item).alone(), sequence)


@st.cache_resource(show_spinner=False)
def _measurements() -> OrderedDict[tuple[Subject, SequenceName], Measurement]:
    return OrderedDict()


WRITTEN_BYTES = 128 * 2**20
"""The most memory that what was written may take together; the newest is always kept."""


def kept_writing(subject: Subject, how: OneByOne) -> Written | None:
    """What a model has written after one sequence of a run; None where it has not, or too long ago."""
    return _writings().get((subject, how))


def keep_writing(subject: Subject, how: OneByOne, written: Written) -> None:
    """Keep what a model has written, so that going back to it computes nothing."""
    kept = _writings()
    kept[subject, how] = written
    while len(kept) > 1 and sum(each.n_bytes for each in list(kept.values())) > WRITTEN_BYTES:
        kept.popitem(last=False)


@st.cache_resource(max_entries=32, show_spinner=False)
def cached_search(subject: Subject, how: Beam, _writer: Writer) -> BeamTree:
    """The tree of a beam search by the writer of one sequence of a run."""
    return search(_writer, how)


@st.cache_resource(show_spinner=False)
def _writings() -> OrderedDict[tuple[Subject, OneByOne], Written]:
    return OrderedDict()


@st.cache_resource(max_entries=24, show_spinner=False)
def _small_run(settings: Settings) -> Run:
    return compute_run(settings)


@st.cache_resource(max_entries=2, show_spinner="Computing every stage …")
def _large_run(settings: Settings) -> Run:
    return compute_run(settings)


@st.cache_resource(show_spinner=False)
def prepare_process() -> None:
    """Set up what is global to the process, once, after the imports.

    One thread per run: the operations are small, and threads that wait for each other on a core that the browser or
    another session also uses take ten times as long as one alone.

    Streamlit collects garbage after every run of the script; what the imports made is left out of that, since with
    torch among it a collection takes longer than the run itself.
    """
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
