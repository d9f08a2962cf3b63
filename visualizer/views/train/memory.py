"""The trainings of this server: those that run, and as many of the finished ones as there is room for.

A training follows from its recipe, so it is found by that: after a reload, from a link, by another visitor.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache

from model.learning.recordings import recorded
from model.learning.training import Progress, Recipe, train
from model.learning.worker import Trainer, reports_of_a_process
from visualizer.views.train.job import Training, Trainings, start_job
from visualizer.work.jobs import Job, Seen

Recipes = tuple[Recipe, ...]

KEPT_BYTES = 256 * 2**20
"""The most memory that trainings may take that have ended; the newest is always kept."""


class Memory:
    """The jobs of a process by what they train.

    Args:
        kept_bytes: the most memory that ended trainings may take together.
        trained: how a job trains, as ``start_job`` takes it.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES, trained: Trainer = reports_of_a_process) -> None:
        self._kept_bytes, self._trained = kept_bytes, trained
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Recipes, Job[Trainings]] = OrderedDict()
        self._finished: OrderedDict[Recipes, Seen[Trainings]] = OrderedDict()

    def start(self, recipes: Recipes) -> Job[Trainings]:
        """The job that trains these: the one that runs, or else a new one.

        Raises:
            ValueError: too much is being trained already.
        """
        with self._lock:
            before = self._jobs.get(recipes)
            if before is not None and before.peek().is_running:
                return before
            job = start_job(recipes, self._trained)
            if before is not None:
                self._set_aside(recipes, before.peek())
            self._jobs[recipes] = job
            self._jobs.move_to_end(recipes)
            self._forget()
            return job

    def running(self, recipes: Recipes) -> Job[Trainings] | None:
        """The job that is training these now."""
        with self._lock:
            job = self._jobs.get(recipes)
        return job if job is not None and job.peek().is_running else None

    def finished(self, recipes: Recipes) -> Seen[Trainings] | None:
        """Return the results of these recipes, where they were trained to the end."""
        with self._lock:
            job = self._jobs.get(recipes)
            if job is not None and job.peek().phase == "finished":
                return job.peek()
            return self._finished.get(recipes)

    def interrupted(self, recipes: Recipes) -> Seen[Trainings] | None:
        """Return the results of these recipes, where their training ended before that."""
        with self._lock:
            job = self._jobs.get(recipes)
        return job.peek() if job is not None and job.peek().phase in ("stopped", "unwatched", "failed") else None

    def _set_aside(self, recipes: Recipes, state: Seen[Trainings]) -> None:
        """Keep what was finished while the same is trained again."""
        if state.phase == "finished":
            self._finished[recipes] = state
            self._finished.move_to_end(recipes)

    def _forget(self) -> None:
        """Forget the oldest of what has ended, until the rest fits."""
        ended = [recipes for recipes, job in self._jobs.items() if not job.peek().is_running]
        total = sum(map(_n_bytes, [*self._finished.values(), *(self._jobs[recipes].peek() for recipes in ended)]))
        while total > self._kept_bytes and self._finished:
            total -= _n_bytes(self._finished.popitem(last=False)[1])
        for recipes in ended:
            if total <= self._kept_bytes:
                return
            total -= _n_bytes(self._jobs.pop(recipes).peek())


def _n_bytes(seen: Seen[Trainings]) -> int:
    return sum(training.n_bytes for training in seen.value)


MEMORY = Memory()
"""The memory of this process."""


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
