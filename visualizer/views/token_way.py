"""One token's way: what every part of the model writes to the residual stream, and what it would answer there."""

from __future__ import annotations

import streamlit as st

from model.texts import texts_of
from visualizer.components.token_way.element import TokenWay, token_way
from visualizer.guide.walking import light_at
from visualizer.pictures.token_way import stack_of, taken_at
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.server.mount import mount
from visualizer.settings.settings import Selection
from visualizer.stages.checks import TOLERANCE, Check
from visualizer.state import state
from visualizer.state.token_way_events import listeners
from visualizer.views.predict.covered import covered

say = texts_of(__name__)


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    stack = stack_of(run, selection.stage)
    if stack is None:
        st.info(say("no_way"))
        st.button(say("step"), key="step_instead", on_click=state.callback(state.select, view="step"))
        return
    if selection.hidden:
        _covered(run)
        return
    n_tokens = len(run.axes(f"{stack}.inputs.embedded")[0].labels)
    query = min(selection.query, n_tokens - 1)
    taken = taken_at(run, stack, query)
    way = taken.way
    key = f"token_way_{stack}"
    light = _lit(run, way, selection)
    mount(token_way(way, selected=query, seq=state.last_seq(key), key=key, light=light), **listeners(way.paths))
    if light != "":  # a path shows the picture alone
        return
    check = taken.check(TOLERANCE)
    if not check.holds and run.interventions:
        check = Check(say("edited"), None)
    st.caption(taken.caption(check, say("of_norm") if way.parts[-1].path == f"{stack}.norm" else ""))


def _covered(run: Run) -> None:
    """Every head and every prediction is in the picture, so that there is nothing to ask with it in sight."""
    there = {"view": "step", "stage": "probabilities"} if "probabilities" in run.trace else {"view": "heads"}
    covered(say("covered"), ask=say("ask"), there=there)


def _lit(run: Run, way: TokenWay, selection: Selection) -> str | int:
    """Return what a path leads to: the stream, the prediction, or the number of a head or feed-forward network."""
    light = light_at(run, selection)
    if light in ("head", "feed_forward"):
        in_layer = [(i, part) for i, part in enumerate(way.parts) if layer_of(part.path) == selection.layer]
        of_kind = [i for i, part in in_layer if part.kind == light and part.head in (None, selection.head)]
        return of_kind[0] if of_kind else ""
    return light
