"""Follow a token: what every part of a watched model writes to its residual stream, and its answer there."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import streamlit as st
import torch

from headlight.contributions import Stream
from headlight.graph import NOT_COMPUTED
from model.texts import texts_of
from visualizer.components.token_way.element import token_way
from visualizer.pictures.token_way import Taken, followed_of_watched, take_apart, watched_contributions, window_of
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import visible_whole
from visualizer.server.mount import mount
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.on_top import look_at, query_of
from visualizer.views.watched.operations import show_heads

say = texts_of(__name__)
_logger = logging.getLogger(__name__)

TOLERANCE = 1e-4
"""The largest difference of the sum from the stream, relative to its largest number, in full precision."""

_ROUNDED = 5e-2


def _choose(run: WatchedRun, choices: Choices) -> None:
    """Choose the stream where there are several, as in an encoder and a decoder."""
    found = watched_contributions(run)
    if len(found.streams) < 2:
        return
    firsts = [found.attentions_of(stream)[0] for stream in found.streams]
    here = firsts[found.streams.index(_stream(run, choices))]
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
    """Draw the parts of the stream that is chosen."""
    if not watched_contributions(run).streams:
        st.info(say("no_stream"), icon=":material/info:")
        return
    _choose(run, choices)
    stream = _stream(run, choices)
    item, query = choices.selection.batch, query_of(choices)
    try:
        taken = run.once(("way", stream.path, item, query), lambda: _taken(run, stream, item, query))
    except NOT_COMPUTED:
        _logger.info("not taken apart: %s", stream.path, exc_info=True)
        st.info(say("not_followed"), icon=":material/info:")
        return
    way = taken.way
    key = f"watched_way_{stream.path}"

    def show(event: object) -> None:
        look_at(state.index_in(event, "query"))

    def open_part(event: object) -> None:
        path = event.get("path") if isinstance(event, Mapping) else None
        if path not in way.paths:
            return
        show(event)
        if state.has_index(event, "head"):
            head = state.index_in(event, "head")
            show_heads(run, path, head=head)
        else:
            state.watch(watched_stage=path)
            state.select(view="step")

    query = min(query, len(way.tokens.labels) - 1)
    mount(token_way(way, selected=query, seq=state.last_seq(key), key=key), open=open_part, shown=show)
    st.caption(taken.caption(taken.check(_tolerance(run, stream))))


def _taken(run: WatchedRun, stream: Stream, item: int, query: int) -> Taken:
    followed = followed_of_watched(run, stream, item)
    return take_apart(followed, window_of(followed, query))


def _stream(run: WatchedRun, choices: Choices) -> Stream:
    """The stream that the chosen attention writes to; without a choice the one that the answer is read from."""
    found = watched_contributions(run)
    chosen = choices.watched.watched_attention
    answering = [stream for stream in found.streams if found.answer_of(stream) is not None]
    default = [*answering, *found.streams][0]
    if chosen not in run.trace.paths:
        return default
    return next((stream for stream in found.streams if chosen in found.attentions_of(stream)), default)


def _tolerance(run: WatchedRun, stream: Stream) -> float:
    value = run.trace.stages[stream.path].value
    return TOLERANCE if value is not None and value.dtype in (torch.float32, torch.float64) else _ROUNDED
