"""What a page is told before its messages: those wait until the browser has drawn the ones before them.

And what it says on the same line: that its first picture is drawn.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Queue, get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

_listening: dict[str, list[tuple[AbstractEventLoop, Queue[str]]]] = {}
_undrawn: dict[str, Event] = {}
_lock = Lock()


@contextmanager
def listening_to(line: str) -> Iterator[Queue[str]]:
    """What is told on a line while the context is open, in order. For a coroutine.

    Args:
        line: its name.
    """
    listener = (get_running_loop(), Queue[str]())
    with _lock:
        _listening.setdefault(line, []).append(listener)
    try:
        yield listener[1]
    finally:
        with _lock:
            _listening[line].remove(listener)
            if not _listening[line]:
                del _listening[line]


def tell(line: str, text: str) -> None:
    """Tell a text to whoever listens to a line. For any thread."""
    with _lock:
        for loop, told in _listening.get(line, ()):
            loop.call_soon_threadsafe(told.put_nowait, text)


@contextmanager
def until_drawn(line: str, seconds: float) -> Iterator[None]:
    """At the end of the context, wait until the page of a line has said that its picture is drawn, so long at most.

    It may say so while the context is open: the picture is sent in it.
    """
    drawn = _undrawn[line] = Event()
    try:
        yield
        drawn.wait(seconds)
    finally:
        _undrawn.pop(line, None)


def is_drawn(line: str) -> None:
    """The page of a line says so."""
    if drawn := _undrawn.get(line):
        drawn.set()
