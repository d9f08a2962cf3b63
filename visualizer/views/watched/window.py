"""The part of the heads that is drawn where there are too many queries or keys, and the way to the others."""

from __future__ import annotations

import streamlit as st

from headlight.attentions import Attention
from model.texts import texts_of
from visualizer.runs.recording_run import window_of
from visualizer.runs.watched import WatchedRun, plane
from visualizer.safe_text import as_code
from visualizer.settings.settings import Selection
from visualizer.settings.watched_settings import MOST_SIDE
from visualizer.shares import part_of
from visualizer.state import state, widgets
from visualizer.state.places import STEP

say = texts_of(__name__)


def choose_window(attention: Attention, selection: Selection, run: WatchedRun) -> None:
    """Choose the part that is drawn, with the controls that move it; nothing where that is everything."""
    _, _, n_queries, n_keys = attention.shape
    if max(n_queries, n_keys) <= MOST_SIDE:
        return
    chosen = state.chosen().watched
    queries, keys = window_of(attention, (chosen.watched_first_query, chosen.watched_first_key))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="watched_window"):
        if n_queries > MOST_SIDE:
            widgets.number("watched_first_query", step=STEP, width=170)
        if n_keys > MOST_SIDE:
            widgets.number("watched_first_key", step=STEP, width=170)
        st.caption(say("drawn", queries=part_of(n_queries, queries), keys=part_of(n_keys, keys)))
    query = min(queries.start + selection.query, queries.stop - 1)
    _say_largest(run, attention, selection, query, keys)


def _say_largest(run: WatchedRun, attention: Attention, selection: Selection, query: int, keys: slice) -> None:
    """Say where the largest weight of the chosen query's whole row is, with a way there if it is not drawn."""
    head = min(selection.head, attention.n_heads - 1)
    if attention.weights is None:
        return
    row = plane(attention.weights, selection.batch)[head, query].float()
    if bool(row.isnan().any()):
        return
    key = int(row.argmax())
    of_queries, of_keys = run.labels(attention, selection.batch)
    of_query, of_key = _named(query, of_queries), _named(key, of_keys)
    said = say("largest", query=of_query, head=head, weight=float(row.max()), key=of_key)
    is_drawn = keys.start <= key < keys.stop
    first = key // STEP * STEP

    def go() -> None:
        state.watch(watched_first_key=first)
        state.select(key=key - first)

    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="watched_largest"):
        st.caption(f"{said}." if is_drawn else say("not_drawn", said=said), width="content")
        if not is_drawn:
            st.button(say("go"), key="watched_go_to_largest", on_click=state.callback(go), type="tertiary")


def _named(place: int, texts: tuple[str, ...]) -> str:
    return f"{place:,} {as_code(texts[place])}" if texts else f"{place:,}"
