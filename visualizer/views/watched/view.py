"""A pass of a model that was not built here, in the views that draw what was seen of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from visualizer.runs.watched import WatchedRun
from visualizer.settings.sources import SourceName
from visualizer.state.state import Choices
from visualizer.views.watched import operations, recordings, way
from visualizer.views.watched.panels import OnTop
from visualizer.views.watched.pretrained import door as pretrained
from visualizer.views.watched.trace import show_trace

OPENED: Mapping[SourceName, Callable[[Choices, OnTop, Callable[[], None]], WatchedRun | None]] = {
    "recording": recordings.render,
    "pretrained": pretrained.render,
}
"""Each gives what is open; None where nothing is, after saying what to do."""

DRAWN: Mapping[str, Callable[[WatchedRun, Choices], None]] = {
    "step": operations.render,
    "way": way.render,
}
"""The views that are not of one attention, which ``show_trace`` draws itself."""


def show_other_model(choices: Choices, strip: OnTop, no_strip: Callable[[], None]) -> None:
    """Draw the model that is open.

    Args:
        choices: what is chosen.
        strip: draws the tokens above the view.
        no_strip: draws what stands there without tokens.
    """
    run = OPENED[choices.selection.source](choices, strip, no_strip)
    if run is not None:
        show_trace(run, choices, DRAWN)
