"""The painting in words: the expression, where it is wrong, and what to start from."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from model.mask_tools.language import READY, MaskExpressionError, from_mask_mod, parse
from visualizer.runs.masks_in_force import as_expression
from visualizer.safe_text import markdown_safe
from visualizer.session import drafts, state
from visualizer.settings.settings import FIELDS, Settings, in_mask_order
from visualizer.views.lab import mask_edits
from visualizer.views.lab.case import Case
from visualizer.views.lab.pointing import pointed_at

_EXPRESSION = "expression"
_START = "start_from"


def render(case: Case) -> None:
    """Draw it."""
    _expression(case)
    _complaint(case)
    _force(case)


def _expression(case: Case) -> None:
    source = mask_edits.source_in(case.settings, case.scope)
    shown = as_expression(source, case.context)
    drafts.keep_in_step(_EXPRESSION, shown)

    def write(text: str) -> None:
        if settings := _written(case, text):
            case.change_masks(settings)

    st.text_input(
        "Allowed where",
        key=_EXPRESSION,
        placeholder=_placeholder(case),
        help="q and k are the positions of query and key, h and b the numbers of the head and of the sequence. Use "
        "+ - * // %, comparisons, and, or, not, abs(), is_pad(), segment(), token(), same_token. A mask_mod of "
        "FlexAttention can be pasted as it is, with q_idx, kv_idx, &, |, ~, its comments and constants. An empty "
        "line takes away what is painted for these heads.",
        on_change=state.on_change(_EXPRESSION, write),
    )


def _placeholder(case: Case) -> str:
    if mask_edits.source_in(case.settings, case.scope):
        return "painted cell by cell: too irregular for a short expression"
    return "for example: k <= q and not is_pad(k)"


def _written(case: Case, text: str) -> Settings | None:
    """The settings with what was written; None where it is no expression."""
    try:
        return mask_edits.with_expression(case.settings, case.scope, text, case.context)
    except MaskExpressionError:
        return None


def _complaint(case: Case) -> None:
    """What is wrong with the expression as it stands, and where."""
    text = drafts.text_in(_EXPRESSION)
    if not text.strip():
        return
    expression = text
    try:
        expression = from_mask_mod(text)
        parse(expression).evaluate(case.context)
    except MaskExpressionError as error:
        st.code(pointed_at(expression, error), language=None)
        st.caption(markdown_safe(f"{error}."))  # beside the code it would be cut, and not wrapped


def _force(case: Case) -> None:
    """A painting stays while the mask "Painted" is not chosen: say so, and offer to choose it."""
    settings = case.settings
    if not settings.custom or "custom" in settings.mask:
        return

    def put_in_force() -> None:
        case.change_masks(replace(settings, mask=in_mask_order((*settings.mask, "custom"))))

    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="not_in_force"):
        st.caption("This painting is not in force.", width="content")
        st.button("Put it in force", key="put_in_force", on_click=state.callback(put_in_force), type="tertiary")


def start_from(case: Case) -> None:
    """Draw the choice of a mask or an expression to go on from."""
    starts = _starts(case)

    def start(title: str | None) -> None:
        if title is None:
            return
        name, text = starts[title]
        drafts.fill(_START, None)
        case.change_masks(mask_edits.started_from(case.settings, case.scope, text, name))

    st.selectbox(
        "Start from",
        list(starts),
        index=None,
        placeholder="a ready mask",
        key=_START,
        help="Paints a ready mask, to go on from there.",
        on_change=state.on_change(_START, start),
    )


def _starts(case: Case) -> dict[str, tuple[str, str]]:
    """What can be started from: title -> the mask of the list that it is, or "", and its expression."""
    masks = {
        FIELDS["mask"].choices[name]: (name, write(case.settings, case.context))
        for name, write in mask_edits.AS_EXPRESSIONS.items()
    }
    known = {text for _, text in masks.values()}
    ready = {f"{one.title}: {one.text}": ("", one.text) for one in READY if one.text not in known}
    return {f"{title}: {text}": (name, text) for title, (name, text) in masks.items()} | ready
