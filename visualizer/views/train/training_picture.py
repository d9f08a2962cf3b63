"""The picture of a training: recorded, while it runs, and any moment of it afterwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from model.texts import listed, texts_of
from visualizer.components.picture import Picture
from visualizer.components.progress.element import Bar
from visualizer.components.training.element import training
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.training_settings import LAST_STEP, TrainingChoice
from visualizer.state import state
from visualizer.state.visitors import name_of_session
from visualizer.state.widget_values import give
from visualizer.views.train import one_moment, session
from visualizer.views.train.controls import Look, summary
from visualizer.views.train.job import Trainings
from visualizer.views.train.loss import lay_open
from visualizer.views.train.one_moment import Moment, moments_at, side_of
from visualizer.views.train.plan import Plan
from visualizer.work import live
from visualizer.work.jobs import Job, Seen, duration

say = texts_of(__name__)

_MOMENT = "train_moment"


def render(choice: TrainingChoice, plan: Plan, look: Look) -> None:
    """Draw what there is of a plan: while it is trained, by itself."""
    if plan.question:
        st.markdown(f"## {markdown_safe(plan.question)}")
    job = session.running(choice, plan)
    if job is not None:
        _stop(choice, plan)
        live.show("training", (job, look), partial(_live, plan, job, name_of_session(), look))
        return
    found = session.found(choice, plan)
    if session.is_started(choice, plan) and found.value[0].origin != "trained":
        st.info(say("unknown"), icon=":material/history:")
    _go_through(choice, plan, found, look)


def elsewhere(choice: TrainingChoice, plan: Plan) -> None:
    """Say how far the training of this session is while something else is on the screen."""
    mine = session.elsewhere(choice, plan)
    if mine is not None:
        said = say("goes_on", title=mine.plan.title)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="elsewhere"):
            live.show_job("training_elsewhere", mine.job, said, lambda seen: f"{said} {_how_far(seen)}")
            st.button(
                say("show"), key="show_training", on_click=state.callback(state.train, mine.choice), width="content"
            )
            _stop(mine.choice, mine.plan)


def _live(plan: Plan, job: Job[Trainings], watcher: str, look: Look, address: str) -> Picture | None:
    """The newest moment of a training that runs; None once it does not."""
    seen = job.look(watcher)
    if not seen.is_running:
        return None
    has_begun = all(training.snapshots for training in seen.value)
    found = moments_at(plan, seen.value, None) if has_begun else []
    bar = Bar(plan.title, _how_far(seen), seen.fraction)
    return _drawn(plan, found, look, address=address, bar=bar)


def _drawn(plan: Plan, found: Sequence[Moment], look: Look, **more: Any) -> Picture:  # noqa: ANN401 - of `training`
    return training(
        [side_of(moment, look) for moment in found],
        n_steps=max(recipe.steps for recipe in plan.recipes),
        guessing=math.log(len(plan.task.vocabulary)),
        **more,
    )


def _go_through(choice: TrainingChoice, plan: Plan, seen: Seen[Trainings], look: Look) -> None:
    """Draw the moment that is chosen, and offer the others."""
    if any(not training.snapshots for training in seen.value):
        st.caption(_how_it_ended(seen) if seen.phase == "failed" else say("stopped_at_once"))
        return
    step = _choose_step(choice, seen)
    found = moments_at(plan, seen.value, step)
    mount(_drawn(plan, found, look, moment=None if seen.value[0].origin == "untrained" else step))
    _onwards(found, look)
    if seen.value[0].origin == "trained":
        st.caption(say("link"))
    lay_open(found, look)


def _stop(choice: TrainingChoice, plan: Plan) -> None:
    st.button(
        say("stop"),
        icon=":material/stop:",
        key="stop_training",
        on_click=state.callback(session.stop, choice, plan),
        width="content",
    )


def _how_far(seen: Seen[Trainings]) -> str:
    left = seen.seconds_left
    done = sum(training.latest.step for training in seen.value if training.latest is not None)
    steps = sum(training.recipe.steps for training in seen.value)
    if left is None:
        return say("how_far", done=done, steps=steps)
    return say("how_far_and_left", done=done, steps=steps, left=duration(left))


def _how_it_ended(seen: Seen[Trainings]) -> str:
    trainings = seen.value
    done = sorted({training.latest.step for training in trainings if training.latest is not None})
    steps = listed(f"{step:,}" for step in done) or "0"
    seeds = listed(str(seed) for seed in sorted({training.recipe.seed for training in trainings}))
    both, origin = say("both") if len(trainings) > 1 else "", trainings[0].origin
    return {
        "recorded": say("recorded", both=both, steps=steps, seeds=seeds, seconds=seen.seconds),
        "untrained": say("untrained"),
        "finished": say("finished", steps=steps, seconds=seen.seconds),
        "stopped": say("stopped", steps=steps),
        "unwatched": say("unwatched", steps=steps),
        "failed": say("failed", why=markdown_safe(seen.failure)),
    }[seen.phase if origin == "trained" else origin]


def _choose_step(choice: TrainingChoice, seen: Seen[Trainings]) -> int:
    """The moment to look at: the last one up to the step of the link."""
    every = [{moment.step for moment in training.moments} for training in seen.value]
    steps = sorted(set.intersection(*every) | {max(set.union(*every))})
    if len(steps) == 1:
        st.caption(_how_it_ended(seen))
        return steps[0]

    def go_to(step: int) -> None:
        if state.chosen().training == choice:  # else another training was chosen meanwhile
            state.train(replace(choice, train_step=LAST_STEP if step == steps[-1] else step))

    shown = max(step for step in steps if step <= choice.train_step)
    chosen: int = st.select_slider(
        _how_it_ended(seen),
        steps,
        value=shown,
        format_func=lambda step: say("step", step=step),
        key=give(_MOMENT, shown),
        on_change=state.on_change(_MOMENT, go_to),
    )
    return chosen


def _onwards(found: Sequence[Moment], look: Look) -> None:
    for index, column in enumerate(st.columns(len(found), gap="medium")):
        with column:
            st.caption(summary(found[index].training.recipe))
            one_moment.onwards(found[index], look, str(index))
