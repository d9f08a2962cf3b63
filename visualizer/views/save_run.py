"""The way from a run of the model to a file that opens under Any model, and that ``headlight.load`` reads."""

from __future__ import annotations

import streamlit as st

from visualizer.runs.run import Run
from visualizer.runs.saved import as_file
from visualizer.session.cache import recalled


def save_run(run: Run) -> None:
    """The button that saves a run; the file is written when it is pressed."""
    recall = recalled(run)
    st.download_button(
        "Save as a recording",
        data=lambda: as_file(recall()),
        file_name="run.headlight",
        mime="application/octet-stream",
        icon=":material/download:",
        key="save_run",
        help="Every stage with its parameters, as a file that opens under Any model and in your own code.",
        on_click="ignore",
        type="tertiary",
    )
