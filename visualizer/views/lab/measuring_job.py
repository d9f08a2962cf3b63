"""A measurement that runs in a thread of its own, so that the page answers meanwhile."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

UNWATCHED_SECONDS = 5.0
"""A job that nobody has looked at for so long ends: something else is on the page."""


class _EndedError(Exception):
    pass


class MeasuringJob:
    """Does one piece of work that tells how far it is, until it is done, stopped or no longer looked at.

    Args:
        subject: what is measured; whoever finds a job can tell by it whether it is the one to wait for.
        work: called in the thread with a function that takes the fraction done. What that function raises ends it.
        clock: seconds that pass.
    """

    def __init__(
        self,
        subject: object,
        work: Callable[[Callable[[float], None]], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.subject = subject
        self._work, self._clock = work, clock
        self._done, self._watched = 0.0, clock()
        self._first: tuple[float, float] | None = None  # the fraction first reported, and when
        self._last = (0.0, clock())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="measuring", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether there is more to come."""
        return self._thread.is_alive()

    def look(self) -> float:
        """The fraction done. A job that is not looked at ends."""
        self._watched = self._clock()
        return self._done

    @property
    def seconds_left(self) -> float | None:
        """How long it will go on at the pace so far; None before the pace is known."""
        if self._first is None:
            return None
        (first, began), (done, now) = self._first, self._last
        return (now - began) / (done - first) * (1 - done) if done > first else None

    def stop(self) -> None:
        """End it, and wait until it has."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.suppress(_EndedError):
            self._work(self._report)

    def _report(self, done: float) -> None:
        if self._stop.is_set() or self._clock() - self._watched > UNWATCHED_SECONDS:
            raise _EndedError
        self._done, self._last = done, (done, self._clock())
        self._first = self._first or self._last
