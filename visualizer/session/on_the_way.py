"""Which numbers are on the way to which page, from the request for them until the browser says that it has them.

A browser asks beside the page, on the page's line (``told_ahead``); what the page itself says comes on a connection
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anyio import Event, move_on_after

_lines: dict[str, str] = {}
_on_the_way: dict[str, dict[str, Event]] = {}


def belongs(connection: str, line: str) -> None:
    """A page has this connection and this line. For any thread."""
    _lines[connection] = line


def closed(connection: str) -> None:
    """A page has closed its connection."""
    _lines.pop(connection, None)


@contextmanager
def on_the_way(line: str, count: str) -> Iterator[Event]:
    """While the context is open or until they have arrived, numbers are on the way. For a coroutine.

    Args:
        line: the line of the page that asked.
        count: tells them from others of the line.
    """
    numbers = _on_the_way.setdefault(line, {})
    arrived = numbers[count] = Event()
    try:
        yield arrived
    finally:
        arrived.set()
        numbers.pop(count, None)
        if not numbers:
            _on_the_way.pop(line, None)


def arrived(line: str, count: str) -> None:
    """A browser has the numbers, or does not wait for them any more."""
    if event := _on_the_way.get(line, {}).get(count):
        event.set()


async def wait_for_numbers(connection: str, seconds: float) -> None:
    """Wait until the numbers that are on the way to the page of a connection have arrived, so long at most."""
    numbers = _on_the_way.get(_lines.get(connection, ""), {})
    with move_on_after(seconds):
        for event in tuple(numbers.values()):
            await event.wait()
