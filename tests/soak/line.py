"""A slow line: whatever goes between a browser and a server on this machine arrives later.

The latency that DevTools can set does not hold for WebSockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from urllib.parse import urlsplit

HOST = "127.0.0.1"


@contextmanager
def slow_line(address: str, milliseconds: float) -> Iterator[str]:
    """Another address of a server, from which an answer takes so many milliseconds longer; the same for none."""
    if not milliseconds:
        yield address
        return
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = asyncio.run_coroutine_threadsafe(_listen(urlsplit(address).port or 80, milliseconds / 2000), loop)
    try:
        yield f"http://{HOST}:{opened.result(10)}"
    finally:
        asyncio.run_coroutine_threadsafe(_end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(port: int, seconds: float) -> int:
    """Carry each connection to a port, and back; the port that listens."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(HOST, port)
        with suppress(asyncio.CancelledError):  # at the end
            await asyncio.gather(_carry(reader, to_server, seconds), _carry(from_server, writer, seconds))

    server = await asyncio.start_server(connect, HOST, 0)
    return int(server.sockets[0].getsockname()[1])


async def _end() -> None:
    """Break off what is carried."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    try:
        while data := await reader.read(1 << 16):
            loop.call_later(seconds, writer.write, data)
    except ConnectionError:
        pass  # closed by a page that was left
    loop.call_later(seconds, writer.close)
