"""The way from a run of the model to a file that opens as a recording, and that ``headlight.load`` reads."""

from __future__ import annotations

from html import escape

import streamlit as st

from model.texts import texts_of
from visualizer.routes.address import recording_address
from visualizer.runs.run import Run

say = texts_of(__name__)


def save_run(run: Run) -> None:
    """The link that saves a run; the file is written when it is followed. None where no link carries the run."""
    if run.interventions:
        st.caption(say("edited"))
    elif address := recording_address(*run.subject):
        st.html(
            f'<a href="{escape(address)}" download="run.headlight" title="{say("help")}">{say("save")}</a>',
            width="content",
        )
