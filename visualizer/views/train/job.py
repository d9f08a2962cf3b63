"""A training that runs by itself, in a process of its own, and can be looked at meanwhile."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from model.learning.training import Progress, Recipe
from model.learning.worker import Reports, Trainer, reports_of_a_process

AT_ONCE = 4
"""How many jobs of one process may run at the same time."""

UNWATCHED_SECONDS = 10.0
"""A job that nobody has looked at for so long stops: the page was closed."""

FORESEEN_FROM = 0.02
"""How much must be done before the time left is foreseen: the held-out texts are asked often where it begins."""

SLOTS = threading.BoundedSemaphore(AT_ONCE)
"""One for each job that may run, shared by all sessions of the process."""

Phase = Literal["running", "finished", "stopped", "unwatched", "failed", "recorded", "untrained"]
"""What a job is doing, or why it no longer does; or what else there is to see without one."""


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
    """

    recipe: Recipe
    steps: tuple[int, ...] = ()
    losses: tuple[float, ...] = ()
    matched: tuple[int, ...] = ()
    matches: tuple[float, ...] = ()
    snapshots: tuple[Progress, ...] = ()
    latest: Progress | None = None

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
        """How much of it is done, from 0 to 1."""
        return 0.0 if self.latest is None else self.latest.step / self.recipe.steps

    @property
    def moments(self) -> tuple[Progress, ...]:
        """All whose weights are there: the snapshots, and the newest where that is none."""
        if self.latest is None or self.latest in self.snapshots:
            return self.snapshots
        return (*self.snapshots, self.latest)

    @property
    def n_bytes(self) -> int:
        """How much memory the weights take."""
        return sum(weight.nbytes for moment in self.moments for weight in moment.weights.values())


@dataclass(frozen=True, eq=False)
class JobState:
    """A job at one moment.

    Attributes:
        trainings: one for each recipe.
        phase: what it is doing.
        seconds: how long it has been running, or ran.
    """

    trainings: tuple[Training, ...]
    phase: Phase
    seconds: float

    @property
    def is_running(self) -> bool:
        """Whether there is more to come."""
        return self.phase == "running"

    @property
    def fraction(self) -> float:
        """How much of all steps is done, from 0 to 1."""
        done = sum(training.fraction * training.recipe.steps for training in self.trainings)
        return done / sum(training.recipe.steps for training in self.trainings)

    @property
    def seconds_left(self) -> float | None:
        """How long it will still take if it goes on like this; None while too little is done to say."""
        if self.fraction < FORESEEN_FROM:
            return None
        return self.seconds * (1 - self.fraction) / self.fraction

    @property
    def n_bytes(self) -> int:
        """How much memory the weights take."""
        return sum(training.n_bytes for training in self.trainings)


_PATIENCE = 1.0  # seconds for a job to end after its next report


class TrainingJob:
    """Trains one recipe, or several in turns so that their curves grow side by side.

    Whoever looks at a job gets a ``JobState`` of its own, which never changes.

    Args:
        recipes: what to train.
        clock: seconds that pass.
        slots: from which the job takes one while it runs.
        trained: trains, and says how it goes.

    Raises:
        ValueError: no slot is free.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        *,
        clock: Callable[[], float] = time.monotonic,
        slots: threading.Semaphore = SLOTS,
        trained: Trainer = reports_of_a_process,
    ) -> None:
        if not slots.acquire(blocking=False):
            raise ValueError("As many models as this server has room for are being trained: try again in a minute.")
        self._clock, self._slots = clock, slots
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._began = clock()
        self._watched = {"": self._began}  # by whom, and when last
        self._state = JobState(tuple(map(Training, recipes)), "running", 0.0)
        self._thread = threading.Thread(target=self._run, args=(trained(recipes),), name="training", daemon=True)
        self._thread.start()

    def peek(self) -> JobState:
        """What there is, which does not keep the job from being stopped."""
        with self._lock:
            return self._state

    def look(self, watcher: str = "") -> JobState:
        """What there is. A job that nobody looks at stops."""
        with self._lock:
            self._watched[watcher] = self._clock()
            return self._state

    def leave(self, watcher: str) -> JobState:
        """Look no more: the job ends, unless somebody else looks at it. Gives what it has come to."""
        with self._lock:
            self._watched.pop(watcher, None)
            self._watched.pop("", None)  # nobody in particular: it was just started
        return self.peek() if self._is_watched() else self.stop()

    def stop(self) -> JobState:
        """End it after the current steps, and give what it came to."""
        with self._lock:
            self._stop.set()
            if self._state.is_running:
                self._state = replace(self._state, phase="stopped")
        self._thread.join(_PATIENCE)
        return self.peek()

    def _is_watched(self) -> bool:
        with self._lock:
            last = max(self._watched.values(), default=-math.inf)
        return self._clock() - last <= UNWATCHED_SECONDS

    def _run(self, reports: Generator[Reports]) -> None:
        phase: Phase = "failed"
        try:
            phase = self._follow(reports)
        finally:
            self._slots.release()
            with self._lock:
                self._state = replace(self._state, phase=phase, seconds=self._clock() - self._began)

    def _follow(self, reports: Generator[Reports]) -> Phase:
        """Take what is reported until there is no more, or no more is wanted."""
        with closing(reports) as each:
            for index, progress in each:
                if self._stop.is_set():
                    return "stopped"
                if not self._is_watched():
                    return "unwatched"
                self._report(index, progress)
        return "finished"

    def _report(self, index: int, reports: Sequence[Progress]) -> None:
        with self._lock:
            if self._stop.is_set():
                return
            trainings = list(self._state.trainings)
            if all(training.latest is None for training in trainings):
                self._began = self._clock()  # until now the process was only starting
            for progress in reports:
                trainings[index] = trainings[index].after(progress)
            self._state = JobState(tuple(trainings), "running", self._clock() - self._began)
