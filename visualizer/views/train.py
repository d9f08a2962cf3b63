"""Train: a model learns a task before one's eyes, or two that differ in one thing."""

from __future__ import annotations

import streamlit as st

from model.tasks import TASKS, Task
from model.training import Recipe
from visualizer.settings import Settings
from visualizer.training import controls, moments, progress, session
from visualizer.training.session import Started


def render(settings: Settings) -> None:
    """Draw the view. Of the settings the task alone counts: a training has settings of its own."""
    moments.style()
    task = controls.choose_task(settings.task)
    recipe, start = _recipe(task)
    experiment = controls.experiments()
    try:
        if experiment is not None:
            session.start_experiment(experiment)
        elif start and recipe is not None:
            session.start_training(recipe)
        _picture(task, recipe, session.current())
    except ValueError as error:
        controls.refusal(error)


def _recipe(task: Task) -> tuple[Recipe | None, bool]:
    """What Start would train, None where it is refused, and whether it was pressed."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="recipe_row"):
        first = st.container(width="content")
        recipe = _chosen(task)
    with first:
        start = st.button(
            "Start",
            icon=":material/play_arrow:",
            type="primary",
            key="start_training",
            disabled=recipe is None,
            width=120,
        )
    return recipe, start


def _chosen(task: Task) -> Recipe | None:
    """The recipe, described; None, with the reason, where it is refused."""
    try:
        recipe = controls.choose_recipe(task)
    except ValueError as error:
        controls.refusal(error)
        return None
    st.caption(f"{task.description} {controls.summary(recipe)}")
    return recipe


def _picture(task: Task, recipe: Recipe | None, started: Started | None) -> None:
    """What this session trained for the task, or else the model as it would be trained."""
    recipes = () if started is None else tuple(training.recipe for training in started.job.look().trainings)
    if started is not None and (started.job.look().is_running or recipes[0].task == task.name):
        look = controls.choose_look(TASKS[recipes[0].task], recipes[0].n_layers)
        progress.render(started, look)
    elif recipe is not None:
        look = controls.choose_look(task, recipe.n_layers)
        progress.before(recipe, look)
