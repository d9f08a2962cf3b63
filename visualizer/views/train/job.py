"""A training as far as it has come, and the job that trains it in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal

from model.learning.training import Progress, Recipe
from visualizer.work.jobs import Job, Report
from visualizer.work.trainings import Trainer, reports_of_a_process

Origin = Literal["trained", "recorded", "untrained"]
"""The origin of numbers: a training on this server, a recording, or weights that no training has touched."""


@dataclass(frozen=True, eq=False)
class Training:
    """One recipe as far as it has been trained.

    Attributes:
        recipe: what is trained.
        steps: after which steps there is a loss.
        losses: in nats per token, one for each of ``steps``.
        matched: after which steps there is an exact match.
        matches: the exact matches, one for each of ``matched``.
        snapshots: moments whose weights are kept, each with an exact match, the first before the first step.
        latest: the newest moment; None before there is one.
        origin: where all of this comes from.
    """

    recipe: Recipe
    steps: tuple[int, ...] = ()
    losses: tuple[float, ...] = ()
    matched: tuple[int, ...] = ()
    matches: tuple[float, ...] = ()
    snapshots: tuple[Progress, ...] = ()
    latest: Progress | None = None
    origin: Origin = "trained"

    def after(self, progress: Progress) -> Training:
        """The same with one more report."""
        reported = replace(
            self, steps=(*self.steps, progress.step), losses=(*self.losses, progress.loss), latest=progress
        )
        if progress.exact_match is None:
            return reported
        return replace(
            reported,
            matched=(*self.matched, progress.step),
            matches=(*self.matches, progress.exact_match),
            snapshots=(*self.snapshots, progress),
        )

    @property
    def fraction(self) -> float:
        """The fraction that is done, from 0 to 1."""
        return 0.0 if self.latest is None else self.latest.step / self.recipe.steps

    @property
    def moments(self) -> tuple[Progress, ...]:
        """All whose weights are there: the snapshots, and the newest where that is none."""
        if self.latest is None or self.latest in self.snapshots:
            return self.snapshots
        return (*self.snapshots, self.latest)

    @property
    def n_bytes(self) -> int:
        """The memory of the weights, in bytes."""
        return sum(weight.nbytes for moment in self.moments for weight in moment.weights.values())


Trainings = tuple[Training, ...]
"""One for each recipe that is trained in turns, so that their curves grow side by side."""


def start_job(recipes: Sequence[Recipe], trained: Trainer = reports_of_a_process, **more: Any) -> Job[Trainings]:  # noqa: ANN401
    """Train in the background.

    Args:
        recipes: what to train.
        trained: trains, and says how it goes.
        more: arguments of ``Job``.

    Raises:
        ValueError: as ``Job``.
    """
    begun = tuple(map(Training, recipes))

    def work(report: Report[Trainings]) -> None:
        trainings = list(begun)
        with closing(trained(recipes)) as reports:
            for found in reports:
                index, progress = found or (0, ())
                for each in progress:
                    trainings[index] = trainings[index].after(each)
                report(tuple(trainings), fraction_of(trainings))

    return Job(begun, work, **more)


def fraction_of(trainings: Sequence[Training]) -> float:
    """Return the fraction of all steps that is done, from 0 to 1."""
    done = sum(training.fraction * training.recipe.steps for training in trainings)
    return done / sum(training.recipe.steps for training in trainings)
