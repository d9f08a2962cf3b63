"""The only caches: finished runs, shared by all sessions and never changed."""

from __future__ import annotations

import gc

import streamlit as st

from visualizer.limits import estimate_run
from visualizer.run import Run, compute_run
from visualizer.settings import Settings

SMALL_RUN = 64 * 2**20
"""Bytes up to which a run is worth keeping in numbers."""


def cached_run(settings: Settings) -> Run:
    """The run of these settings, computed once.

    Raises:
        ValueError: as ``compute_run``.
    """
    _settle_memory()
    return _small_run(settings) if estimate_run(settings) <= SMALL_RUN else _large_run(settings)


@st.cache_resource(max_entries=24, show_spinner=False)
def _small_run(settings: Settings) -> Run:
    return compute_run(settings)


@st.cache_resource(max_entries=2, show_spinner="Computing every stage …")
def _large_run(settings: Settings) -> Run:
    return compute_run(settings)


@st.cache_resource(show_spinner=False)
def _settle_memory() -> None:
    """Leave what the imports made out of every later garbage collection.

    Streamlit collects after every run of the script; with torch imported that takes longer than the run itself.
    """
    gc.collect()
    gc.freeze()
