"""The numbers of a picture come before its page.

A person's act asks for numbers, and then for a run of the page's script. Side by side in one interpreter each takes
twice as long, and the browser draws what the script says before the picture: so the script begins when the browser
has the numbers.
"""

from __future__ import annotations

from anyio import move_on_after
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visualizer.session.on_the_way import closed, on_the_way, wait_for_numbers
from visualizer.session.streamlit_internals import STREAM

LONGEST = 0.25
"""Seconds that a page waits at most, and that a browser has to say that it has got all of an answer."""

ASKED_ON = "headlight-asked-on"
"""The header of a request for numbers: the line of the page that asks, and a count."""


class NumbersFirst:
    """Passes on what a page says once the numbers on the way to it have arrived.

    Args:
        app: the server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "websocket" and scope["path"].endswith(STREAM):
            await self._serve_page(scope, receive, send)
        elif scope["type"] == "http" and (asked := Headers(scope=scope).get(ASKED_ON)):
            line, _, count = asked.partition(" ")
            with on_the_way(line, count) as arrived:
                await self._app(scope, receive, send)
                with move_on_after(LONGEST):
                    await arrived.wait()
        else:
            await self._app(scope, receive, send)

    async def _serve_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = Headers(scope=scope).get("sec-websocket-key", "")

        async def received() -> Message:
            message = await receive()
            await wait_for_numbers(connection, LONGEST)
            return message

        try:
            await self._app(scope, received, send)
        finally:
            closed(connection)
