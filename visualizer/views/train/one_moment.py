"""One training at one moment: its numbers, its answer, the attention that it rests on, and the way onwards."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from model.learning.checkpoints import Checkpoint, dump
from model.learning.tasks import TASKS
from model.learning.training import Progress
from model.texts import texts_of
from visualizer.components.picture import Picture
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.components.training.element import Side
from visualizer.runs.trained import keep, shape_of
from visualizer.settings.fields import TRAINED
from visualizer.settings.settings import Selection, Settings
from visualizer.state import state
from visualizer.views.train.answers import Heads, answer, heads, trained_model
from visualizer.views.train.controls import Look, text_now
from visualizer.views.train.job import Training, Trainings
from visualizer.views.train.plan import Plan

say = texts_of(__name__)


@dataclass(frozen=True, eq=False)
class Moment:
    """One training at the moment that is looked at.

    Attributes:
        name: what the training is called; empty where it is the only one.
        training: all of it.
        progress: the moment.
        exact_match: of the newest weights up to then that the held-out texts were asked with.
    """

    name: str
    training: Training
    progress: Progress
    exact_match: float

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of that moment."""
        return Checkpoint(self.training.recipe, self.progress.step, self.progress.weights)


def moments_at(plan: Plan, trainings: Trainings, step: int | None) -> list[Moment]:
    """The last moment of each training up to a step; the newest where none is given."""
    return [_moment_at(name, training, step) for name, training in zip(plan.names, trainings, strict=True)]


def _moment_at(name: str, training: Training, step: int | None) -> Moment:
    so_far = [moment for moment in training.moments if step is None or moment.step <= step]
    matches = [moment.exact_match for moment in so_far if moment.exact_match is not None]
    return Moment(name, training, so_far[-1], matches[-1])


def side_of(moment: Moment, look: Look) -> Side:
    """A moment as a picture shows it: its curves, its numbers, its answer to the text, and every head."""
    training, weights = moment.training, moment.progress.weights
    recipe, task = training.recipe, TASKS[training.recipe.task]
    loss = moment.progress.loss
    side = Side(
        name=moment.name,
        losses=dict(zip(training.steps, training.losses, strict=True)),
        matches=dict(zip(training.matched, training.matches, strict=True)),
        numbers=(
            (f"{moment.exact_match:.0%}", say("held_out")),
            ("< 0.001" if loss < 1e-3 else f"{loss:.3f}", say("loss")),
        ),
        note="",
    )
    try:
        model = trained_model(recipe, weights)
    except ValueError as error:
        return replace(side, note=str(error))
    answered = answer(model, task, look.text)
    return replace(
        side,
        asked=look.text,
        answer=tuple(zip(answered.symbols, answered.judged, strict=True)),
        joint=(task.joined(("", "")), "" if answered.ended else "…"),
        note=f"{'✓' if answered.is_right else '✗'} {answered.note}",
        heads=_attention(heads(model, recipe, look.text, look.kind, look.layer)),
    )


def _attention(found: Heads) -> Picture:
    panels = [
        Panel(
            name="weights",
            title=say("head", head=head),
            subtitle="" if found.expected is None else say("expected", share=found.expected[head]),
            array=weights,
            rows=found.rows,
            columns=found.columns,
            role="weights",
            bounds=(0.0, 1.0),
            blocked=found.blocked,
            blocked_by=() if found.blocked is None else ("causal",),
        )
        for head, weights in enumerate(found.weights)
    ]
    return tensor_grid(panels, layout="wrap", key="training_heads")


def onwards(moment: Moment, look: Look, key: str) -> None:
    """The way to every number of this model, and to its file."""
    checkpoint = moment.checkpoint
    task = TASKS[checkpoint.recipe.task]

    def step_through() -> None:
        text = text_now(task, look.text)
        last = len(task.split(text)) - 1
        looked_at = Selection(
            view="step", stage=f"{look.kind}.weights", layer=look.layer, head=0, query=0, key=last
        )
        state.choose(kept_settings(checkpoint, text), looked_at)

    with st.container(horizontal=True):
        st.button(
            say("step_through"),
            icon=":material/footprint:",
            type="primary",
            key=f"step_through_{key}",
            on_click=state.callback(step_through),
        )
        st.download_button(
            say("download"),
            data=lambda: dump(checkpoint),
            file_name=f"{task.name}_step_{checkpoint.step}.safetensors",
            mime="application/octet-stream",
            icon=":material/download:",
            key=f"download_{key}",
            on_click="ignore",
        )


def kept_settings(checkpoint: Checkpoint, text: str) -> Settings:
    """Keep a model, and give the settings that run it on a text under the masks of its task."""
    task = TASKS[checkpoint.recipe.task]
    mask = () if task.architecture == "encoder" else ("causal",)
    chosen = Settings(weights=TRAINED, task=task.name, checkpoint=keep(checkpoint), text=text, mask=mask)
    return replace(chosen, **shape_of(checkpoint))
