"""The recipes that a choice asks for: one recipe, or the two of an experiment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from model.learning.tasks import TASKS, Task
from model.learning.training import EXPERIMENTS, RECIPES, Recipe
from model.texts import texts_of
from visualizer.settings.training_settings import NO_EXPERIMENT, NUMBERS, TrainingChoice

say = texts_of(__name__)


@dataclass(frozen=True)
class Plan:
    """The recipes to train.

    Attributes:
        title: what a person calls it.
        recipes: one, or two that differ in one thing.
        names: what a person calls each of the two; empty for a single one.
        question: what to ask of the two results; empty for a single one.
    """

    title: str
    recipes: tuple[Recipe, ...]
    names: tuple[str, ...] = ("",)
    question: str = ""

    @property
    def name(self) -> str:
        """The name in a link."""
        return hashlib.sha256(repr(self.recipes).encode()).hexdigest()[:12]

    @property
    def task(self) -> Task:
        """The task that is learned."""
        return TASKS[self.recipes[0].task]


def plan_of(choice: TrainingChoice) -> Plan:
    """Return the plan that is chosen.

    Raises:
        ValueError: the recipe is refused.
    """
    if choice.train_experiment != NO_EXPERIMENT:
        experiment = EXPERIMENTS[choice.train_experiment]
        recipes = (experiment.intact, experiment.changed)
        return Plan(experiment.title, recipes, difference(*recipes), experiment.question)
    numbers = {name: getattr(choice, f"train_{name}") for name in NUMBERS}
    return Plan(TASKS[choice.train_task].title, (replace(RECIPES[choice.train_task], **numbers),))


def usual_plan(task: str) -> Plan:
    """The usual recipe of a task."""
    return Plan(TASKS[task].title, (RECIPES[task],))


def difference(one: Recipe, other: Recipe) -> tuple[str, str]:
    """Return the names of two recipes that differ in one thing."""
    for name, called in _NAMES.items():
        if getattr(one, name) != getattr(other, name):
            return called(getattr(one, name)), called(getattr(other, name))
    return say("one"), say("other")


_NAMES: Mapping[str, Callable[[Any], str]] = {
    "is_causal": lambda is_causal: say("causal") if is_causal else say("not_causal"),
    "positions": lambda positions: say("no_positions") if positions == "none" else say("positions", kind=positions),
    "scale_scores": lambda scaled: say("scaled") if scaled else say("unscaled"),
    "n_heads": lambda n_heads: say("one_head") if n_heads == 1 else say("heads", n_heads=n_heads),
}
