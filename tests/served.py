"""The app as its server runs it: ``app.py`` in a process of its own, a page that speaks, and what is seen of it.

Run by ``test_served.py``; what was seen is written as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, current_thread
from typing import Any

from starlette.testclient import TestClient, WebSocketTestSession
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PATIENCE = 120


class Ring:
    """A ring that only a collection of garbage frees."""

    def __init__(self) -> None:
        self.itself = self


@contextmanager
def opened(client: TestClient) -> Iterator[WebSocketTestSession]:
    with client.websocket_connect("/_stcore/stream", subprotocols=["streamlit"]) as socket:
        yield socket


def act(socket: WebSocketTestSession, link: str) -> None:
    message = BackMsg()
    message.rerun_script.query_string = link
    socket.send_bytes(message.SerializeToString())


def said(socket: WebSocketTestSession) -> list[ForwardMsg]:
    """Return the messages to the page until its script has ended."""
    messages = []
    while not (messages and messages[-1].HasField("script_finished")):
        messages.append(ForwardMsg.FromString(socket.receive_bytes()))
    return messages


def components(messages: list[ForwardMsg]) -> list[str]:
    elements = [message.delta.new_element for message in messages if message.HasField("delta")]
    return [one.bidi_component.component_name for one in elements if one.HasField("bidi_component")]


def main() -> dict[str, Any]:
    import app
    from visualizer.page import warming
    from visualizer.server import tuning

    seen: dict[str, Any] = {"torch is imported with the app": "torch" in sys.modules}
    tuning.EVERY_SECONDS = 0.01
    gc.disable()  # the server's own thread is the only one that collects
    with TestClient(app.app) as client:
        seen["health"] = client.get("/_stcore/health").text
        seen["is warm"] = warming._IS_WARM.wait(PATIENCE)
        with opened(client) as socket:
            act(socket, "view=heads&text=a+b")
            messages = said(socket)
            seen["components"] = components(messages)
            [started] = [one.new_session for one in messages if one.HasField("new_session")]
            seen["messages kept"] = started.config.max_cached_message_age
            seen["frozen"] = gc.get_freeze_count()

            collected: list[str] = []
            gc.callbacks.append(lambda phase, _: collected.append(current_thread().name))
            freed = Event()
            weakref.finalize(Ring(), freed.set)
            act(socket, "view=heads&text=a+b+c")
            said(socket)
            seen["garbage is freed"] = freed.wait(PATIENCE)
            seen["threads that collect"] = sorted(set(collected))
    options = json.loads(sys.argv[1])
    seen["options"] = {name: config.get_option(name) for name in options}
    return seen


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(main()))
