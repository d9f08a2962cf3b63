"""Hints on settings that are chosen and do nothing here."""

from __future__ import annotations

import streamlit as st

from model.learning.tasks import TASKS
from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.settings.fields import TRAINED
from visualizer.state import state
from visualizer.state.state import Choices

say = texts_of(__name__)

MORE_PADDING = 3
"""The padding tokens that one click adds, so that a padding mask has something to hide."""


def hints(run: Run, choices: Choices) -> None:
    """Draw a sentence for each setting without the effect that its name promises."""
    if run.example is not None:
        return
    if not run.attentions and hides_no_padding(run, choices):
        _padding()
    for sentence in sentences(run, choices.selection.view):
        st.caption(sentence)


def hides_no_padding(run: Run, choices: Choices) -> bool:
    """True if the padding mask is chosen where nothing is padded."""
    is_padded = any(any(sequence.is_padding) for batch in run.batches.values() for sequence in batch)
    return "padding" in choices.masks and not is_padded


def sentences(run: Run, view: str = "step") -> tuple[str, ...]:
    """Return the hints on positions, capital letters and dropout; a model that writes has no dropout."""
    settings, found = run.settings, []
    if settings.positions == "learned" and settings.weights != TRAINED:
        found.append(say("table_of_sinusoids") if settings.weights == "hand_built" else say("table_of_random"))
    knows_letters = settings.weights == TRAINED and not TASKS[settings.task].has_words
    if knows_letters and settings.text != settings.text.lower():
        found.append(say("small_letters"))
    if settings.dropout > 0 and settings.weights == "hand_built" and view != "generate":
        found.append(say("dropout", share=settings.dropout))
    return tuple(found)


def _padding() -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="no_padding"):
        st.caption(say("no_padding"), width="content")
        st.button(
            say("more_padding", n=MORE_PADDING),
            key="more_padding",
            on_click=state.callback(state.change, pad=MORE_PADDING),
            type="tertiary",
        )
