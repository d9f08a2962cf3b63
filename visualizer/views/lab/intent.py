"""What the mask should be: the question that every part of the lab answers to."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
import torch
from torch import Tensor

from model.mask_tools.intent_kinds import INTENT_KINDS
from model.mask_tools.intents import Intent, guess, recognise
from model.mask_tools.language import MaskContext
from visualizer.runs import intended
from visualizer.runs.intended import EXTRAS, keys_before, write_intent
from visualizer.session import state, widgets
from visualizer.settings.fields import GUESSED, MAX_TOKENS
from visualizer.settings.settings import FIELDS
from visualizer.views.lab.case import Case


def intent_of(case: Case) -> Intent:
    """What the mask of the head that is looked at should be: as chosen, else the best guess."""
    return chosen_intent(case) or guessed_intent(case, case.allowed, case.context)


def chosen_intent(case: Case, context: MaskContext | None = None) -> Intent | None:
    """What was said that a mask over some tokens should be, else over those of the case; None where nothing was."""
    found = intended.chosen_intent(case.selection, case.attention)
    return None if found is None else _placed(found, case, context or case.context)


def guessed_intent(case: Case, allowed: Tensor, context: MaskContext) -> Intent:
    """What a mask was probably meant to be, in the model that is chosen."""
    found = guess(allowed, context, is_decoder=case.attention.path == "decoder.self_attention")
    if context.n_queries == context.n_keys or case.selection.keys_before >= 0:
        return _placed(found, case, context)
    return found if recognise(allowed, context) is not None else _placed(found, case, context)


def _placed(intent: Intent, case: Case, context: MaskContext) -> Intent:
    """The intention with the keys that stand before the first query, where queries and keys differ in number."""
    is_placed = intent.follows_position and context.n_queries != context.n_keys
    return replace(intent, cache=keys_before(case.selection, case.attention) if is_placed else None)


def ask_for_keys_before(n_queries: int, n_keys: int, intent: Intent) -> None:
    """Draw the number of keys before the first query, where it makes a difference, and what it comes to."""
    if n_queries == n_keys or not intent.follows_position:
        return
    widgets.number("keys_before", width=240)
    before = intent.standing(plain_context(n_queries, n_keys)).cache
    st.caption(
        f"{n_queries} queries, {n_keys} keys: query 0 stands beside key {before}, query {n_queries - 1} beside key "
        f"{n_queries - 1 + (before or 0)}.",
        width="content",
    )


def render(case: Case) -> None:
    """Draw the question, with the best guess as its answer until there is another."""
    chosen = chosen_intent(case)
    name = case.attention.intent
    field = FIELDS[name]
    options = [GUESSED, *INTENT_KINDS]
    guessed = guessed_intent(case, case.allowed, case.context)
    intent = chosen or guessed
    # A key of its own for each value and each guess: the value is ours, and the browser keeps an option's text.
    placed = "" if guessed.cache is None else f"_{guessed.cache}"
    key = f"{name}_{GUESSED if chosen is None else chosen.kind}_{write_intent(guessed)}{placed}"

    def choose(kind: str) -> None:
        state.select(**{name: GUESSED if kind == GUESSED else write_intent(_first(kind, guessed))})

    st.selectbox(
        field.label,
        options,
        index=0 if chosen is None else options.index(chosen.kind),
        format_func=lambda kind: f"A guess: {guessed.words}" if kind == GUESSED else INTENT_KINDS[kind].title,
        key=key,
        help=field.help,
        width=300,
        on_change=state.on_change(key, choose),
    )
    if intent.kind == "painted":
        return
    if INTENT_KINDS[intent.kind].number and chosen is not None:
        _number(name, intent)
    _extras(case, intent)
    ask_for_keys_before(*case.size, intent)
    _compare(case, intent)


def _compare(case: Case, intent: Intent) -> None:
    """The way to both masks side by side."""

    def compare() -> None:
        state.select(
            view="compare",
            stage=f"{case.attention.path}.weights",
            mask_a=case.run.settings.mask,
            against_intent=True,
            **{case.attention.intent: write_intent(intent)},
        )

    st.button(
        "Compare with what it should be",
        icon=":material/compare:",
        key="compare_intent",
        on_click=state.callback(compare),
    )


def _first(kind: str, guessed: Intent) -> Intent:
    """A kind with the number to begin with; documents and padding stay as they were guessed."""
    entry = INTENT_KINDS[kind]
    number = guessed.number if guessed.kind == kind else max(entry.usual, entry.least)
    keeps = kind != "painted"
    return Intent(kind, number, guessed.documents and keeps, guessed.padding and keeps)


def _number(name: str, intent: Intent) -> None:
    key = f"{name}_number_{write_intent(intent)}"
    st.number_input(
        INTENT_KINDS[intent.kind].number,
        min_value=INTENT_KINDS[intent.kind].least,
        max_value=MAX_TOKENS,
        value=intent.number,
        step=1,
        key=key,
        width=150,
        on_change=state.on_change(
            key, lambda number: state.select(**{name: write_intent(replace(intent, number=number))})
        ),
    )


def _extras(case: Case, intent: Intent) -> None:
    """Documents and padding, where the text has any or they were asked for."""
    context = case.context
    has = {"documents": len(set(context.key_segments)) > 1, "padding": any(context.key_is_padding)}
    offered = [name for name in EXTRAS if has[name] or getattr(intent, name)]
    for name in offered:
        _extra(case.attention.intent, name, intent)


def _extra(field: str, name: str, intent: Intent) -> None:
    is_on = bool(getattr(intent, name))
    key = f"{field}_{name}_{write_intent(intent)}"
    other = replace(intent, documents=not is_on) if name == "documents" else replace(intent, padding=not is_on)

    def turn() -> None:
        state.select(**{field: write_intent(other)})

    st.checkbox(EXTRAS[name], value=is_on, key=key, on_change=state.callback(turn))


def plain_context(n_queries: int, n_keys: int) -> MaskContext:
    """Tokens of which nothing is known but how many there are."""
    return MaskContext(
        query_tokens=(0,) * n_queries,
        key_tokens=(0,) * n_keys,
        query_is_padding=(False,) * n_queries,
        key_is_padding=(False,) * n_keys,
        query_segments=(0,) * n_queries,
        key_segments=(0,) * n_keys,
    )


def padding_of(context: MaskContext) -> tuple[Tensor, Tensor]:
    """Which queries and which keys are padding, (Tq,) and (Tk,) bool."""
    return torch.tensor(context.query_is_padding), torch.tensor(context.key_is_padding)
