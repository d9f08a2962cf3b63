"""The painting in words: the expression, where it is wrong, and what to start from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import streamlit as st

from headlight.masks.language import READY, MaskExpressionError
from model.texts import listed, texts_of
from visualizer.masks import MASK_KINDS
from visualizer.runs.masks_in_force import as_expression
from visualizer.settings.settings import Settings, in_mask_order, name_of_mask
from visualizer.state import drafts, state, widget_values, widgets
from visualizer.views.lab import mask_edits
from visualizer.views.lab.case import Case
from visualizer.views.lab.pointing import complain

say = texts_of(__name__)
_EXPRESSION = "expression"
_REPLACED = "replaced_masks"


def expression(case: Case) -> None:
    """Draw the mask as an expression: what is painted, else the masks in force."""
    settings = case.settings
    shown = (
        as_expression(mask_edits.source_in(settings, case.scope), case.context)
        if settings.custom
        else case.expression
    )

    def written(text: str, before: Settings) -> Settings:
        found = mask_edits.with_expression(before, case.scope, text, case.beside_painting(before), case.context)
        return replace(found, mask=_replaced() or found.mask) if before.custom and not found.custom else found

    def write(text: str) -> None:
        if not text.strip():
            widget_values.forget_drafts(_EXPRESSION)
        with suppress(MaskExpressionError):
            _replace(case, partial(written, text))

    with st.container(key="allowed_where"):
        st.text_input(
            say("allowed_where"),
            **widget_values.give_draft(_EXPRESSION, shown),
            placeholder=_placeholder(case),
            help=say("allowed_where_help"),
            on_change=state.on_change(_EXPRESSION, write),
        )


def complaint(case: Case) -> None:
    """Draw what is wrong with the expression."""
    complain(str(widget_values.shown_in(_EXPRESSION) or ""), case.context, say("stays"))


def in_force(case: Case) -> None:
    """Draw what is in force beside the painting, below it: the first stroke is not to move the grid."""
    _also_under(case)
    _force(case)


def _placeholder(case: Case) -> str:
    return say("irregular") if mask_edits.source_in(case.settings, case.scope) else say("example")


def _replace(case: Case, change: Callable[[Settings], Settings]) -> None:
    """Put other masks in force, and note which were before, to be had beside them by a switch."""

    def replaced(before: Settings) -> Settings:
        after = change(before)
        if names := tuple(name for name in before.mask if name not in after.mask):
            drafts.put_by(_REPLACED, (state.examples_opened(), names))
        return after

    case.change_masks(replaced)


def _replaced() -> tuple[str, ...]:
    """The masks that were replaced last, by name, since an example was opened."""
    match drafts.put_by_before(_REPLACED):
        case (opened, tuple(names)) if opened == state.examples_opened():
            return names
    return ()


def _also_under(case: Case) -> None:
    """The switch for the masks beside the painting, and what it comes to."""
    settings = case.settings
    beside = tuple(name for name in settings.mask if name != "custom")
    names = beside or _replaced()
    if not (settings.custom and "custom" in settings.mask and case.attention.has_the_list and names):
        return
    said = listed(map(name_of_mask, names))

    def turn(are_beside: bool) -> None:
        masks = in_mask_order((*(names if are_beside else ()), "custom"))
        _replace(case, lambda before: replace(before, mask=masks))

    shown = widgets.following("beside_the_painting", bool(beside), turn)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="also_under"):
        st.toggle(say("also", masks=said), value=bool(beside), width="content", **shown)
        st.caption(say("both", masks=said) if beside else say("alone"), width="content")


def _force(case: Case) -> None:
    """A painting stays while the mask "Painted" is not chosen: say so, and offer to choose it."""
    settings = case.settings
    if not settings.custom or "custom" in settings.mask:
        return

    def put_in_force() -> None:
        case.change_masks(lambda before: replace(before, mask=in_mask_order((*before.mask, "custom"))))

    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="not_in_force"):
        st.caption(say("not_in_force"), width="content")
        st.button(say("put_in_force"), key="put_in_force", on_click=state.callback(put_in_force), type="tertiary")


def start_from(case: Case) -> None:
    """Draw the choice of a mask or an expression to go on from."""

    def start(text: str) -> None:
        _replace(case, lambda before: case.put_in_place(before, text))

    masks = {
        kind.label: mask_edits.expression_of(name, case.settings, case.context)
        for name, kind in MASK_KINDS.items()
        if kind.expression
    }
    ready = {one.title: one.text for one in READY if one.text not in masks.values()}
    widgets.menu(
        say("start_from"),
        {f"{title}: {text}": partial(start, text) for title, text in (masks | ready).items()},
        key="start_from",
        placeholder=say("start_from_which"),
        help=say("start_from_help"),
    )
