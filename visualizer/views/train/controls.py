"""The choice of a training: the task, the sizes of the model, the experiments, and what to look at meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st

from model.learning.tasks import Task
from model.learning.training import Recipe
from model.texts import texts_of
from visualizer.safe_text import markdown_safe
from visualizer.settings.training_settings import (
    ATTENTIONS,
    NO_EXPERIMENT,
    NUMBERS,
    TRAINING,
    TrainingChoice,
    usual_choice,
)
from visualizer.state import state, widgets

say = texts_of(__name__)


_STEPS: Mapping[str, Mapping[str, Any]] = {
    "steps": {"step": 100},
    "learning_rate": {"step": 1e-3, "format": "%g"},
}
"""By how much a click changes a number, and how it is written, where that is not as usual."""


@dataclass(frozen=True)
class Look:
    """The text that is looked at while a model learns.

    Attributes:
        text: what it is asked.
        kind: which attention, one of ``ATTENTIONS``.
        layer: which layer of it.
    """

    text: str
    kind: str
    layer: int


def choose_training(choice: TrainingChoice) -> None:
    """The task to train and the experiment, or none; another one is opened as it is usually trained."""
    _menu("train_task", lambda task: _open(task, NO_EXPERIMENT), width=190)
    _menu("train_experiment", lambda experiment: _open(choice.train_task, experiment), width=215)


def _open(task: str, experiment: str) -> None:
    """Open a task or an experiment as it is usually trained; one that is open the page has merely drawn."""
    chosen = state.chosen().training
    if (chosen.train_task, chosen.train_experiment) != (task, experiment):
        state.train(usual_choice(task, experiment))


def choose_recipe(choice: TrainingChoice) -> None:
    """The numbers of the recipe; an experiment has its own."""
    if choice.train_experiment != NO_EXPERIMENT:
        return
    with st.popover(say("change"), icon=":material/tune:", width="content", key="recipe"):
        columns = st.columns(2)
        for index, name in enumerate(NUMBERS):
            with columns[index % 2]:
                widgets.number(f"train_{name}", **_STEPS.get(name, {}))
        st.caption(say("chosen_here"))


def summary(recipe: Recipe) -> str:
    """The sizes of a model and its training in one line."""
    return say(
        "summary",
        heads=recipe.n_heads,
        layers=recipe.n_layers,
        width=recipe.d_model,
        feed_forward=recipe.d_ff,
        steps=recipe.steps,
        seed=recipe.seed,
    )


def choose_look(choice: TrainingChoice, task: Task) -> Look:
    """Choose what to look at. A text that is none of the task is refused, and the example asked."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="look"):
        st.caption(markdown_safe(task.description), width="content")
        typed = widgets.line(
            "train_text",
            label=say("ask_it", allowed=task.texts.allowed),
            label_visibility="collapsed",
            width=420 if task.has_words else 180,
        )
        if len(ATTENTIONS[task.architecture]) > 1:
            _segments("train_attention", ATTENTIONS[task.architecture])
        if choice.train_n_layers > 1:
            _segments("train_layer", range(choice.train_n_layers))
    return Look(_asked(task, typed), choice.train_attention, choice.train_layer)


def _asked(task: Task, typed: str) -> str:
    """The text to ask, and a sentence where it is not what was typed."""
    try:
        text = task.read(typed)
    except ValueError as error:
        refusal(error, say("asked_meanwhile", text=task.example))
        return task.example
    if not task.has_words and text != "".join(typed.split()):
        st.caption(markdown_safe(say("read_as", typed=typed, text=text)))
    return text


def text_now(task: Task, shown: str) -> str:
    """Return the text to ask as a callback finds it; the one that is shown where that is none of the task."""
    now = state.now().training
    with suppress(ValueError):
        return task.read(now.train_text) if now.train_task == task.name else shown
    return shown


def _menu(name: str, choose: Callable[[str], None], width: int) -> None:
    """A menu after its label."""
    changed = state.on_change(name, choose)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        st.caption(TRAINING[name].label, width="content")
        widgets.choice(name, help=None, label_visibility="collapsed", on_change=changed, width=width)


def _segments(name: str, options: Iterable[Any]) -> None:
    field = TRAINING[name]
    label = (lambda layer: say("layer", layer=layer)) if field.kind == "integer" else field.choices.__getitem__
    widgets.segments(
        name,
        list(options),
        format_func=label,
        help=None,
        label_visibility="collapsed",
        required=True,
        width="content",
    )


def refusal(error: ValueError, what_then: str = "") -> None:
    """One sentence on what was refused."""
    st.error(markdown_safe(f"{error}. {what_then}" if what_then else str(error)), icon=":material/error:")
