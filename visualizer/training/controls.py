"""What is to be trained: the task, the sizes of the model, and the experiments; and what to look at meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from model.tasks import TASKS, Task
from model.training import EXPERIMENTS, HIGHEST_RATE, LIMITS, RECIPES, Experiment, Recipe
from visualizer import state
from visualizer.tokens import markdown_safe
from visualizer.training.answers import KINDS

_TASK = "train_task"
_WHOLE_NUMBERS = {
    "n_heads": ("Heads", "How many attention heads each layer has."),
    "n_layers": ("Layers", "How many layers are stacked, in an encoder and a decoder each."),
    "d_model": ("Model width", "The length of each token's vector (d_model). The heads share it evenly."),
    "d_ff": ("Feed-forward width", "The length of the hidden vector of the feed-forward network (d_ff)."),
    "steps": ("Steps", "How often the weights are changed."),
    "seed": ("Seed", "Of the first weights and of the texts: the same seed gives the same model."),
}
_KINDS = {
    "decoder.cross_attention": "Cross-attention",
    "decoder.self_attention": "Decoder self",
    "encoder.self_attention": "Encoder self",
}
_TELLING_KINDS = {"no_causal_mask": "decoder.self_attention"}
"""The attention that answers the question of an experiment, where it is not the one that reads the text."""


@dataclass(frozen=True)
class Look:
    """What is looked at while a model learns.

    Attributes:
        text: what it is asked.
        kind: which attention, one of ``KINDS``.
        layer: which layer of it.
    """

    text: str
    kind: str
    layer: int


def choose_task(current: str) -> Task:
    """The task to train."""
    state.begin_with(_TASK, current)
    name: str | None = st.segmented_control(
        "Task",
        list(TASKS),
        format_func=lambda name: TASKS[name].title,
        key=_TASK,
        label_visibility="collapsed",
        required=True,
        persist_state="page",
    )
    return TASKS[name or current]


def choose_recipe(task: Task) -> Recipe:
    """The recipe of a task with the numbers that were typed.

    Raises:
        ValueError: it is refused.
    """
    usual = RECIPES[task.name]
    with st.popover("Change the model", icon=":material/tune:", width="content", key="recipe"):
        left, right = st.columns(2)
        typed = {}
        for index, name in enumerate(_WHOLE_NUMBERS):
            with (left, right)[index % 2]:
                typed[name] = _whole_number(usual, name)
        rate = left.number_input(
            "Learning rate",
            min_value=0.0,
            max_value=HIGHEST_RATE,
            value=usual.learning_rate,
            step=1e-3,
            format="%g",
            help=f"The highest, reached after {usual.warmup} steps; then it falls along half a cosine.",
            key=f"train_{task.name}_learning_rate",
            persist_state="page",
        )
        st.caption("The controls beside the page are those of the other views: what is trained is chosen here.")
    return replace(usual, **typed, learning_rate=rate)


def _whole_number(usual: Recipe, name: str) -> Any:  # noqa: ANN401 - a whole number, by the types of its bounds
    title, help_text = _WHOLE_NUMBERS[name]
    least, most = LIMITS[name]
    return st.number_input(
        title,
        min_value=least,
        max_value=most,
        value=getattr(usual, name),
        step=100 if name == "steps" else 1,
        help=help_text,
        key=f"train_{usual.task}_{name}",
        persist_state="page",
    )


def summary(recipe: Recipe) -> str:
    """The sizes of a model and its training in one line."""
    return (
        f"{_count(recipe.n_heads, 'head')} · {_count(recipe.n_layers, 'layer')} · width {recipe.d_model}, "
        f"feed-forward {recipe.d_ff} · {_count(recipe.steps, 'step')} · seed {recipe.seed}"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def experiments() -> Experiment | None:
    """A button for each; the one that was just pressed."""
    pressed = None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="experiments"):
        st.caption("Break it", width="content")
        for experiment in EXPERIMENTS.values():
            if st.button(
                experiment.title,
                key=f"experiment_{experiment.name}",
                help=experiment.question,
                type="tertiary",
                on_click=_turn_to,
                args=(experiment,),
            ):
                pressed = experiment
    return pressed


def _turn_to(experiment: Experiment) -> None:
    """Show the task of an experiment, and the attention that it is about."""
    task = TASKS[experiment.intact.task]
    state.fill(_TASK, task.name)
    state.fill(_kind_key(task), _TELLING_KINDS.get(experiment.name, KINDS[task.architecture][0]))


def choose_look(task: Task, n_layers: int) -> Look:
    """What to look at.

    Raises:
        ValueError: the text is none of the task.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="look"):
        st.caption("Ask it", width="content")
        typed = st.text_input(
            f"Ask it: type {task.texts.allowed}",
            value=task.example,
            label_visibility="collapsed",
            key=f"train_text_{task.name}",
            persist_state="page",
            width=180,
        )
        kind = _choose_kind(task)
        layer = _choose_layer(n_layers)
    return Look(task.read(typed), kind, layer)


def _choose_kind(task: Task) -> str:
    kinds = KINDS[task.architecture]
    if len(kinds) == 1:
        return kinds[0]
    state.begin_with(_kind_key(task), kinds[0])
    kind: str | None = st.segmented_control(
        "Attention",
        kinds,
        format_func=_KINDS.__getitem__,
        key=_kind_key(task),
        label_visibility="collapsed",
        required=True,
        persist_state="page",
        width="content",
    )
    return kind or kinds[0]


def _kind_key(task: Task) -> str:
    return f"train_attention_of_{task.architecture}"


def _choose_layer(n_layers: int) -> int:
    """A layer, the last unless another is chosen: what is read there becomes the answer."""
    if n_layers == 1:
        return 0
    layer: int = st.segmented_control(
        "Layer",
        list(range(n_layers)),
        format_func=lambda layer: f"Layer {layer}",
        default=n_layers - 1,
        key=f"train_layer_of_{n_layers}",
        label_visibility="collapsed",
        required=True,
        persist_state="page",
        width="content",
    )
    return layer


def refusal(error: ValueError) -> None:
    """One sentence on what was refused."""
    st.error(markdown_safe(str(error)), icon=":material/error:")
