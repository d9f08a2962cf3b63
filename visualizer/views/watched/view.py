"""A pass of a model that was not built here, in the views that draw what was seen of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from visualizer.runs.run import Run
from visualizer.state.state import Choices
from visualizer.views.watched import recordings
from visualizer.views.watched.judged_trace import show_operations, show_trace
from visualizer.views.watched.on_top import OnTop


def show_recording(choices: Choices, strip: OnTop, no_strip: Callable[[], None]) -> None:
    """Draw the recording that is open, or what opens one.

    Args:
        choices: what is chosen.
        strip: draws the tokens above the view.
        no_strip: draws what stands there without tokens.
    """
    recorded = recordings.render(choices, strip, no_strip)
    if recorded is not None:
        show_trace(recorded, replace(choices, selection=replace(choices.selection, hidden=False)))


def show_checkpoint(operations: Run, choices: Choices) -> None:
    """Draw the operations of a checkpoint's pass over the sequence that is looked at."""
    watched = replace(choices.watched, watched_first_query=0)
    alone = replace(choices, selection=replace(choices.selection, batch=0), watched=watched)
    show_operations(operations, alone)
