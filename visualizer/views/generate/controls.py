"""The controls that say how the next token is chosen."""

from __future__ import annotations

import streamlit as st

from model.decoding import GREEDY, Sampling
from model.texts import texts_of
from visualizer.runs.continuation import Beam, OneByOne
from visualizer.runs.writer import Writer
from visualizer.settings.settings import FIELDS
from visualizer.settings.view_choices import GenerateChoice
from visualizer.state import state, widgets
from visualizer.state.widget_values import give, give_emptiable

say = texts_of(__name__)


def chosen_strategy(chosen: GenerateChoice, writer: Writer, n_tokens: int) -> OneByOne | Beam:
    """The strategy that is chosen, with its numbers.

    Args:
        chosen: what is chosen.
        writer: the model.
        n_tokens: the size of its vocabulary.
    """
    limit = _limit(chosen, writer)
    if chosen.strategy == "beam":
        return Beam(chosen.beams, chosen.length_penalty, limit)
    if chosen.strategy == "greedy":
        return OneByOne(GREEDY, limit, chosen.cached)
    top_k = min(chosen.top_k, n_tokens) or None
    sampling = Sampling(chosen.temperature, top_k, chosen.top_p, chosen.draws)
    return OneByOne(sampling, limit, chosen.cached)


def choose_strategy(chosen: GenerateChoice, writer: Writer, n_tokens: int) -> None:
    """Draw the controls of what ``chosen_strategy`` gives."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="how_it_writes"):
        widgets.segments("strategy", required=True, width="content", label_visibility="collapsed", help=None)
        with st.expander(say("options"), key="options"):  # there from the start: its fields have their values
            _choose_limit(chosen, writer)
            if chosen.strategy == "sampling":
                widgets.slider("temperature", step=0.1)
                _choose_top_k(chosen, n_tokens)
                widgets.slider("top_p", step=0.05)
                widgets.number("draws")
            if chosen.strategy == "beam":
                widgets.slider("beams")
                widgets.slider("length_penalty", step=0.1)
            else:
                widgets.switch("cached")


def _limit(chosen: GenerateChoice, writer: Writer) -> int:
    return min(chosen.limit or writer.usual_limit, writer.longest)


def _choose_limit(chosen: GenerateChoice, writer: Writer) -> None:
    """The usual number is no choice: another model has another one."""
    name, shown = "most_tokens", _limit(chosen, writer)

    def take(limit: int) -> None:
        state.select(limit=0 if limit == writer.usual_limit else limit)

    st.number_input(
        FIELDS["limit"].label,
        min_value=1,
        max_value=writer.longest,
        value=shown,
        help=say("knows_no_end") if writer.end is None else say("ends_by_itself"),
        key=give(name, shown),
        on_change=state.on_change(name, take),
    )


def _choose_top_k(chosen: GenerateChoice, n_tokens: int) -> None:
    """An empty field is no limit."""
    field, name, shown = FIELDS["top_k"], "likely_tokens_left", min(chosen.top_k, n_tokens) or None

    def take(top_k: int | None) -> None:
        state.select(top_k=top_k or 0)

    st.number_input(
        field.label,
        min_value=1,
        max_value=n_tokens,
        value=None,
        placeholder=say("all_tokens"),
        help=field.help,
        key=give_emptiable(name, shown),
        on_change=state.on_change(name, take),
    )
