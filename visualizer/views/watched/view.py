"""Any model: doors to the trace of another model, and the trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from visualizer.runs.watched import WatchedRun
from visualizer.state import widgets
from visualizer.state.state import Choices
from visualizer.views.watched import recordings, search, way
from visualizer.views.watched.pretrained import door as pretrained
from visualizer.views.watched.pretrained import edited, other_mask, prove, writing
from visualizer.views.watched.trace import show_trace

DOORS: Mapping[str, Callable[[Choices], WatchedRun | None]] = {
    "recording": recordings.render,
    "pretrained": pretrained.render,
}
"""Each draws its controls and gives what is open; None where nothing is, after saying what to do."""

PANELS: Mapping[str, Callable[[WatchedRun, Choices], None]] = {
    "search": search.render,
    "way": way.render,
    "write": writing.render,
    "mask": other_mask.render,
    "edits": edited.render,
    "prove": prove.render,
}
"""The panels of a run beside its trace, where the run has them."""


def render(choices: Choices) -> None:
    """Draw the view."""
    if len(DOORS) > 1:
        widgets.segments("watched_door", label_visibility="collapsed", help=None, required=True)
    run = DOORS[choices.watched.watched_door](choices)
    if run is not None:
        show_trace(run, choices, PANELS)
