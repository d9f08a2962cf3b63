"""One module per view, with ``render(run, selection)``, or ``render(choices)`` where there is no run."""

from __future__ import annotations

from collections.abc import Callable

from visualizer.runs.run import Run
from visualizer.settings.settings import Selection
from visualizer.state.state import Choices
from visualizer.views import compare, heads, step, token_way
from visualizer.views.generate import view as generate
from visualizer.views.lab import view as lab
from visualizer.views.train import view as train
from visualizer.views.watched import view as watched

VIEWS: dict[str, Callable[[Run, Selection], None]] = {
    "way": token_way.render,
    "step": step.render,
    "heads": heads.render,
    "compare": compare.render,
    "lab": lab.render,
    "generate": generate.render,
}
"""The views of a finished run."""

VIEWS_OF_BATCH = ("step",)
"""Those that show a batch as it is; the others are given one sequence of it alone."""

VIEWS_WITHOUT_RUN: dict[str, Callable[[Choices], None]] = {
    "train": lambda choices: train.render(choices.training),
    "watched": watched.render,
}
"""The views that compute what they show by themselves."""
