"""Train: a model learns a task while it is watched, or two that differ in one thing."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from model.texts import texts_of
from visualizer.settings.training_settings import TrainingChoice
from visualizer.state import drafts, state
from visualizer.state.state import Choices
from visualizer.views.train import controls, session, training_picture
from visualizer.views.train.plan import Plan, plan_of, usual_plan

say = texts_of(__name__)

_REFUSED = "training_refused"
_STYLE = (Path(__file__).parent / "train.css").read_text(encoding="utf-8")


def render(choices: Choices) -> None:
    """Draw the view: what is chosen as it was recorded, as it is being trained, or as it was."""
    st.html(f"<style>{_STYLE}</style>")
    choice = choices.training
    plan = _plan(choice)
    training_picture.elsewhere(choice, plan)
    look = controls.choose_look(choice, plan.task)
    training_picture.render(choice, plan, look)


def _plan(choice: TrainingChoice) -> Plan:
    """Return what Start would train; where that is refused, with the reason, the usual recipe of the task."""
    plan, error = _read(choice)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="recipe_row"):
        controls.choose_training(choice)
        st.button(
            say("start"),
            icon=":material/play_arrow:",
            type="primary",
            key="start_training",
            disabled=error is not None,
            width=120,
            on_click=state.callback(_start, choice, plan),  # heard even where something newer breaks its run off
        )
        controls.choose_recipe(choice)
    if error is not None:
        controls.refusal(error, say("usual"))
    if isinstance(refused := drafts.put_by_before(_REFUSED), ValueError):
        controls.refusal(refused)
        drafts.put_by(_REFUSED, None)
    return plan


def _read(choice: TrainingChoice) -> tuple[Plan, ValueError | None]:
    try:
        return plan_of(choice), None
    except ValueError as error:
        return usual_plan(choice.train_task), error


def _start(choice: TrainingChoice, plan: Plan) -> None:
    """Train a plan, with the numbers that were typed right before."""
    now = state.now().training
    try:
        if (now.train_task, now.train_experiment) == (choice.train_task, choice.train_experiment):
            choice, plan = now, plan_of(now)
        session.start(choice, plan)
    except ValueError as error:
        drafts.put_by(_REFUSED, error)
