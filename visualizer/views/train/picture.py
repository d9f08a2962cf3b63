"""The picture of a training: recorded, while it runs, and any moment of it afterwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from model.learning.tasks import TASKS
from model.texts import texts_of
from visualizer.colors import DIVERGING
from visualizer.safe_text import markdown_safe
from visualizer.settings.training_settings import LAST_STEP, TrainingChoice
from visualizer.state import state
from visualizer.state.controls import give
from visualizer.state.theme import theme
from visualizer.views.train import one_moment, session
from visualizer.views.train.controls import Look, summary
from visualizer.views.train.job import Trainings
from visualizer.views.train.loss import lay_open
from visualizer.views.train.one_moment import Moment, moment_at
from visualizer.views.train.plan import Plan
from visualizer.work.jobs import UNWATCHED_SECONDS, Seen, duration, watch

say = texts_of(__name__)

if TYPE_CHECKING:
    from visualizer.figures.loss_curve import Curve

_MOMENT = "train_moment"
_COLORS = (16, -16)  # places in the diverging scale, which every kind of colour blindness tells apart
_DASHES = ("solid", "dot")


def render(choice: TrainingChoice, plan: Plan, look: Look) -> None:
    """Draw what there is of a plan: while it is trained again and again, by itself."""
    found = session.found(choice, plan)
    if plan.question:
        st.markdown(f"##### {markdown_safe(plan.question)}")
    if session.is_started(choice, plan) and found.value[0].origin != "trained":
        st.info(say("unknown"), icon=":material/history:")
    if found.is_running:
        _stop(choice, plan)
        watch(lambda: session.found(choice, plan), lambda seen: _live(plan, seen, look))
    else:
        _go_through(choice, plan, found, look)


def elsewhere(choice: TrainingChoice, plan: Plan) -> None:
    """Say how far the training of this session is while another plan is on the screen."""
    mine = session.elsewhere(plan)
    if mine is not None:

        def look() -> Seen[Trainings] | None:
            still_here = state.chosen().training == choice
            return mine.job.peek() if still_here and session.elsewhere(plan) else None

        with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="elsewhere"):
            said = say("goes_on", title=markdown_safe(mine.plan.title))
            with st.container(width="stretch"):
                watch(look, lambda seen: st.progress(seen.fraction, text=f"{said} {_how_far(seen)}"))
            st.button(
                say("show"), key="show_training", on_click=state.callback(state.train, mine.choice), width="content"
            )
            _stop(mine.choice, mine.plan)


def _live(plan: Plan, seen: Seen[Trainings], look: Look) -> None:
    st.progress(seen.fraction, text=_how_far(seen))
    if all(training.snapshots for training in seen.value):
        _draw(plan, seen.value, look, step=None)


def _go_through(choice: TrainingChoice, plan: Plan, seen: Seen[Trainings], look: Look) -> None:
    """Draw the moment that is chosen, and offer the others."""
    if any(not training.snapshots for training in seen.value):
        st.caption(_how_it_ended(seen) if seen.phase == "failed" else say("stopped_at_once"))
        return
    step = _choose_step(choice, seen)
    found = _draw(plan, seen.value, look, step)
    _onwards(found, look)
    if seen.value[0].origin == "trained":
        st.caption(say("link"))
    lay_open(found, look)


def _draw(plan: Plan, trainings: Trainings, look: Look, step: int | None) -> list[Moment]:
    found = [moment_at(name, training, step) for name, training in zip(plan.names, trainings, strict=True)]
    marked = None if trainings[0].origin == "untrained" else step
    if len(found) == 1:
        _sides(found, look, marked)
    else:
        _columns(found, look, marked)
    return found


def _stop(choice: TrainingChoice, plan: Plan) -> None:
    """The way to end it, outside of what is drawn again and again: there Streamlit drops a late click."""
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
    steps = say("and").join(f"{step:,}" for step in done) or "0"
    seeds = say("and").join(str(seed) for seed in sorted({training.recipe.seed for training in trainings}))
    both, origin = say("both") if len(trainings) > 1 else "", trainings[0].origin
    return {
        "recorded": say("recorded", both=both, steps=steps, seeds=seeds, seconds=seen.seconds),
        "untrained": say("untrained"),
        "finished": say("finished", steps=steps, seconds=seen.seconds),
        "stopped": say("stopped", steps=steps),
        "unwatched": say("unwatched", steps=steps, seconds=UNWATCHED_SECONDS),
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


def _sides(found: Sequence[Moment], look: Look, step: int | None) -> None:
    """One training: its curves beside its picture."""
    left, right = st.columns([1, 2], gap="medium")
    with left:
        one_moment.numbers(found[0])
        _losses(found, step)
        _matches(found, step)
    with right:
        one_moment.picture(found[0], look, "training_0")


def _columns(found: Sequence[Moment], look: Look, step: int | None) -> None:
    """Two trainings: their curves in one chart, their pictures side by side."""
    left, right = st.columns(2, gap="medium")
    with left:
        _losses(found, step)
    with right:
        _matches(found, step)
    for index, column in enumerate(st.columns(len(found), gap="medium")):
        with column:
            st.markdown(f"##### {markdown_safe(found[index].name)}")
            one_moment.numbers(found[index])
            one_moment.picture(found[index], look, f"training_{index}")


def _losses(found: Sequence[Moment], step: int | None) -> None:
    from visualizer.figures.looks import config  # brings Plotly
    from visualizer.figures.loss_curve import in_words, loss_curve

    curves = [
        _curve(index, moment, moment.training.steps, moment.training.losses) for index, moment in enumerate(found)
    ]
    guessing = math.log(len(TASKS[found[0].training.recipe.task].vocabulary))
    figure = loss_curve(curves, n_steps=_n_steps(found), guessing=guessing, moment=step)
    alt = in_words(say("loss"), curves, ".3f")
    st.plotly_chart(figure, key="training_losses", config=config("training-losses"), alt=alt)


def _matches(found: Sequence[Moment], step: int | None) -> None:
    from visualizer.figures.looks import config  # brings Plotly
    from visualizer.figures.loss_curve import in_words, match_curve

    curves = [
        _curve(index, moment, moment.training.matched, moment.training.matches)
        for index, moment in enumerate(found)
    ]
    figure = match_curve(curves, n_steps=_n_steps(found), moment=step)
    alt = in_words(say("held_out"), curves, ".0%")
    st.plotly_chart(figure, key="training_matches", config=config("training-matches"), alt=alt)


def _curve(index: int, moment: Moment, steps: Sequence[int], values: Sequence[float]) -> Curve:
    from visualizer.figures.loss_curve import Curve  # brings Plotly

    color = DIVERGING[theme()][_COLORS[index]]
    return Curve(moment.name, color, _DASHES[index], steps, values)


def _n_steps(found: Sequence[Moment]) -> int:
    return max(moment.training.recipe.steps for moment in found)


def _onwards(found: Sequence[Moment], look: Look) -> None:
    for index, column in enumerate(st.columns(len(found), gap="medium")):
        with column:
            st.caption(summary(found[index].training.recipe))
            one_moment.onwards(found[index], look, str(index))
