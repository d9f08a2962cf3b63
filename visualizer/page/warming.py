"""The work of a server before its first visitor comes: PyTorch takes a second or two to load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event, Thread

from visualizer.server.mount import script
from visualizer.server.tuning import collect_at_intervals, keep_freed_memory
from visualizer.settings.examples import OPENING

FOR_A_VISITOR = 1.0
"""Seconds that a server that has just been started waits for a visitor before it loads PyTorch."""

FOR_A_PICTURE = 4.0
"""Seconds that it then waits at most until the visitor has the picture: loading takes the time of sending."""

_IS_WARMING, _IS_WARM, _HAS_VISITOR, _HAS_PICTURE = Event(), Event(), Event(), Event()


def is_warm() -> bool:
    """True if all that a picture needs is loaded; False where no server loads it beforehand."""
    return _IS_WARM.is_set()


def is_warming() -> bool:
    """True if a server loads it, or has done so."""
    return _IS_WARMING.is_set()


def wait_for_picture() -> None:
    """A visitor is being sent a picture that needs no PyTorch."""
    _HAS_VISITOR.set()


def picture_is_there() -> None:
    """A visitor has it."""
    _HAS_PICTURE.set()


@asynccontextmanager
async def warmed(_app: object) -> AsyncIterator[None]:
    """The life of the server: while it starts to answer, a thread loads all that a picture needs."""
    keep_freed_memory()
    collect_at_intervals()
    script()
    _IS_WARMING.set()
    Thread(target=_warm, name="warming", daemon=True).start()
    yield


def _warm() -> None:
    """Import the modules that draw a view, and cache the run that the page opens with."""
    if not _HAS_PICTURE.wait(FOR_A_VISITOR) and _HAS_VISITOR.is_set():
        _HAS_PICTURE.wait(FOR_A_PICTURE)
    import visualizer.page.show  # noqa: F401 - the import is what is wanted
    from visualizer.work.cache import cached_run

    cached_run(OPENING.settings)
    _IS_WARM.set()
