"""The views, a record each: link, page and tests follow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """A view.

    Attributes:
        label: its name on the page.
        module: the module in ``visualizer/views/`` whose ``render(run, selection)`` draws it; ``render(choices)``
            where it has no run.
        has_run: it shows a run of the chosen model; else a model of its own.
        shows_batch: it shows a batch as it is; the others are given one sequence of it alone.
        asks: a result that is hidden can be asked about in it, whatever is chosen there.
        draws_heads: its picture has the heads, with the masks that are pressed beside them.
    """

    label: str
    module: str
    has_run: bool = True
    shows_batch: bool = False
    asks: bool = False
    draws_heads: bool = False


VIEWS: Mapping[str, View] = {
    "way": View("Follow a token", "token_way"),
    "step": View("Step through", "step", shows_batch=True, asks=True),
    "heads": View("Heads", "heads", asks=True, draws_heads=True),
    "compare": View("Compare", "compare", asks=True, draws_heads=True),
    "lab": View("Mask lab", "lab.view"),
    "train": View("Train", "train.view", has_run=False),
    "generate": View("Generate", "generate.view"),
}
"""The views by their names in a link, in the order of their menu."""
