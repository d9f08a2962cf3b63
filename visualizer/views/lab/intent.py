"""The mask as it should be: the question that every part of the lab answers to."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
import torch
from torch import Tensor

from headlight.masks.intent_kinds import CELLS_OF_THEIR_OWN, INTENT_KINDS
from headlight.masks.intents import Intent
from headlight.masks.language import MaskContext, MaskExpressionError, from_mask_mod
from model.texts import texts_of
from visualizer.runs import intended
from visualizer.runs.intended import EXTRAS, keys_before, kind_of, read_intent
from visualizer.settings.fields import EXPRESSION, MAX_TOKENS, UNSAID
from visualizer.settings.settings import FIELDS
from visualizer.state import state, widget_values
from visualizer.state.widgets import following
from visualizer.views.lab.case import Case
from visualizer.views.lab.mask_files import pasted
from visualizer.views.lab.pointing import complain

say = texts_of(__name__)
_CONDITION = "expected_condition"
_ARRAY = "expected_array"


def chosen_intent(case: Case, context: MaskContext | None = None) -> Intent | None:
    """Return the intention for a mask over some tokens, else over those of the case; None where nothing was."""
    found, over = intended.chosen_intent(case.selection, case.attention), context or case.context
    if found is not None and found.follows_position and over.n_queries != over.n_keys:
        found = replace(found, cache=keys_before(case.selection, case.attention))
    return _worked_out(found, over)


def intent_of_array(case: Case, context: MaskContext) -> Intent | None:
    """Return the intention for a loaded array over some tokens; None where nothing was."""
    found, before = read_intent(case.selection.lab.intent_array), case.selection.lab.keys_before
    if found is None or found.kind in (*CELLS_OF_THEIR_OWN, "expression"):
        return _worked_out(found, context)
    cache = before if before >= 0 and context.n_queries != context.n_keys else None
    documents, padding = len(set(context.key_segments)) > 1, any(context.key_is_padding)
    return replace(found, cache=cache if found.follows_position else None, documents=documents, padding=padding)


def _worked_out(intent: Intent | None, context: MaskContext) -> Intent | None:
    """The intention, unless its condition cannot be worked out over these tokens."""
    try:
        if intent is not None and intent.kind == "expression":
            intent.expected(context)
    except MaskExpressionError:
        return None
    return intent


def expected_cells(intent: Intent, name: str, painting: Tensor | None = None) -> Tensor | None:
    """The cells, (Tq, Tk), of an intention that is a painting or another array; None for any other.

    Args:
        intent: what was said.
        name: the field that holds it.
        painting: (Tq, Tk), the mask of the painter.

    Raises:
        ValueError: what was given is no mask; one sentence says why.
    """
    if intent.kind == "array":
        text = str(widget_values.shown_in(f"{_ARRAY}_{name}") or "")
        if not text.strip():
            raise ValueError(say("no_array"))
        return _as_cells(pasted(text))
    return painting if intent.kind == "painted" else None


def _as_cells(array: Tensor) -> Tensor:
    """An array that says what is open: True or 1, or 0 beside numbers that block when they are added."""
    array = array.reshape(array.shape[-2:]) if array.numel() == array.shape[-2:].numel() else array
    if array.dim() != 2:
        raise ValueError(say("no_plane", shape=tuple(array.shape)))
    if array.dtype is torch.bool or bool(((array == 0) | (array == 1)).all()):
        return array.bool()
    if bool(((array == 0) | (array < -1)).all()):
        return array == 0
    raise ValueError(say("no_cells"))


def render(case: Case) -> None:
    """Draw the question about the mask of the head that is looked at."""
    name, context = case.attention.intent, case.context
    has = {"documents": len(set(context.key_segments)) > 1, "padding": any(context.key_is_padding)}
    question(name, getattr(case.selection.lab, name), context, "+padding" if has["padding"] else "")
    intent = chosen_intent(case)
    if intent is None or intent.kind in CELLS_OF_THEIR_OWN:
        return
    if intent.kind != "expression":
        for extra in EXTRAS:
            if has[extra] or getattr(intent, extra):
                _extra(name, extra, intent)
    ask_for_past(context, intent)


def question(name: str, said: str, context: MaskContext | None, extras: str) -> None:
    """Draw the kind of an answer, and what belongs to it.

    Args:
        name: the field that holds the answer.
        said: the answer so far.
        context: the tokens that a condition is tried on; None for those of an array.
        extras: what a kind is begun with.
    """
    field, kind = FIELDS[name], kind_of(said)
    options = [UNSAID, *INTENT_KINDS]

    def choose(chosen: str) -> None:
        plain = chosen in (UNSAID, "expression", *CELLS_OF_THEIR_OWN)
        state.select(**{name: EXPRESSION if chosen == "expression" else chosen + ("" if plain else extras)})

    st.selectbox(
        field.label,
        options,
        index=options.index(kind),
        format_func=lambda one: say("unsaid") if one == UNSAID else INTENT_KINDS[one].title,
        width=200,
        **following(f"kind_of_{name}", kind, choose),
    )
    if kind == "expression":
        _condition(name, said, context)
    elif kind == "array":
        _array(name)
    elif kind != UNSAID and INTENT_KINDS[kind].number:
        _number(name, said)


def _condition(name: str, said: str, context: MaskContext | None) -> None:
    key = f"{_CONDITION}_{name}"

    def write(text: str) -> None:
        try:
            text = from_mask_mod(text)
        except MaskExpressionError:
            return
        state.select(**{name: EXPRESSION + " ".join(text.split())})

    with st.container(width=320):
        text = st.text_input(
            say("condition"),
            **widget_values.give_draft(key, said.removeprefix(EXPRESSION)),
            placeholder=say("condition_example"),
            help=say("condition_help"),
            on_change=state.on_change(key, write),
        )
        complain(text, context)


def _array(name: str) -> None:
    st.text_area(
        say("array"),
        key=f"{_ARRAY}_{name}",
        height=80,
        placeholder="[[1, 0], [1, 1]]",
        help=say("array_help"),
        persist_state="page",
        width=320,
    )


def _number(name: str, said: str) -> None:
    kind = INTENT_KINDS[kind_of(said)]
    size = said.partition("+")[0].partition(":")[2]
    number = int(size) if size else None

    def choose(number: int | None) -> None:
        match _said_now(name, kind_of(said)):
            case [_, *extras] if number is not None:
                state.select(**{name: "+".join([f"{kind_of(said)}:{number}", *extras])})

    st.number_input(
        kind.number,
        min_value=kind.least,
        max_value=MAX_TOKENS,
        value=number,
        placeholder=say("how_many"),
        step=1,
        width=170,
        **following(f"number_of_{name}", number, choose),
    )


def _said_now(name: str, kind: str) -> list[str]:
    """The parts of an answer as a callback finds it; none where it is of another kind by then."""
    said = str(getattr(state.now().selection.lab, name))
    return said.split("+") if kind_of(said) == kind else []


def ask_for_past(context: MaskContext, intent: Intent) -> None:
    """Draw the number of keys before the first query, where it makes a difference, and what it comes to."""
    n_queries, n_keys = context.n_queries, context.n_keys
    before = intent.standing(context).cache
    if n_queries == n_keys or before is None:
        return
    field = FIELDS["keys_before"]
    st.number_input(
        field.label,
        min_value=0,
        max_value=int(field.most),
        value=before,
        step=1,
        help=field.help,
        width=190,
        **following("past", before, lambda number: state.select(keys_before=number)),
    )
    last = n_queries - 1
    one = say("one_stands", n_keys=n_keys, key=before)
    several = say("stand", n_queries=n_queries, n_keys=n_keys, key=before, last=last, last_key=last + before)
    st.caption(several if last else one, width="content")


def compare(case: Case) -> None:
    """Draw the way to both masks side by side, once it is said what the mask should be."""
    intent = chosen_intent(case)
    if intent is None or intent.kind in CELLS_OF_THEIR_OWN:
        return

    def go() -> None:
        state.select(
            view="compare",
            stage=f"{case.attention.path}.weights",
            baseline="",
            mask_a=state.now().settings.mask,
            against_intent=True,
        )

    st.button(
        say("compare"),
        icon=":material/compare:",
        key="compare_intent",
        type="tertiary",
        on_click=state.callback(go),
    )


def _extra(field: str, name: str, intent: Intent) -> None:
    is_on = bool(getattr(intent, name))

    def turn(to: bool) -> None:
        match _said_now(field, intent.kind):
            case [kind, *extras]:
                chosen = [one for one in EXTRAS if (to if one == name else one in extras)]
                state.select(**{field: "+".join([kind, *chosen])})

    st.checkbox(EXTRAS[name], value=is_on, **following(f"{name}_of_{field}", is_on, turn))


def padding_of(context: MaskContext) -> tuple[Tensor, Tensor]:
    """Return the queries and the keys that are padding, (Tq,) and (Tk,) bool."""
    return torch.tensor(context.query_is_padding), torch.tensor(context.key_is_padding)
