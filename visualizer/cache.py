"""The only caches: finished runs and measurements, shared by all sessions and never changed."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable

import streamlit as st
import torch

from visualizer.components.axis import SequenceName
from visualizer.limits import estimate_run
from visualizer.proof import Measurement, measure
from visualizer.run import Run, compute_run
from visualizer.settings import Settings

SMALL_RUN = 64 * 2**20
"""Bytes up to which a run is worth keeping in numbers."""


def cached_run(settings: Settings) -> Run:
    """The run of these settings, computed once.

    Raises:
        ValueError: as ``compute_run``.
    """
    _prepare_process()
    return _small_run(settings) if estimate_run(settings) <= SMALL_RUN else _large_run(settings)


MEASUREMENTS = 16
"""How many measurements are kept."""


def cached_measurement(settings: Settings, sequence: SequenceName) -> Measurement | None:
    """A finished measurement of these settings; None before there is one."""
    return _measurements().get((settings, sequence))


def measured(settings: Settings, sequence: SequenceName, progress: Callable[[float], None]) -> Measurement:
    """Measure, and keep what was found.

    Not a function with a cache around it: it draws its progress while it runs.
    """
    measurement = measure(cached_run(settings), sequence, progress)
    kept = _measurements()
    kept[settings, sequence] = measurement
    while len(kept) > MEASUREMENTS:
        kept.popitem(last=False)
    return measurement


@st.cache_resource(show_spinner=False)
def _measurements() -> OrderedDict[tuple[Settings, SequenceName], Measurement]:
    return OrderedDict()


@st.cache_resource(max_entries=24, show_spinner=False)
def _small_run(settings: Settings) -> Run:
    return compute_run(settings)


@st.cache_resource(max_entries=2, show_spinner="Computing every stage …")
def _large_run(settings: Settings) -> Run:
    return compute_run(settings)


@st.cache_resource(show_spinner=False)
def _prepare_process() -> None:
    """Set up what is global to the process, once, after the imports.

    One thread per run: the operations are small, and threads that wait for each other on a core that the browser or
    another session also uses take ten times as long as one alone.

    Streamlit collects garbage after every run of the script; what the imports made is left out of that, since with
    torch among it a collection takes longer than the run itself.
    """
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
