"""The picture of a training: before it, while it runs, and any moment of it afterwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from model.tasks import TASKS
from model.training import Recipe, train
from visualizer.colors import DIVERGING
from visualizer.tokens import markdown_safe
from visualizer.training import moments
from visualizer.training.controls import Look, summary
from visualizer.training.job import UNWATCHED_SECONDS, JobState, Training
from visualizer.training.moments import Moment, moment_at
from visualizer.training.session import Started

if TYPE_CHECKING:
    from visualizer.figures.loss_curve import Curve

EVERY_SECONDS = 0.5
"""How often the picture is drawn again while something is trained."""

_PLOTLY = {"displayModeBar": False}
_COLORS = (16, -16)  # places in the diverging scale, which every kind of colour blindness tells apart
_DASHES = ("solid", "dot")


def before(recipe: Recipe, look: Look) -> None:
    """Draw a model that nothing has been done with: what its random weights say."""
    training = Training(recipe).after(next(train(recipe)))
    _sides([moment_at("", training, None)], look, step=None, key="before")


def render(started: Started, look: Look) -> None:
    """Draw the job of this session: while it runs again and again, by itself."""
    is_running = started.job.look().is_running
    st.fragment(_draw, run_every=EVERY_SECONDS if is_running else None)(started, look, was_running=is_running)


def _draw(started: Started, look: Look, *, was_running: bool) -> None:
    job = started.job.look()
    if was_running and not job.is_running:
        st.rerun()  # to be drawn without the clock
    if started.question:
        st.markdown(f"##### {markdown_safe(started.question)}")
    if job.is_running:
        _how_far(started, job)
    if any(not training.snapshots for training in job.trainings):
        if not job.is_running:
            st.caption(_how_it_ended(job))
        return
    step = None if job.is_running else _choose_step(started, job)
    found = [moment_at(name, training, step) for name, training in zip(started.names, job.trainings, strict=True)]
    key = f"training_{started.number}"
    draw = _sides if len(found) == 1 else _columns
    draw(found, look, step, key)
    if not job.is_running:
        _onwards(found, look, key)


def _how_far(started: Started, job: JobState) -> None:
    """A bar, and the way to end it."""
    left = job.seconds_left
    done = sum(training.latest.step for training in job.trainings if training.latest is not None)
    steps = sum(training.recipe.steps for training in job.trainings)

    def stop() -> None:
        started.job.stop()

    text = f"Step {done:,} of {steps:,}" + ("" if left is None else f" · {_duration(left)} left")
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.progress(job.fraction, text=text)
        st.button("Stop", icon=":material/stop:", key="stop_training", on_click=stop, width="content")


def _duration(seconds: float) -> str:
    whole = math.ceil(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def _how_it_ended(job: JobState) -> str:
    done = sorted({training.latest.step for training in job.trainings if training.latest is not None})
    steps = " and ".join(f"{step:,}" for step in done) or "0"
    return {
        "finished": f"Trained {steps} steps in {job.seconds:.0f} s. Go back to any moment:",
        "stopped": f"Stopped after {steps} steps. What was learned until then is kept. Go back to any moment:",
        "unwatched": f"Stopped after {steps} steps, since this view was closed for more than "
        f"{UNWATCHED_SECONDS:.0f} s. What was learned until then is kept. Go back to any moment:",
        "failed": "The training failed: start it again, or choose a smaller model.",
    }[job.phase]


def _choose_step(started: Started, job: JobState) -> int:
    """The moment to look at."""
    steps = sorted({moment.step for training in job.trainings for moment in training.moments})
    if len(steps) == 1:
        st.caption(_how_it_ended(job))
        return steps[0]
    chosen: int = st.select_slider(
        _how_it_ended(job),
        steps,
        value=steps[-1],
        format_func=lambda step: f"step {step:,}",
        key=f"moment_{started.number}",
        persist_state="page",
    )
    return chosen


def _sides(found: Sequence[Moment], look: Look, step: int | None, key: str) -> None:
    """One training: its curves beside its picture."""
    left, right = st.columns([1, 2], gap="medium")
    with left:
        moments.numbers(found[0])
        _losses(found, step, key)
        _matches(found, step, key)
    with right:
        moments.picture(found[0], look, f"{key}_0")


def _columns(found: Sequence[Moment], look: Look, step: int | None, key: str) -> None:
    """Two trainings: their curves in one chart, their pictures side by side."""
    left, right = st.columns(2, gap="medium")
    with left:
        _losses(found, step, key)
    with right:
        _matches(found, step, key)
    for index, column in enumerate(st.columns(len(found), gap="medium")):
        with column:
            st.markdown(f"##### {markdown_safe(found[index].name)}")
            moments.numbers(found[index])
            moments.picture(found[index], look, f"{key}_{index}")


def _losses(found: Sequence[Moment], step: int | None, key: str) -> None:
    from visualizer.figures.loss_curve import loss_curve  # brings Plotly

    curves = [
        _curve(index, moment, moment.training.steps, moment.training.losses) for index, moment in enumerate(found)
    ]
    guessing = math.log(len(TASKS[found[0].training.recipe.task].vocabulary))
    figure = loss_curve(curves, n_steps=_n_steps(found), guessing=guessing, moment=step)
    st.plotly_chart(figure, key=f"{key}_losses", config=_PLOTLY)


def _matches(found: Sequence[Moment], step: int | None, key: str) -> None:
    from visualizer.figures.loss_curve import match_curve  # brings Plotly

    curves = [
        _curve(
            index,
            moment,
            [snapshot.step for snapshot in moment.training.snapshots],
            [snapshot.exact_match or 0.0 for snapshot in moment.training.snapshots],
        )
        for index, moment in enumerate(found)
    ]
    figure = match_curve(curves, n_steps=_n_steps(found), moment=step)
    st.plotly_chart(figure, key=f"{key}_matches", config=_PLOTLY)


def _curve(index: int, moment: Moment, steps: Sequence[int], values: Sequence[float]) -> Curve:
    from visualizer.figures.loss_curve import Curve  # brings Plotly

    color = DIVERGING[moments.theme()][_COLORS[index]]
    return Curve(moment.name, color, _DASHES[index], steps, values)


def _n_steps(found: Sequence[Moment]) -> int:
    return max(moment.training.recipe.steps for moment in found)


def _onwards(found: Sequence[Moment], look: Look, key: str) -> None:
    for index, column in enumerate(st.columns(len(found), gap="medium")):
        with column:
            st.caption(summary(found[index].training.recipe))
            moments.onwards(found[index], look, f"{key}_{index}")
