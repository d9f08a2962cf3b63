"""What a server does before its first visitor comes: PyTorch takes a second or two to load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event, Thread

from visualizer.session.allocator import keep_freed_memory
from visualizer.session.connections import send_at_once
from visualizer.session.mount import script
from visualizer.settings.examples import OPENING

_IS_WARM = Event()


def is_warm() -> bool:
    """Whether all that a picture needs is loaded; False where no server loads it beforehand."""
    return _IS_WARM.is_set()


@asynccontextmanager
async def warmed(_app: object) -> AsyncIterator[None]:
    """The life of the server: while it starts to answer, a thread loads all that a picture needs."""
    keep_freed_memory()
    send_at_once()
    script()
    Thread(target=_warm, name="warming", daemon=True).start()
    yield


def _warm() -> None:
    """Import what draws a view, and keep the run that the page opens with."""
    import visualizer.page.show  # noqa: F401 - the import is what is wanted
    from visualizer.session.cache import cached_run

    cached_run(OPENING.settings)
    _IS_WARM.set()
