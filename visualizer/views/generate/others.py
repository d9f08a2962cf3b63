"""Models that can write, for whoever looks at one that cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from model.texts import texts_of
from visualizer.settings.fields import PRETRAINED, TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Selection, Settings, default_stage
from visualizer.settings.trained_models import TRAINED_MODELS
from visualizer.state import state

say = texts_of(__name__)


@dataclass(frozen=True)
class Offer:
    """A model that can write.

    Attributes:
        name: what code calls it.
        title: what its button says.
        settings: that run it.
    """

    name: str
    title: str
    settings: Settings


def offers(settings: Settings) -> tuple[Offer, ...]:
    """Offers beside a model that cannot write: its text continued by a decoder, and tasks with an answer."""
    trained = tuple(
        Offer(task, say("trained", title=TRAINED_MODELS[task].title), _trained(task)) for task in _WRITTEN_TASKS
    )
    if settings.weights in (*WORKED_EXAMPLES, TRAINED, PRETRAINED):
        return (*trained, Offer("decoder", say("decoder"), Settings(architecture="decoder")))
    mask = settings.mask if "causal" in settings.mask else ("causal", *settings.mask)
    same = fitted(replace(settings, architecture="decoder", mask=mask))
    return (Offer("decoder", say("decoder_of_this_text"), same), *trained)


_WRITTEN_TASKS = ("reverse", "repeat_block")
"""One of an encoder-decoder, one of a decoder."""


def offer(settings: Settings) -> None:
    """One button for each of them."""
    with st.container(horizontal=True, gap="small", key="models_that_write"):
        for other in offers(settings):
            selection = Selection(view="generate", stage=default_stage(other.settings.architecture))
            st.button(
                other.title,
                icon=":material/edit:",
                key=f"write_with_{other.name}",
                on_click=state.callback(state.choose, other.settings, selection),
            )


def _trained(task: str) -> Settings:
    trained = TRAINED_MODELS[task]
    return fitted(replace(Settings(), weights=TRAINED, task=task, text=trained.example, mask=trained.masks(False)))
