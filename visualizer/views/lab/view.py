"""Mask lab: paint, say, explain, lint, translate and prove a mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.gallery import GALLERY
from visualizer.settings.settings import Selection
from visualizer.settings.sources import TOOLS_OF_CHECKPOINT
from visualizer.state import state, widgets
from visualizer.views.lab import (
    applied,
    blocks,
    in_words,
    intent,
    load,
    paint,
    prove,
    reach,
    score,
    translate,
)
from visualizer.views.lab.case import Case, attentions_over_tokens, case_of
from visualizer.views.predict.covered import covered, say_covered

say = texts_of(__name__)
PANELS: Mapping[str, Callable[[Case], None]] = {
    "translate": translate.render,
    "apply": applied.render,
    "scores": score.render,
    "blocks": blocks.render,
    "reach": reach.render,
    "prove": prove.render,
}
"""The panels for a painted mask, in the order of the menu."""

_OF_RESULTS = {
    "apply": say("result_of_apply"),
    "scores": say("result_of_scores"),
    "prove": say("result_of_prove"),
}
"""The tools that show what was computed, and what that is."""


def render(run: Run, selection: Selection) -> None:
    """Draw the doors, and what is behind the one that is open."""
    is_example = run.settings.weights in WORKED_EXAMPLES
    if not is_example and not attentions_over_tokens(run):
        st.info(say("not_over_tokens"))
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="doors"):
        if not is_example:
            _doors(case_of(run, selection))
        widgets.menu(
            say("cases"),
            {one.title: partial(state.choose, one.settings, one.selection) for one in GALLERY},
            key="gallery",
            placeholder=say("show_case"),
            label_visibility="collapsed",
            width=200,
        )
    if is_example:
        st.info(say("worked_example"))
    elif selection.lab.panel == "load":
        load.render(case_of(run, selection))
    else:
        _painting(case_of(run, selection))


def _doors(case: Case) -> None:
    panel = case.selection.lab.panel
    for name, title, icon, leads_to in (
        ("array", say("array"), "upload_file", "load"),
        ("say", say("write_or_paint"), "edit", "translate" if panel == "load" else panel),
    ):
        shown = f":material/{icon}: {title}"
        if leads_to == panel:
            st.markdown(f"**{shown}**", width="content")
        else:
            st.button(shown, key=f"door_{name}", on_click=state.callback(state.select, panel=leads_to))


def _painting(case: Case) -> None:
    """The mask in words and the intended one, then the painter with one tool beside it."""
    _which_mask(case)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="meant"):
        in_words.expression(case)
        intent.render(case)
        paint.heads(case)
    in_words.complaint(case)
    painting, tools = st.columns([6, 5], gap="medium")
    with painting:
        if case.selection.hidden:
            covered(say("weights"))
        paint.render(case)
        in_words.in_force(case)
        intent.compare(case)
    with tools:
        _tools(case)


def _which_mask(case: Case) -> None:
    """The choice of the attention whose mask is edited, where there are several, and whether it ignores padding."""
    if case.run.settings.architecture != "encoder-decoder":
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="which_mask"):
        widgets.segments("attention", required=True, width="content")
        if case.attention.padding and "padding" in case.run.settings.mask:
            widgets.switch(case.attention.padding, width="content")


def _tools(case: Case) -> None:
    offered = [name for name in PANELS if not case.run.attentions or name in TOOLS_OF_CHECKPOINT]
    widgets.choice("panel", offered, help=None, label_visibility="collapsed")
    panel = case.selection.lab.panel
    if case.selection.hidden and panel in _OF_RESULTS:
        say_covered(_OF_RESULTS[panel])
    else:
        PANELS[panel](case)
