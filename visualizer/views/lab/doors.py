"""What the lab is for, in one sentence, and two ways in."""

from __future__ import annotations

import streamlit as st

from visualizer.runs.masks_in_force import as_source
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.session import state
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Selection
from visualizer.views.lab import mask_edits
from visualizer.views.lab.case import Case, case_of


def render(run: Run, selection: Selection) -> None:
    """Draw the sentence and the doors."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="doors"):
        st.markdown("**Here a mask is compared, cell by cell, with what it should be.**", width="content")
        if run.settings.weights in WORKED_EXAMPLES:
            return
        _draw(case_of(run, selection))


def _draw(case: Case) -> None:
    def take_over() -> None:
        state.select(panel="translate")  # beside which the painter is
        case.change_masks(mask_edits.taken_over(case.settings, case.masks, case.context))

    _to_pretrained(case)
    st.button(
        "I have an array",
        icon=":material/upload_file:",
        type="tertiary",
        key="door_array",
        help="Paste or upload a mask, say where it is passed to, and read what that function makes of it: Load.",
        on_click=state.callback(state.select, panel="load"),
    )
    st.button(
        "I can say or paint it",
        icon=":material/edit:",
        type="tertiary",
        key="door_say",
        help="The masks in force become one expression, which you change under “Allowed where” or by painting.",
        on_click=state.callback(take_over),
    )


def _to_pretrained(case: Case) -> None:
    """The way to the pretrained model that is open beside this: the mask of the head looked at, applied in it."""
    name = state.chosen().watched.pretrained_model
    is_open = state.chosen().watched.watched_door == "pretrained" and name
    if not is_open or case.attention.crosses:
        return

    def apply() -> None:
        mask = as_source(case.allowed, case.context) or "True"
        state.watch(pretrained_mask=mask, watched_panel="mask")
        state.select(view="watched")

    st.button(
        f"Apply in {markdown_safe(visible_whole(name))}",
        icon=":material/arrow_forward:",
        key="door_pretrained",
        help="The mask of the head that is looked at becomes the other mask of the pretrained model, in all heads.",
        on_click=state.callback(apply),
    )
