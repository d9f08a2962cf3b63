"""The measured influence of tokens on outputs, with its progress, for the parts that show it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from visualizer.cache import cached_measurement, measured
from visualizer.components.axis import SequenceName
from visualizer.lab.case import Case
from visualizer.proof import AT_ONCE, Measurement, effort
from visualizer.settings import Settings


def measurement_of(case: Case, sequence: SequenceName) -> Measurement | None:
    """The measurement of a case: at once where that is quick, else when it is asked for; None before."""
    settings = replace(case.run.settings, dropout=0.0)
    if found := cached_measurement(settings, sequence):
        return found
    n_tokens = len(case.run.tokens[sequence])
    if n_tokens > MOST_TOKENS:
        st.caption(f"The influence is measured on up to {MOST_TOKENS} tokens: the text has {n_tokens}.")
        return None
    if effort(settings, n_tokens) > AT_ONCE and not _asked(settings, n_tokens):
        return None
    bar = st.progress(0.0, text=_TEXT)

    def show(done: float) -> None:
        bar.progress(done, text=f"{_TEXT} {done:.0%}")

    found = measured(settings, sequence, show)
    bar.empty()
    return found


MOST_TOKENS = 256
"""Above this a measurement takes minutes and a gigabyte."""

_TEXT = "Differentiating every output by every embedding …"


def _asked(settings: Settings, n_tokens: int) -> bool:
    n_directions = n_tokens * settings.d_model
    st.caption(
        f"To prove it, {n_directions:,} directions ({n_tokens} tokens × {settings.d_model} numbers) go through "
        f"{settings.n_layers} layers. That takes longer than two seconds; you can stop it by any change."
    )
    return st.button("Measure", icon=":material/science:", key="measure")
