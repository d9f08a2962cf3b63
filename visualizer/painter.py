"""The mask that a person paints, cell by cell, above whichever view is drawn."""

from __future__ import annotations

import streamlit as st

from visualizer import state
from visualizer.components.axis import SequenceName
from visualizer.components.mask_painter import mask_painter, parse_mask
from visualizer.custom_mask import decode_mask, encode_mask
from visualizer.run import Run
from visualizer.settings import WORKED_EXAMPLES, Selection

MAX_WIDTH = 420
"""Pixels: the painter must leave the picture it changes in sight."""


def painter(run: Run, selection: Selection) -> None:
    """Draw the painter, if the painted mask is among the masks in use."""
    in_use = {*selection.mask_a, *selection.mask_b} if selection.view == "compare" else {*run.settings.mask}
    if "custom" not in in_use or run.settings.weights in WORKED_EXAMPLES:
        return
    sequence: SequenceName = "target" if "target" in run.tokens else "source"
    labels = run.tokens[sequence].labels

    def paint(event: object) -> None:
        if (blocked := parse_mask(event, len(labels))) is not None:
            state.change(custom=encode_mask(blocked))

    key = "mask_painter"
    with st.expander("Paint the mask", expanded=True, icon=":material/brush:"), st.container(width=MAX_WIDTH):
        mask_painter(
            decode_mask(run.settings.custom, len(labels)),
            labels=labels,
            sequence=sequence,
            seq=state.last_seq(key),
            key=key,
            on_paint=state.on_event(key, "paint", paint),
        )
