"""The process, tuned: each piece has the figure that it earns, on two cores.

Memory: a pass that is recorded keeps all its tensors, so that each new one lies in memory that was never
touched. At 64 tokens it takes 1.6 times a pass that is not recorded where the C library asks the system for
fresh pages, and 1.1 times where it takes up what earlier ones gave back (``benchmarks/recording.py``). With one
heap for all threads eight people's thousand runs take 1.25 GiB, and 1.65 GiB with one for each
(``benchmarks/memory.py``).

Garbage: a collection holds the interpreter. With all that was imported, PyTorch among it, one takes longer than
a run of the script. Streamlit's own, after every run, is therefore switched off (``runner.postScriptGC``): with
it, ten people who change something once a second wait for 3.2 s, and for 0.03 s without
(``benchmarks/load.py``).

Turns: threads that compute at the same time share one interpreter, and each waits for all of them; in a row the
first is served after a fraction of it. Of forty pupils who change something once a second half wait for 0.14 s,
and for 1.0 s where all are drawn at once (``benchmarks/load.py``).
"""

from __future__ import annotations

import ctypes
import gc
import platform
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic

_MIB = 2**20
_OPTIONS = {
    "M_ARENA_MAX": (-8, 1),
    "M_MMAP_THRESHOLD": (-3, 32 * _MIB),
    "M_TRIM_THRESHOLD": (-1, 256 * _MIB),
    "M_TOP_PAD": (-2, 64 * _MIB),
}
"""The options of glibc, as in mallopt(3): each option's number there and its value."""


def keep_freed_memory() -> bool:
    """Have the process take up memory that was given back, in one heap; at most 256 MiB at its end stay unused.

    Returns:
        True if it was told; False where the C library is another one, and nothing changes.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all(mallopt(number, value) == 1 for number, value in _OPTIONS.values())


EVERY_SECONDS = 3.0
"""The seconds between two collections of garbage while pages are changed."""

_imported = {"modules": 0}
_HAS_RUN = Event()


def freeze_imports() -> None:
    """Leave what was imported since out of the collections. For the end of a run, when the page has left."""
    _HAS_RUN.set()
    n_modules = len(sys.modules)
    if n_modules > _imported["modules"]:
        _imported["modules"] = n_modules
        gc.collect()
        gc.freeze()


def collect_at_intervals() -> None:
    """Have a thread collect every few seconds while pages are changed."""
    Thread(target=_collect_again_and_again, args=(Event().wait,), name="garbage", daemon=True).start()


def _collect_again_and_again(wait: Callable[[float], bool]) -> None:
    """Collect after each pause in which the script has run, until a pause is broken off."""
    while not wait(EVERY_SECONDS):
        if _HAS_RUN.is_set():
            _HAS_RUN.clear()
            gc.collect()


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
