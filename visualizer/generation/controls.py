"""How the next token is to be chosen."""

from __future__ import annotations

import streamlit as st

from model.decoding import GREEDY, Sampling
from visualizer.generation.writer import Writer
from visualizer.generation.writing import Beam, OneByOne

WIDEST_BEAM = 5
_STRATEGIES = {"greedy": "Greedy", "sampling": "Sampling", "beam": "Beam search"}
_WHAT_THEY_DO = {
    "greedy": "always the most likely token.",
    "sampling": "a token is drawn by its probability, after temperature, top-k and top-p.",
    "beam": "the most probable sequences of each length are kept side by side.",
}


def choose_strategy(writer: Writer, n_tokens: int) -> OneByOne | Beam:
    """The strategy with its numbers.

    Args:
        writer: the model.
        n_tokens: the size of its vocabulary.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="strategy"):
        name = st.segmented_control(
            "Strategy",
            list(_STRATEGIES),
            default="greedy",
            format_func=_STRATEGIES.__getitem__,
            key="generate_strategy",
            help="  \n".join(f"**{_STRATEGIES[each]}**: {what}" for each, what in _WHAT_THEY_DO.items()),
            required=True,
            persist_state="page",
            width="content",
        )
        limit = _limit(writer)
        if name == "beam":
            how: OneByOne | Beam = _beam(limit)
        else:
            sampling = GREEDY if name == "greedy" else _sampling(n_tokens)
            how = OneByOne(sampling, limit, _cached())
    return how


def _limit(writer: Writer) -> int:
    stops = "The model stops by itself at <eos>." if writer.end is not None else "This model knows no end token."
    limit: int = st.number_input(
        "Tokens at most",
        min_value=1,
        max_value=writer.longest,
        value=writer.usual_limit,
        help=stops.replace("<", "\\<"),
        # The bounds are in the key: another model starts from its own usual number.
        key=f"generate_limit_{writer.usual_limit}_{writer.longest}",
        persist_state="page",
        width=130,
    )
    return limit


def _sampling(n_tokens: int) -> Sampling:
    temperature = st.slider(
        "Temperature",
        0.1,
        3.0,
        1.0,
        step=0.1,
        help="What the logits are divided by. Below 1 the likely tokens gain, above 1 the unlikely ones.",
        key="generate_temperature",
        persist_state="page",
        width=190,
    )
    top_k = st.number_input(
        "Top-k",
        min_value=1,
        max_value=n_tokens,
        value=None,
        placeholder="all",
        help="Only so many of the most likely tokens are left. Empty: all.",
        key=f"generate_top_k_{n_tokens}",
        persist_state="page",
        width=110,
    )
    top_p = st.slider(
        "Top-p",
        0.05,
        1.0,
        1.0,
        step=0.05,
        help="Of these, the fewest that together reach this probability.",
        key="generate_top_p",
        persist_state="page",
        width=190,
    )
    seed = st.number_input(
        "Seed of the draws",
        min_value=0,
        max_value=2**32 - 1,
        value=0,
        help="The same seed draws the same numbers, one for each place.",
        key="generate_seed",
        persist_state="page",
        width=130,
    )
    return Sampling(temperature, top_k, top_p, seed)


def _cached() -> bool:
    cached: bool = st.toggle(
        "Key/value cache",
        key="generate_cached",
        help="Keep the keys and values of earlier tokens instead of computing them again at every step.",
        persist_state="page",
    )
    return cached


def _beam(limit: int) -> Beam:
    width = st.slider(
        "Width",
        1,
        WIDEST_BEAM,
        3,
        help="How many sequences of each length are kept. 1 is greedy.",
        key="generate_width",
        persist_state="page",
        width=190,
    )
    penalty = st.slider(
        "Length penalty",
        0.0,
        2.0,
        0.6,
        step=0.1,
        help="The sum of log-probabilities is divided by ((5 + length) / 6) to this power; more favours long ones.",
        key="generate_penalty",
        persist_state="page",
        width=190,
    )
    return Beam(width, penalty, limit)
