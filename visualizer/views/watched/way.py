"""Follow a token: what every part of a watched model writes to its residual stream, and its answer there."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import streamlit as st
import torch

from headlight.contributions import Contributions, Stream, contributions_of
from headlight.graph import NOT_COMPUTED
from model.texts import texts_of
from visualizer.components.token_way.element import token_way
from visualizer.pictures.watched_way import take_apart
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import visible_whole
from visualizer.server.mount import mount
from visualizer.stages.check_line import check_line
from visualizer.stages.checks import Check
from visualizer.state import state, widgets
from visualizer.state.state import Choices

say = texts_of(__name__)
_logger = logging.getLogger(__name__)

TOLERANCE = 1e-4
"""The largest difference of the sum from the stream, relative to its largest number, in full precision."""

_ROUNDED = 5e-2


def choose(run: WatchedRun, choices: Choices) -> None:
    """Choose the stream where there are several, as in an encoder and a decoder."""
    found = _contributions(run)
    if len(found.streams) < 2:
        return
    firsts = [found.attentions_of(stream)[0] for stream in found.streams]
    here = firsts[found.streams.index(_stream(found, run, choices))]
    st.selectbox(
        say("stream"),
        firsts,
        index=firsts.index(here),
        format_func=visible_whole,
        label_visibility="collapsed",
        width=300,
        **widgets.following("stream_of_way", here, lambda one: state.watch(watched_attention=one)),
    )


def render(run: WatchedRun, choices: Choices) -> None:
    """Draw the panel."""
    found = _contributions(run)
    if not found.streams:
        st.info(say("no_stream"), icon=":material/info:")
        return
    stream = _stream(found, run, choices)
    item = choices.watched.watched_item
    n_tokens = run.attention(found.attentions_of(stream)[0]).shape[2]
    query = min(choices.watched.watched_query, n_tokens - 1)
    try:
        taken = run.once(("way", stream.path, item, query), lambda: take_apart(run, found, stream, item, query))
    except NOT_COMPUTED:
        _logger.info("not taken apart: %s", stream.path, exc_info=True)
        st.info(say("not_followed"), icon=":material/info:")
        return
    way = taken.way
    key = f"watched_way_{stream.path}"

    def show(event: object) -> None:
        state.watch(watched_query=state.index_in(event, "query"))

    def open_part(event: object) -> None:
        path = event.get("path") if isinstance(event, Mapping) else None
        if path not in way.paths:
            return
        show(event)
        if state.has_index(event, "head"):
            head = state.index_in(event, "head")
            state.show_panel("heads", watched_attention=path, watched_head=head)
        else:
            state.show_panel("operations", watched_stage=path)

    mount(token_way(way, selected=query, seq=state.last_seq(key), key=key), open=open_part, shown=show)
    said = say("sums", n_parts=len(way.parts), n_places=taken.n_places, difference=taken.difference)
    n_drawn = way.norms.shape[1]
    keys = "" if n_drawn == n_tokens else say("arrow_keys", first=way.first, last=way.first + n_drawn - 1)
    st.caption(f"{check_line(Check(said, taken.difference <= _tolerance(run, stream)))}{keys}")


def _contributions(run: WatchedRun) -> Contributions:
    return run.once("contributions", lambda: contributions_of(run.trace))


def _stream(found: Contributions, run: WatchedRun, choices: Choices) -> Stream:
    """The stream that the chosen attention writes to; without a choice the one that the answer is read from."""
    chosen = choices.watched.watched_attention
    answering = [stream for stream in found.streams if found.answer_of(stream) is not None]
    default = [*answering, *found.streams][0]
    if chosen not in run.trace.paths:
        return default
    return next((stream for stream in found.streams if chosen in found.attentions_of(stream)), default)


def _tolerance(run: WatchedRun, stream: Stream) -> float:
    value = run.trace.stages[stream.path].value
    return TOLERANCE if value is not None and value.dtype in (torch.float32, torch.float64) else _ROUNDED
