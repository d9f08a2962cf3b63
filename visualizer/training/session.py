"""The one job of a session: what it trains, and how to begin and to find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from model.training import Experiment, Recipe
from visualizer import state
from visualizer.training.job import TrainingJob

_KEY = "training"


@dataclass(frozen=True, eq=False)
class Started:
    """A job that was started in this session.

    Attributes:
        job: the job.
        number: counts the jobs of the session, so that each has widgets of its own.
        names: what a person calls each of its trainings; empty for a single one.
        question: what to ask of the results; empty for a single one.
    """

    job: TrainingJob
    number: int
    names: tuple[str, ...]
    question: str


def current() -> Started | None:
    """The job that was started last in this session."""
    started = state.put_by_before(_KEY)
    return started if isinstance(started, Started) else None


def start_training(recipe: Recipe) -> Started:
    """Train one recipe, in place of what this session has been training.

    Raises:
        ValueError: too much is being trained already.
    """
    return _start((recipe,), ("",), question="")


def start_experiment(experiment: Experiment) -> Started:
    """Train both recipes of an experiment, in place of what this session has been training.

    Raises:
        ValueError: too much is being trained already.
    """
    recipes = (experiment.intact, experiment.changed)
    return _start(recipes, difference(*recipes), experiment.question)


def difference(one: Recipe, other: Recipe) -> tuple[str, str]:
    """What to call two recipes that differ in one thing."""
    for name, say in _NAMES.items():
        if getattr(one, name) != getattr(other, name):
            return say(getattr(one, name)), say(getattr(other, name))
    return "One", "Other"


_NAMES: Mapping[str, Callable[[Any], str]] = {
    "is_causal": lambda is_causal: "With the causal mask" if is_causal else "Without the causal mask",
    "positions": lambda positions: "Without positions" if positions == "none" else f"With {positions} positions",
    "scale_scores": lambda scaled: "Scores divided by √d_k" if scaled else "Scores not divided",
    "n_heads": lambda n_heads: "One head" if n_heads == 1 else f"{n_heads} heads",
}


def _start(recipes: tuple[Recipe, ...], names: tuple[str, ...], question: str) -> Started:
    before = current()
    if before is not None:
        before.job.stop()
    number = 0 if before is None else before.number + 1
    started = Started(TrainingJob(recipes), number, names, question)
    state.put_by(_KEY, started)
    return started
