"""Find heads: a measure of every head of every layer, as a map and in order, with the chosen head beside it."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st
import torch

from headlight.attention import Attention
from headlight.findings import is_cross
from model.analysis import metrics
from model.texts import texts_of
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import visible_whole
from visualizer.server.mount import mount
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.head_map import clicked, head_maps
from visualizer.views.watched.window import choose_window, chosen_heads

say = texts_of(__name__)


def choose(run: WatchedRun, choices: Choices) -> None:
    """Choose the measure and, where heads of several stacks can be measured, the stack."""
    kinds = _kinds(run)
    if not kinds:
        return
    widgets.choice("watched_measure", label_visibility="collapsed", width=210)
    if len(kinds) > 1:
        firsts = [kind[0].path for kind in kinds]
        here = _kind_of(kinds, run, choices)[0].path
        st.selectbox(
            say("stack"),
            firsts,
            index=firsts.index(here),
            format_func=visible_whole,
            label_visibility="collapsed",
            width=300,
            **widgets.following("stack_of_heads", here, lambda one: state.watch(watched_attention=one)),
        )


def render(run: WatchedRun, choices: Choices) -> None:
    """Draw the panel."""
    kinds = _kinds(run)
    if not kinds:
        st.info(say("nothing"), icon=":material/info:")
        return
    kind = _kind_of(kinds, run, choices)
    chosen = run.attention(choices.watched.watched_attention)
    attention = chosen if chosen in kind else kind[0]
    measure = choices.watched.watched_measure
    values = run.once(("search", measure, kind[0].path), lambda: measured(run, kind, measure))
    if np.isnan(values).all():
        st.info(say("empty"), icon=":material/info:")
        return
    head = min(choices.watched.watched_head, values.shape[1] - 1)
    picture, ranking = st.columns([3, 1], gap="medium")
    with picture:
        _draw(run, kind, attention, values, head, choices)
    with ranking:
        _rank(kind, values, metrics.METRICS[measure].title)


def measured(run: WatchedRun, kind: tuple[Attention, ...], measure: str) -> np.ndarray:
    """Measure every head of some attentions on their first sequence, (L, H); NaN where it does not apply."""
    return np.stack([metrics.METRICS[measure].compute(_given(run, one)).double().numpy() for one in kind])


def _kinds(run: WatchedRun) -> list[tuple[Attention, ...]]:
    """The attentions that can be measured, by kind."""
    return [kind for kind in run.kinds if all(map(_is_measured, kind))]


def _kind_of(kinds: list[tuple[Attention, ...]], run: WatchedRun, choices: Choices) -> tuple[Attention, ...]:
    """The kind of the attention that is looked at, or the first."""
    chosen = run.attention(choices.watched.watched_attention)
    return next((kind for kind in kinds if chosen in kind), kinds[0])


def _is_measured(attention: Attention) -> bool:
    """True for a sequence's attention to all of itself, whose weights were kept."""
    _, _, n_queries, n_keys = attention.shape
    return attention.weights is not None and not is_cross(attention) and n_queries == n_keys - attention.sinks


def _given(run: WatchedRun, attention: Attention) -> metrics.Attention:
    if attention.weights is None:
        raise ValueError(f"no weights of {attention.path} were kept")
    n_tokens = attention.shape[2]
    texts = run.labels(attention, 0)[0] or tuple(map(str, range(n_tokens)))
    numbers = {text: number for number, text in enumerate(texts)}
    ids = torch.tensor([[numbers[text] for text in texts]])
    no_padding = torch.zeros(1, n_tokens, dtype=torch.bool)
    weights = attention.weights[:1, :, :, :n_tokens].detach().cpu().float()
    return metrics.Attention(weights, ids, ids, no_padding, no_padding, is_self_attention=True)


def _draw(
    run: WatchedRun,
    kind: tuple[Attention, ...],
    attention: Attention,
    values: np.ndarray,
    head: int,
    choices: Choices,
) -> None:
    """Draw the map, and the weights of the chosen head beside it."""
    picture = chosen_heads(run, attention.path, choices).alone()
    choose_window(picture, head, choices)
    blocked, title = picture.blocked, metrics.METRICS[choices.watched.watched_measure].title
    weights = Panel(
        "weights",
        say("weights"),
        picture.weights[0, head],
        picture.rows,
        picture.columns,
        say("of_head", path=visible_whole(attention.path), head=head),
        "weights",
        bounds=(0.0, 1.0),
        blocked=None if blocked is None else blocked[0, min(head, blocked.shape[1] - 1)],
        blocked_by=() if blocked is None else ("mask",),
    )
    maps = head_maps({title: values}, kind.index(attention), head)
    select = clicked(lambda layer, head: _choose(kind, layer, head), len(maps))
    mount(tensor_grid([*maps, weights], key="head_map"), select=select)


def _choose(kind: tuple[Attention, ...], layer: int, head: int) -> None:
    state.watch(watched_attention=kind[min(layer, len(kind) - 1)].path, watched_head=head)


def _rank(kind: tuple[Attention, ...], values: np.ndarray, title: str) -> None:
    """Draw the list of all heads, the largest number first; a click on a line shows its head."""
    places = sorted(np.ndindex(*values.shape), key=lambda place: -np.nan_to_num(values[place], nan=-math.inf))
    key = "head_ranking"

    def choose(event: object) -> None:
        rows = getattr(getattr(event, "selection", None), "rows", ())
        if rows:
            _choose(kind, *places[rows[0]])

    st.dataframe(
        {
            say("layer"): [layer for layer, _ in places],
            say("head"): [head for _, head in places],
            title: [float(values[place].round(3)) for place in places],
        },
        hide_index=True,
        height=min(38 + 35 * len(places), 460),
        selection_mode="single-row",
        on_select=state.on_change(key, choose),
        key=key,
    )
