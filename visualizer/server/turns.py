"""The pages of many people are drawn one after the other.

Threads that compute at the same time share one interpreter, and each waits for all of them; in a row the first is
served after a fraction of it. Of forty pupils who change something once a second (``benchmarks/load.py``, two
cores) half wait for 0.14 s, and for 1.0 s where all are drawn at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock
from time import monotonic

LONGEST = 0.25
"""Seconds after which the next one begins beside who still draws: a long computation holds nobody up for longer."""


class Turns:
    """Lets one thread after the other do something, in the order in which they ask.

    Args:
        longest: seconds after which the next one need not wait any more.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._lock = Lock()
        self._queue: deque[Event] = deque()  # the first one has its turn
        self._begun = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn, and have it while the context is open."""
        mine = Event()
        with self._lock:
            self._queue.append(mine)
            if self._queue[0] is mine:
                self._begin()
        self._wait(mine)
        try:
            yield
        finally:
            with self._lock:
                if self._queue and self._queue[0] is mine:
                    self._next()

    def _wait(self, mine: Event) -> None:
        left = self._longest
        while not mine.wait(left):
            with self._lock:
                left = self._begun + self._longest - monotonic()
                if left <= 0:
                    self._next()
                    left = self._longest

    def _next(self) -> None:
        self._queue.popleft()
        if self._queue:
            self._begin()

    def _begin(self) -> None:
        self._begun = monotonic()
        self._queue[0].set()


PAGES = Turns()
"""The turns of all pages that this server draws."""
