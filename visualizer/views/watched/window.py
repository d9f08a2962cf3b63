"""The part of the heads that is drawn where there are too many queries or keys, and the way to the others."""

from __future__ import annotations

import streamlit as st

from model.texts import texts_of
from visualizer.pictures.watched_heads import WatchedHeads, watched_heads
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import as_code
from visualizer.state import state, widgets
from visualizer.state.state import Choices

say = texts_of(__name__)
_STEP = 256


def chosen_heads(run: WatchedRun, path: str, choices: Choices) -> WatchedHeads:
    """The picture of an attention, as far as it is drawn."""
    watched = choices.watched
    return watched_heads(run, path, watched.watched_item, (watched.watched_first_query, watched.watched_first_key))


def choose_window(picture: WatchedHeads, head: int, choices: Choices) -> None:
    """Choose the part that is drawn, with the controls that move it; nothing where that is everything."""
    if not picture.is_part:
        return
    _, _, n_queries, n_keys = picture.attention.shape
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="watched_window"):
        if n_queries > picture.n_queries:
            widgets.number("watched_first_query", step=_STEP, width=170)
        if n_keys > picture.n_keys:
            widgets.number("watched_first_key", step=_STEP, width=170)
        drawn_queries, drawn_keys = picture.window
        st.caption(say("drawn", queries=_part(drawn_queries, n_queries), keys=_part(drawn_keys, n_keys)))
    _say_largest(picture, head, min(choices.watched.watched_query, n_queries - 1))


def _part(drawn: slice, size: int) -> str:
    return say("part", first=drawn.start, last=drawn.stop - 1, size=size)


def _say_largest(picture: WatchedHeads, head: int, query: int) -> None:
    """Say where the largest weight of the chosen query's whole row is, with a way there if it is not drawn."""
    found = picture.largest(head, query)
    if found is None:
        return
    key, weight = found
    queries, keys = picture.run.labels(picture.attention, picture.item)
    said = say("largest", query=_named(query, queries), head=head, weight=weight, key=_named(key, keys))
    is_drawn = picture.cell(query, key) is not None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="watched_largest"):
        st.caption(f"{said}." if is_drawn else say("not_drawn", said=said), width="content")
        if not is_drawn:
            st.button(
                say("go"),
                key="watched_go_to_largest",
                on_click=state.callback(
                    state.watch,
                    watched_query=query,
                    watched_key=key,
                    watched_first_query=query // _STEP * _STEP,
                    watched_first_key=key // _STEP * _STEP,
                ),
                type="tertiary",
            )


def _named(place: int, texts: tuple[str, ...]) -> str:
    return f"{place:,} {as_code(texts[place])}" if texts else f"{place:,}"
