"""One training at one moment: its numbers, its answer, the attention that it rests on, and the way onwards."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from model.learning.checkpoints import Checkpoint, dump
from model.learning.tasks import TASKS, Task
from model.learning.training import Progress
from model.texts import texts_of
from visualizer.colors import WARNING
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.trained import keep, shape_of
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.fields import TRAINED
from visualizer.settings.settings import Selection, Settings
from visualizer.state import state
from visualizer.state.theme import theme
from visualizer.views.train.answers import Answer, Heads, answer, heads, trained_model
from visualizer.views.train.controls import Look
from visualizer.views.train.job import Training

say = texts_of(__name__)

_STYLE = (Path(__file__).parent / "train.css").read_text(encoding="utf-8")


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


def moment_at(name: str, training: Training, step: int | None) -> Moment:
    """The last moment of a training up to a step; the newest where none is given."""
    so_far = [moment for moment in training.moments if step is None or moment.step <= step]
    matches = [moment.exact_match for moment in so_far if moment.exact_match is not None]
    return Moment(name, training, so_far[-1], matches[-1])


def style() -> None:
    """The style of its line."""
    st.html(f"<style>{_STYLE}</style>")


def numbers(moment: Moment) -> None:
    """The numbers that say how good it is."""
    st.html(
        f'<div class="training-numbers"><span><b>{moment.exact_match:.0%}</b>{say("held_out")}</span>'
        f"<span><b>{_short(moment.progress.loss)}</b>{say('loss')}</span></div>"
    )


def _short(loss: float) -> str:
    return "&lt; 0.001" if loss < 1e-3 else f"{loss:.3f}"


def picture(moment: Moment, look: Look, key: str) -> None:
    """The answer to the text, and every head of the attention."""
    recipe = moment.training.recipe
    try:
        model = trained_model(recipe, moment.progress.weights)
    except ValueError as error:
        st.warning(markdown_safe(str(error)), icon=":material/error:")
        return
    _answer(TASKS[recipe.task], look.text, answer(model, TASKS[recipe.task], look.text))
    _attention(heads(model, recipe, look.text, look.kind, look.layer), key)


def _answer(task: Task, text: str, given: Answer) -> None:
    tokens = task.joined(
        html.escape(token) if token_is_right else f'<span class="wrong">{html.escape(token)}</span>'
        for token, token_is_right in zip(given.written, given.judged, strict=True)
    )
    written = tokens if given.written else f'<span class="note">{say("nothing")}</span>'
    note = f"{'✓' if given.is_right else '✗'} {given.note}"
    st.html(
        f'<div class="training-answer" style="--wrong: {WARNING[theme()]}">'
        f'<span class="asked">{html.escape(text)} →</span><span>{written}{"" if given.ended else "…"}</span>'
        f'<span class="note">{html.escape(note)}</span></div>'
    )


def _attention(found: Heads, key: str) -> None:
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
    mount(tensor_grid(panels, layout="wrap", key=key))


def onwards(moment: Moment, look: Look, key: str) -> None:
    """The way to every number of this model, and to its file."""
    checkpoint = moment.checkpoint
    last = len(TASKS[checkpoint.recipe.task].split(look.text)) - 1
    selection = Selection(view="step", stage=f"{look.kind}.weights", layer=look.layer, head=0, query=0, key=last)

    def step_through() -> None:
        state.choose(kept_settings(checkpoint, look.text), selection)

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
            file_name=f"{checkpoint.recipe.task}_step_{checkpoint.step}.safetensors",
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
