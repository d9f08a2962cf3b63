"""Follow a token: what every part of the model writes to the residual stream, and what it would answer there."""

from __future__ import annotations

import logging
from dataclasses import replace

import streamlit as st

from model.texts import texts_of
from visualizer.components.token_way.element import TokenWay, token_way
from visualizer.guide.walking import light_at
from visualizer.pictures.token_way import NotFollowedError, stack_of, stacks_of, taken_at
from visualizer.routes.address import MOST_IN_MESSAGE, picture_address
from visualizer.runs.paths import layer_of, without_layer
from visualizer.runs.recorded import token_of
from visualizer.runs.run import Run
from visualizer.safe_text import visible_whole
from visualizer.server.mount import mount
from visualizer.settings.settings import Selection
from visualizer.stages.checks import Check
from visualizer.state import state, widgets
from visualizer.state.places import listeners
from visualizer.views.predict.covered import covered

say = texts_of(__name__)

_FINAL_NORMS = ("encoder.norm", "decoder.norm")
_logger = logging.getLogger(__name__)


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    stack = stack_of(run, selection.stage)
    if stack is None:
        st.info(_nothing_to_follow(run))
        st.button(say("step"), key="step_instead", on_click=state.callback(state.select, view="step"))
        return
    if selection.hidden:
        _covered(run)
        return
    if run.seen is not None:
        _choose(run, stack)
    try:
        taken = taken_at(run, stack, selection.query)
    except NotFollowedError as error:
        _logger.info("not taken apart: %s", stack, exc_info=True)
        st.info(str(error), icon=":material/info:")
        return
    way = taken.way
    key = f"token_way_{stack}"
    light = _lit(run, way, selection)
    address = _address(run, selection, stack, way)
    layer, seq = selection.layer, state.last_seq(key)
    picture = token_way(address or way, selected=selection.query, seq=seq, key=key, layer=layer, light=light)
    mount(picture, **listeners(way.paths, run.seen))
    if light != "":  # a path shows the picture alone
        return
    check = taken.check()
    if not check.holds and run.interventions:
        check = Check(say("edited"), None)
    st.caption(taken.caption(check, say("of_norm") if way.parts[-1].path in _FINAL_NORMS else ""))


def _nothing_to_follow(run: Run) -> str:
    if run.seen is None:
        return say("no_way")
    if not run.parameters:
        return say("no_parameters")
    not_a_number = (path for path, stage in run.trace.items() if bool(stage.value.isnan().any()))
    first = next(not_a_number, None)
    return say("no_stream") if first is None else say("of_nan", stage=first)


def _choose(run: Run, stack: str) -> None:
    """Choose the stream of another model where there are several, as in an encoder and a decoder."""
    stacks = stacks_of(run)
    if len(stacks) > 1:
        st.selectbox(
            say("stream"),
            stacks,
            index=stacks.index(stack),
            format_func=visible_whole,
            label_visibility="collapsed",
            width=300,
            **widgets.following("stream_of_way", stack, lambda one: state.select(stage=one)),
        )


def _address(run: Run, selection: Selection, stack: str, way: TokenWay) -> str | None:
    """Return the address of the ways of these tokens; None where it has none, or they come with the message."""
    if way.n_weights <= MOST_IN_MESSAGE:
        return None
    stage, batch = (without_layer(stack), selection.batch) if run.seen is None else (stack, 0)
    middle = way.first + way.norms.shape[1] // 2
    shown = replace(selection, stage=stage, query=middle, batch=batch)
    return picture_address("way", run.settings, shown, recorded=token_of(run))


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
