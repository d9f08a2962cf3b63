"""Work that takes seconds or minutes: in a thread of its own, watched by whoever asked for it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from model.texts import texts_of
from visualizer.state.visitors import has_page

say = texts_of(__name__)

AT_ONCE = 4
"""The number of jobs of this server that may run at the same time."""

UNWATCHED_SECONDS = 10.0
"""A job that nobody has looked at for so long stops: the page was closed, or something else is on it."""

LEFT_SECONDS = 3.0
"""The same once somebody has left it: others ask every two seconds at least."""

FORESEEN_FROM = 0.02
"""The share to be done before the time left is foreseen: the first pace is seldom that of the rest."""

SLOTS = threading.BoundedSemaphore(AT_ONCE)
"""One for each job that may run, shared by all sessions."""

Phase = Literal["running", "finished", "stopped", "unwatched", "failed"]
"""The phase of a job, or the reason why it ended."""

Value = TypeVar("Value")
Report = Callable[[Value, float], None]
"""Takes what there is so far, and the fraction done. It raises where the work is to end."""

_PATIENCE = 1.0  # seconds for a job to end after its next report
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Seen(Generic[Value]):
    """A job at one moment.

    Attributes:
        value: what there is so far.
        phase: what it is doing.
        fraction: how much is done, from 0 to 1.
        seconds: how long it has been running since its first report, or ran.
        seconds_left: how long it will go on at the best pace so far; None before that is known, or once it is over.
        failure: what went wrong, where it failed.
    """

    value: Value
    phase: Phase = "running"
    fraction: float = 0.0
    seconds: float = 0.0
    seconds_left: float | None = None
    failure: str = ""

    @property
    def is_running(self) -> bool:
        """True if there is more to come."""
        return self.phase == "running"


class _EndedError(Exception):
    pass


class Job(Generic[Value]):
    """One piece of work, until it is done, stopped or no longer looked at.

    Args:
        value: what there is before the first report.
        work: called in the thread with the function that it reports to.
        stops_unwatched: whether it stops once nobody looks; else it goes on until it is done or left.
        clock: seconds that pass.
        slots: from which the job takes one while it runs.
        keep: is given what it came to, before anybody sees that it has ended.

    Raises:
        ValueError: no slot is free.
    """

    def __init__(
        self,
        value: Value,
        work: Callable[[Report[Value]], object],
        *,
        stops_unwatched: bool = True,
        clock: Callable[[], float] = time.monotonic,
        slots: threading.Semaphore = SLOTS,
        keep: Callable[[Seen[Value]], object] = lambda _: None,
    ) -> None:
        if not slots.acquire(blocking=False):
            raise ValueError(say("no_room"))
        self._clock, self._slots, self._keep = clock, slots, keep
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._watched = {"": clock()}  # by whom, and when last
        self._ends_after = UNWATCHED_SECONDS if stops_unwatched else math.inf
        self._first: tuple[float, float] | None = None  # the fraction first reported, and when
        self._end = math.inf  # the earliest that was foreseen: what is left never grows
        self._seen = Seen(value)
        self._thread = threading.Thread(target=self._run, args=(work,), name="job", daemon=True)
        self._thread.start()

    def peek(self) -> Seen[Value]:
        """Return the job at this moment; unlike ``look``, it does not keep the job from being stopped."""
        with self._lock:
            return self._now()

    def look(self, watcher: str = "") -> Seen[Value]:
        """Return the job at this moment. A job that nobody looks at stops."""
        with self._lock:
            self._watched[watcher] = self._clock()
            return self._now()

    def leave(self, watcher: str) -> Seen[Value]:
        """Look no more: the job ends, unless somebody else looks at it. Gives what it has come to."""
        with self._lock:
            self._watched.pop(watcher, None)
            self._watched.pop("", None)  # nobody in particular: it was just started
            self._watched = {name: at for name, at in self._watched.items() if has_page(name)}
            self._ends_after = LEFT_SECONDS
            if self._is_watched():
                return self._seen
            self._stop.set()
        return self.stop()

    def stop(self) -> Seen[Value]:
        """End it at its next report, and give what it came to."""
        with self._lock:
            self._stop.set()
            if self._seen.is_running:
                self._end_as("stopped")
        self._thread.join(_PATIENCE)
        return self.peek()

    def _is_watched(self) -> bool:
        return self._clock() - max(self._watched.values(), default=-math.inf) <= self._ends_after

    def _end_as(self, phase: Phase, failure: str = "") -> None:
        self._seen = replace(self._seen, phase=phase, seconds=self._seconds(), failure=failure)
        self._keep(self._seen)

    def _run(self, work: Callable[[Report[Value]], object]) -> None:
        phase: Phase = "finished"
        failure = ""
        try:
            work(self._report)
        except _EndedError:
            phase = "stopped" if self._stop.is_set() else "unwatched"
        except Exception as error:
            if self._stop.is_set():  # what is cut off may fail
                phase = "stopped"
            else:
                _logger.exception("A job failed")
                phase, failure = "failed", str(error) or type(error).__name__
        finally:
            self._stop.set()
            self._slots.release()
            with self._lock:
                self._end_as(phase, failure)

    def _report(self, value: Value, fraction: float) -> None:
        with self._lock:
            if self._stop.is_set() or not self._is_watched():
                raise _EndedError
            if self._first is None and value != self._seen.value:  # until now it was only starting
                self._first = (fraction, self._clock())
            seconds, done = self._seconds(), fraction - (self._first or (fraction,))[0]
            if self._first is not None and done >= FORESEEN_FROM:
                self._end = min(self._end, self._clock() + seconds * (1 - fraction) / done)
            self._seen = Seen(value, "running", fraction, seconds)

    def _now(self) -> Seen[Value]:
        """Return the job at this moment with the time left as foreseen; once that is over, none is foreseen."""
        left = self._end - self._clock()
        is_foreseen = self._seen.is_running and 0 <= left < math.inf
        return replace(self._seen, seconds_left=left) if is_foreseen else self._seen

    def _seconds(self) -> float:
        return self._clock() - self._first[1] if self._first else 0.0


class Jobs(Generic[Value]):
    """Jobs by what they are about, which sessions share: those begun last, some of which run.

    Args:
        room: the most that are known.
    """

    def __init__(self, room: int = 32) -> None:
        self._room, self._lock = room, threading.Lock()
        self._jobs: OrderedDict[Hashable, Job[Value]] = OrderedDict()

    def of(self, subject: Hashable) -> Job[Value] | None:
        """Return the last job about something."""
        with self._lock:
            return self._jobs.get(subject)

    def start(self, subject: Hashable, begin: Callable[[], Job[Value]]) -> Job[Value]:
        """Return the job about something that runs, or else a new one.

        Raises:
            ValueError: no slot is free.
        """
        with self._lock:
            job = self._jobs.get(subject)
            if job is None or not job.peek().is_running:
                job = self._jobs[subject] = begin()
            self._jobs.move_to_end(subject)
            while len(self._jobs) > self._room:
                self._jobs.popitem(last=False)
            return job


def duration(seconds: float) -> str:
    """``3 seconds``, ``40 seconds``, ``2 minutes``: as exactly as what is foreseen deserves."""
    if seconds < 10:
        number = max(1, round(seconds))
    elif seconds < 90:
        number = 5 * round(seconds / 5)
    else:
        return say("minutes", n=round(seconds / 60))
    return say("seconds", n=number)
