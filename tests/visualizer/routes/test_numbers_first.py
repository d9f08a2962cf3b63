"""A page speaks once the numbers that are on the way to it have arrived."""

from __future__ import annotations

from contextlib import contextmanager

import anyio
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient

from visualizer.routes import numbers_first
from visualizer.routes.numbers_first import ASKED_ON, NumbersFirst
from visualizer.routes.served import ROUTES
from visualizer.session import on_the_way
from visualizer.session.on_the_way import belongs

KEY = "of the page"


async def numbers(_):
    return PlainTextResponse("numbers")


async def page(socket):
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(f"heard {text}, {len(on_the_way._on_the_way)} on the way")


@pytest.fixture
def client():
    own = [Route("/pictures/heads", numbers), WebSocketRoute("/_stcore/stream", page)]
    with TestClient(NumbersFirst(Starlette(routes=[*own, *ROUTES]))) as found:
        yield found


@contextmanager
def opened(client, line="ours"):
    belongs(KEY, line)
    with client.websocket_connect("/_stcore/stream", headers={"Sec-WebSocket-Key": KEY}) as socket:
        yield socket


@contextmanager
def an_act_while_numbers_come(client, asking_line):
    """The line on which numbers are asked for, and the page that has spoken meanwhile."""
    with client.websocket_connect(f"/ahead/{asking_line}") as line, opened(client) as socket:
        asking = client.portal.start_task_soon(asked_on, client.app, f"{asking_line} 1")
        while not on_the_way._on_the_way:
            pass
        socket.send_text("an act")
        yield line, socket
        asking.result()


def test_a_page_waits_until_the_browser_has_the_numbers_it_asked_for(client, monkeypatch):
    monkeypatch.setattr(numbers_first, "LONGEST", 60)
    with an_act_while_numbers_come(client, "ours") as (line, socket):
        line.send_text("7")
        line.send_text("1")
        assert socket.receive_text() == "heard an act, 0 on the way"
    assert not on_the_way._lines


def test_a_page_does_not_wait_for_numbers_of_others(client, monkeypatch):
    monkeypatch.setattr(numbers_first, "LONGEST", 60)
    with an_act_while_numbers_come(client, "theirs") as (line, socket):
        assert socket.receive_text() == "heard an act, 1 on the way"
        line.send_text("1")
    assert not on_the_way._on_the_way


def test_a_browser_that_never_says_so_holds_nobody_up_for_long(client, monkeypatch):
    monkeypatch.setattr(numbers_first, "LONGEST", 0.01)
    with opened(client) as socket:
        assert client.get("/pictures/heads", headers={ASKED_ON: "ours 1"}).text == "numbers"
        socket.send_text("an act")
        assert socket.receive_text() == "heard an act, 0 on the way"


def test_numbers_that_nobody_waits_for_are_sent_as_always(client):
    assert client.get("/pictures/heads").text == "numbers"
    assert not on_the_way._on_the_way


async def asked_on(app, name):
    """A request for numbers as the server gets it, in the loop that the client's sockets are served in."""

    async def receive():
        await anyio.sleep_forever()

    async def send(_):
        pass

    scope = {
        **{"type": "http", "method": "GET", "path": "/pictures/heads", "query_string": b""},
        "headers": [(ASKED_ON.encode(), name.encode())],
    }
    await app(scope, receive, send)
