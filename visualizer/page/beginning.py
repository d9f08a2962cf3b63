"""The start of the guided path, for a page that stands before torch is loaded."""

from __future__ import annotations


def begin() -> None:
    """Start the path, or go on where it was left, as a callback does."""
    from visualizer.guide.walking import go_to  # brings torch, which the page does without
    from visualizer.state import state

    go_to(max(1, state.chosen().selection.stop))
