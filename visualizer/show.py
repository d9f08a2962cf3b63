"""The finished run in the chosen view, or one sentence on why there is none."""

from __future__ import annotations

import streamlit as st

from visualizer import page
from visualizer.cache import cached_run
from visualizer.painter import painter
from visualizer.settings import WORKED_EXAMPLES
from visualizer.state import Choices
from visualizer.tokens import markdown_safe
from visualizer.views import VIEWS


def show(choices: Choices) -> None:
    """Compute and draw what is chosen."""
    try:
        run = cached_run(choices.settings)
    except ValueError as error:
        st.error(markdown_safe(str(error)), icon=":material/error:")
        return
    if choices.settings.weights in WORKED_EXAMPLES:
        page.strip(run.tokens, choices)
    if run.n_batch_items > 1:
        page.batch_items(run.n_batch_items)
    painter(run, choices.selection)
    VIEWS[choices.selection.view](run, choices.selection)
