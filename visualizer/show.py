"""The finished run in the chosen view, or one sentence on why there is none."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from visualizer import page, state
from visualizer.cache import cached_run
from visualizer.painter import painter
from visualizer.run import Run, with_layer
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
    choices = _found_in(run, choices)
    path = with_layer(run.trace, choices.selection.stage, choices.selection.layer)
    page.strip(run.tokens, choices, queried=run.axes(path)[0].sequence or "source")
    if run.about:
        st.caption(run.about)
    if run.n_batch_items > 1:
        page.batch_items(run.n_batch_items)
    painter(run, choices.selection)
    VIEWS[choices.selection.view](run, choices.selection)


def _found_in(run: Run, choices: Choices) -> Choices:
    """The choices, where a link names a place that this run does not have with the nearest that it has."""
    selection = run.nearest(choices.selection)
    wrong = [
        name for name in choices.given if getattr(selection, name, None) != getattr(choices.selection, name, None)
    ]
    if not wrong:
        return choices
    page.notices(
        [
            f"{name}={getattr(choices.selection, name)} is not in this run: {getattr(selection, name)} is shown."
            for name in sorted(wrong)
        ]
    )
    found = replace(choices, selection=selection)
    state.save(found)
    return found
