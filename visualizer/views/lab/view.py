"""Mask lab: paint, say, explain, lint, translate and prove a mask."""

from __future__ import annotations

import streamlit as st

from visualizer.runs.run import Run
from visualizer.session import widgets
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.gallery import GALLERY
from visualizer.settings.settings import Selection
from visualizer.views.lab import applied, blocks, doors, intent, load, paint, prove, reach, say, score, translate
from visualizer.views.lab.case import Case, case_of
from visualizer.views.predict.covered import covered, say_covered

PANELS = {
    "translate": translate.render,
    "load": load.render,
    "apply": applied.render,
    "scores": score.render,
    "blocks": blocks.render,
    "reach": reach.render,
    "prove": prove.render,
}
"""What can be done with a mask, in the order of the buttons."""

_OF_RESULTS = {
    "apply": "The weights of a row under every way of masking",
    "scores": "The scores of a head",
    "prove": "How each output depends on each token",
}
"""The tools that show what was computed, and what that is."""


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    doors.render(run, selection)
    is_example = run.settings.weights in WORKED_EXAMPLES
    if is_example or selection.panel != "load":
        widgets.examples("Cases", GALLERY, key="gallery", button_key="case_{}")
    if is_example:
        st.info(
            "A worked example is shown as it was published: to paint a mask, take other weights, or a case above."
        )
        return
    case = case_of(run, selection)
    if selection.panel == "load":
        _tools(case)
        return
    _which_mask(case)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="meant"):
        intent.render(case)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="paint_for"):
        paint.heads(case)
        say.start_from(case)
    painting, tools = st.columns([6, 5], gap="medium")
    with painting:
        if selection.hidden:
            covered("The weights that the mask leaves")
        say.render(case)
        paint.render(case)
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
    widgets.segments("panel", help=None, label_visibility="collapsed", wrap=True)
    panel = case.selection.panel
    if case.selection.hidden and panel in _OF_RESULTS:
        say_covered(_OF_RESULTS[panel])
        return
    PANELS[panel](case)
