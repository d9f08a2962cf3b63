"""One module per view, each with ``render(run, selection)``; ``VIEWS`` holds them in menu order."""

from __future__ import annotations

from collections.abc import Callable

from visualizer.run import Run
from visualizer.settings import Selection
from visualizer.views import compare, heads, lab, step

VIEWS: dict[str, Callable[[Run, Selection], None]] = {
    "step": step.render,
    "heads": heads.render,
    "compare": compare.render,
    "lab": lab.render,
}
