"""The trainings of this server: those that run, and as many of the finished ones as there is room for.

A training follows from its recipe, so it is found by that: after a reload, from a link, by another visitor.
"""

from __future__ import annotations

from functools import lru_cache

from model.learning.training import Progress, Recipe, train
from model.learning.training_recordings import recorded
from visualizer.views.train.job import Training, Trainings, start_job
from visualizer.work.cache import Cache
from visualizer.work.jobs import Job, Jobs, Seen
from visualizer.work.trainings import Trainer, reports_of_a_process

Recipes = tuple[Recipe, ...]

KEPT_BYTES = 256 * 2**20
"""The most memory that trainings may take that have ended; the newest is always kept."""


class KnownTrainings:
    """The jobs of a process by what they train.

    Args:
        kept_bytes: the most memory that ended trainings may take together.
        trained: how a job trains, as ``start_job`` takes it.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES, trained: Trainer = reports_of_a_process) -> None:
        self._trained = trained
        self._jobs: Jobs[Trainings] = Jobs()
        self._ended: Cache[tuple[Recipes, bool], Seen[Trainings]] = Cache(kept_bytes, size=_n_bytes)

    def start(self, recipes: Recipes) -> Job[Trainings]:
        """The job that trains these: the one that runs, or else a new one.

        Raises:
            ValueError: too much is being trained already.
        """

        def keep(seen: Seen[Trainings]) -> None:
            is_finished = seen.phase == "finished"
            if not (is_finished and self.finished(recipes)):  # the same numbers; pages show the first one's seconds
                self._ended.put((recipes, is_finished), seen)

        return self._jobs.start(recipes, lambda: start_job(recipes, self._trained, keep=keep))

    def running(self, recipes: Recipes) -> Job[Trainings] | None:
        """The job that is training these now."""
        job = self._jobs.of(recipes)
        return job if job is not None and job.peek().is_running else None

    def finished(self, recipes: Recipes) -> Seen[Trainings] | None:
        """Return the results of these recipes, where they were trained to the end."""
        return self._ended.get((recipes, True))

    def interrupted(self, recipes: Recipes) -> Seen[Trainings] | None:
        """Return the results of these recipes, where their training ended before that."""
        return self._ended.get((recipes, False))


def _n_bytes(seen: Seen[Trainings]) -> int:
    return sum(training.n_bytes for training in seen.value)


KNOWN_TRAININGS = KnownTrainings()
"""Those of this process."""


@lru_cache(maxsize=8)
def recorded_state(recipes: Recipes) -> Seen[Trainings] | None:
    """The recordings of these; None where one of them was not recorded."""
    found = [recorded(recipe) for recipe in recipes]
    trainings = []
    for recording in found:
        if recording is None:
            return None
        snapshots = tuple(
            Progress(step, recording.losses[step], recording.matches[step], weights)
            for step, weights in recording.snapshots.items()
        )
        trainings.append(
            Training(
                recording.recipe,
                tuple(recording.losses),
                tuple(recording.losses.values()),
                tuple(recording.matches),
                tuple(recording.matches.values()),
                snapshots,
                snapshots[-1],
                "recorded",
            )
        )
    seconds = sum(each.seconds for each in found if each is not None)
    return Seen(tuple(trainings), "finished", 1.0, seconds)


@lru_cache(maxsize=8)
def untrained_state(recipes: Recipes) -> Seen[Trainings]:
    """These before the first step: what random weights do."""
    trainings = (Training(recipe, origin="untrained").after(next(train(recipe))) for recipe in recipes)
    return Seen(tuple(trainings), "stopped")
