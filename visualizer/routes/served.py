"""The routes: numbers by their address, for the pictures of the page and for whoever asks.

    /numbers/<stage>.npy, .csv or .packed      a stage of a run
    /numbers/run.headlight, .npz, .safetensors  all its stages, as a recording or by name
    /numbers/<stage>.numpy, .torch, .ipynb     a script that computes it again
    /pictures/heads, compare, step, way        what the picture of a view draws
    /jobs/<name>                               what moves by itself, as far as it has come
    /scripts/<name>-<version>.js               what draws the pictures, which a browser loads once
    /followed                                  a WebSocket: pictures for a hand that moves, one after the other

The parameters are those of the page's link, and those of ``Part``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import streamlit as st
from anyio import CapacityLimiter, to_thread
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.status import WS_1003_UNSUPPORTED_DATA, WS_1008_POLICY_VIOLATION
from starlette.websockets import WebSocket, WebSocketDisconnect

from model.texts import texts_of
from visualizer.routes.address import (
    OF_RUN,
    SCRIPTS,
    Address,
    Format,
    file_name,
    read_picture_address,
    read_stage_address,
    version_here,
)
from visualizer.server.mount import script
from visualizer.work import live

if TYPE_CHECKING:  # it brings torch, which takes a second
    from visualizer.routes.answers import Answer

say = texts_of(__name__)

LONGEST_ADDRESS = 2**16
"""Characters of an address that is asked for on a line, as many as a request may have."""

MOST_WAITING = 64
"""Requests that wait for their turn; one more is told to come again."""

_TYPES: Mapping[Format, str] = {
    "npy": "application/octet-stream",
    "csv": "text/csv; charset=utf-8",
    "packed": "application/octet-stream",
    "headlight": "application/octet-stream",
    "npz": "application/octet-stream",
    "safetensors": "application/octet-stream",
    "numpy": "text/plain; charset=utf-8",
    "torch": "text/plain; charset=utf-8",
    "ipynb": "application/x-ipynb+json",
}
_FOREVER = "private, max-age=31536000, immutable"
_ASK_AGAIN = "private, no-cache"
_PLAIN = {"Content-Encoding": "identity", "X-Content-Type-Options": "nosniff"}
"""Streamlit would compress everything else, which takes longer than sending it to the same machine."""

_Read = Callable[[str, Mapping[str, Sequence[str]]], Address]

_turns = CapacityLimiter(max(2, os.cpu_count() or 1))


async def numbers(request: Request) -> Response:
    """A stage's numbers."""
    return await _answered(request, read_stage_address, request.path_params["file"], _stage)


async def pictures(request: Request) -> Response:
    """Answer with the packed numbers of a view's picture."""
    return await _answered(request, read_picture_address, request.path_params["view"], _picture)


async def jobs(request: Request) -> Response:
    """Answer how far something is that moves by itself; without content once it has ended, or its page is gone."""
    moving = live.moving_at(request.path_params["name"])
    picture = None if moving is None else await to_thread.run_sync(lambda: moving.picture)
    headers = {**_PLAIN, "Cache-Control": "no-store"}
    if picture is None:
        return Response(status_code=204, headers=headers)
    return Response(picture.data, media_type=_TYPES["packed"], headers=headers)


async def scripts(request: Request) -> Response:
    """A script of the page. Its name is that of its text, so that it may be kept forever."""
    found = script()
    if request.path_params["file"] != found.name:
        return _refused(ValueError(say("script", name=found.name)), status=404)
    packs = "gzip" in request.headers.get("accept-encoding", "")
    return Response(
        found.packed if packs else found.text,
        media_type="text/javascript; charset=utf-8",
        headers={
            **_PLAIN,
            "Content-Encoding": "gzip" if packs else "identity",
            "Cache-Control": _FOREVER,
            "Vary": "Accept-Encoding",
        },
    )


async def followed(socket: WebSocket) -> None:
    """Answer a moving hand: each message is an address, and its answer the bytes, or one sentence.

    A request of its own for each of sixty pictures a second costs browser and server more than the numbers do.
    """
    if not await _opened(socket):
        return
    with suppress(WebSocketDisconnect):  # the page was closed while it was answered
        async for text in _texts(socket):
            try:
                body = await _body_of(text)
            except ValueError as error:
                await socket.send_text(str(error))
            else:
                await socket.send_bytes(body)


async def _opened(socket: WebSocket) -> bool:
    """Open a line to whoever may have one. A browser lets pages of any site ask for it, unlike for an answer."""
    if _is_let_in(socket):
        await socket.accept()
        return True
    await socket.close(WS_1008_POLICY_VIOLATION)
    return False


def _is_let_in(asking: HTTPConnection) -> bool:
    """True if a page of this server asks, one of an origin that Streamlit is told to allow, or no page at all."""
    origin = asking.headers.get("origin")
    return (
        origin is None
        or origin.partition("://")[2] == asking.headers.get("host")
        or origin in st.get_option("server.corsAllowedOrigins")
        or not st.get_option("server.enableCORS")
    )


async def _texts(socket: WebSocket) -> AsyncIterator[str]:
    """Yield the texts on a line, until it is closed; bytes close it."""
    while (message := await socket.receive())["type"] == "websocket.receive":
        if (text := message.get("text")) is None:
            await socket.close(WS_1003_UNSUPPORTED_DATA)
            return
        yield text


ROUTES: list[BaseRoute] = [
    Route("/numbers/{file}", numbers),
    Route("/pictures/{view}", pictures),
    Route("/jobs/{name}", jobs),
    Route("/scripts/{file}", scripts),
    WebSocketRoute("/followed", followed),
]
"""The routes beside the page."""


async def _answered(request: Request, read: _Read, name: str, work: Callable[[Address], Answer]) -> Response:
    """The bytes of an address; one sentence where it is none, or where the server has too much to do."""
    try:
        address = read(name, {key: request.query_params.getlist(key) for key in request.query_params})
    except ValueError as error:
        return _refused(error)
    if f'"{address.tag}"' in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=_kept_for(address))
    if _has_too_much_to_do():
        return _busy()
    async with _turns:
        if await request.is_disconnected():  # a newer request has taken its place
            return _busy()
        try:
            answer = await to_thread.run_sync(work, address)
        except ValueError as error:
            return _refused(error)
    headers = _kept_for(address)
    if answer.axes:
        headers["Headlight-Axes"] = answer.axes
    if address.format in (*OF_RUN, *SCRIPTS):
        file = file_name(f"{address.name}.{address.format}")
        headers["Content-Disposition"] = f"attachment; filename={file}"
    return Response(answer.body, media_type=_TYPES[address.format], headers=headers)


async def _body_of(text: str) -> bytes:
    """Return the packed numbers of the picture at an address, which is given relative to the page's own.

    Raises:
        ValueError: one sentence on what is wrong with it, or on why nothing was computed.
    """
    if len(text) > LONGEST_ADDRESS:
        raise ValueError(say("too_long", most=LONGEST_ADDRESS))
    path, _, query = text.partition("?")
    address = read_picture_address(path.removeprefix("pictures/"), parse_qs(query, keep_blank_values=True))
    if _has_too_much_to_do():
        raise ValueError(say("too_much"))
    async with _turns:
        return (await to_thread.run_sync(_picture, address)).body


def _has_too_much_to_do() -> bool:
    return _turns.statistics().tasks_waiting >= MOST_WAITING


def _kept_for(address: Address) -> dict[str, str]:
    """Return the headers for the cache: kept forever where this version is named, else asked for again."""
    is_fixed = address.part.version == version_here()
    return {**_PLAIN, "ETag": f'"{address.tag}"', "Cache-Control": _FOREVER if is_fixed else _ASK_AGAIN}


def _refused(error: ValueError, status: int = 400) -> Response:
    return PlainTextResponse(f"{error}\n", status_code=status, headers={**_PLAIN, "Cache-Control": "no-store"})


def _busy() -> Response:
    headers = {**_PLAIN, "Cache-Control": "no-store", "Retry-After": "1"}
    return PlainTextResponse(f"{say('too_much')}\n", status_code=503, headers=headers)


def _stage(address: Address) -> Answer:
    from visualizer.routes.answers import answer_stage

    return answer_stage(address)


def _picture(address: Address) -> Answer:
    from visualizer.routes.answers import answer_picture

    return answer_picture(address)
