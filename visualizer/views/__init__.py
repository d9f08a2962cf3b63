"""One module per view, with ``render(run, selection)``, or ``render(choice)`` where there is no run."""

from __future__ import annotations

from collections.abc import Callable

from visualizer.runs.run import Run
from visualizer.settings.settings import Selection
from visualizer.settings.training_settings import TrainingChoice
from visualizer.views import compare, heads, step, token_way
from visualizer.views.generate import view as generate
from visualizer.views.lab import view as lab
from visualizer.views.train import view as train

VIEWS: dict[str, Callable[[Run, Selection], None]] = {
    "step": step.render,
    "way": token_way.render,
    "heads": heads.render,
    "compare": compare.render,
    "lab": lab.render,
    "generate": generate.render,
}
"""The views of a finished run."""

VIEWS_OF_BATCH = ("step",)
"""Those that show a batch as it is; the others are given one sequence of it alone."""

VIEWS_WITHOUT_RUN: dict[str, Callable[[TrainingChoice], None]] = {
    "train": train.render,
}
"""The views that compute what they show by themselves."""
