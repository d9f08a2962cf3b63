"""The way from a run of the model to a file that opens under Any model, and that ``headlight.load`` reads."""

from __future__ import annotations

from html import escape

import streamlit as st

from visualizer.routes.address import recording_address
from visualizer.runs.run import Run


def save_run(run: Run) -> None:
    """The link that saves a run; the file is written when it is followed. None where no link carries the run."""
    if address := recording_address(*run.subject):
        says = "Every stage with its parameters, as a file that opens under Any model and in your own code."
        st.html(
            f'<a href="{escape(address)}" download="run.headlight" title="{says}">Save as a recording</a>',
            width="content",
        )
