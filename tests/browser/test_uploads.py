"""Ten files one after another, good and bad, over a slow line: the page outlives them and shows each one."""

from __future__ import annotations

import io
from collections import deque
from contextlib import suppress

import numpy as np
import pytest
from playwright.sync_api import Browser, FilePayload, Page, Response, TimeoutError, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.conftest import load
from tests.browser.headlight_page import PROBE, panels
from tests.pages import fresh_context, watched

N_TOKENS = 11
"""As many as the text that the app opens with has."""

N_PAIRS = 5
PATIENCE = 30_000
"""Milliseconds after which a file counts as lost: to choose another while it is still being sent is an error."""


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


CAUSAL = np.tril(np.ones((N_TOKENS, N_TOKENS), dtype=bool))
GOOD = (("causal.npy", npy(CAUSAL)), ("numbers.npy", npy(CAUSAL.astype(np.int64))))
BAD = (
    ("cut_off.npy", npy(CAUSAL)[:-9]),
    ("uneven.csv", b"1,0\n1\n"),
    ("words.csv", b"one,two\nthree,four\n"),
)


class SlowLine:
    """Hands the server one request to run the script at a time: the next one waits until the run before has ended.

    So it is made while that run is under way, as on a slow line, and names what the browser remembers by then.
    """

    def __init__(self, page_side: WebSocketRoute) -> None:
        self._page, self._server = page_side, page_side.connect_to_server()
        self._waiting: deque[str | bytes] = deque()
        self._is_running = False
        self._page.on_message(self._from_page)
        self._server.on_message(self._from_server)

    def _from_page(self, message: str | bytes) -> None:
        if BackMsg.FromString(message).WhichOneof("type") != "rerun_script":
            self._server.send(message)
        elif self._is_running:
            self._waiting.append(message)
        else:
            self._run(message)

    def _from_server(self, message: str | bytes) -> None:
        self._page.send(message)
        parsed = ForwardMsg.FromString(message)
        if parsed.WhichOneof("type") == "script_finished" and parsed.script_finished != _EARLY:
            self._is_running = False
            if self._waiting:
                self._run(self._waiting.popleft())

    def _run(self, message: str | bytes) -> None:
        self._is_running = True
        self._server.send(message)


_EARLY = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN


def upload(page: Page, name: str, content: bytes) -> None:
    """Choose a file; again, where the field was just being drawn anew and so heard nothing of it."""
    file = FilePayload(name=name, mimeType="application/octet-stream", buffer=content)
    field = page.locator("[class*=st-key-mask_file] input[type=file]")
    for _ in range(5):
        expect(field).to_have_count(1)  # the one before stays until the page is drawn
        try:
            with page.expect_response(is_upload, timeout=PATIENCE):
                field.first.set_input_files(file)
        except TimeoutError:
            continue
        return
    pytest.fail(f"{name} was not sent")


def is_upload(response: Response) -> bool:
    return "upload_file" in response.url and response.request.method == "PUT"


def upload_and_see(page: Page, name: str, content: bytes) -> None:
    """Choose the file of a mask; again, where the field was just being drawn anew and lost it after it was sent."""
    mask = panels(page, "loaded_mask").first
    for _ in range(3):
        upload(page, name, content)
        with suppress(TimeoutError):
            mask.wait_for(timeout=PATIENCE)
            return
    pytest.fail(f"{name} is not shown")


def test_ten_uploads_leave_the_page_alive(browser: Browser, app_url: str):
    with fresh_context(browser) as context:
        context.add_init_script(PROBE)
        page = context.new_page()
        page.route_web_socket("**/_stcore/stream", SlowLine)
        with watched(page, app_url):
            load(page, f"{app_url}/?view=lab&panel=load&passed_to=hugging_face_4d")
            for number in range(N_PAIRS):
                upload_and_see(page, f"{number}.npy", GOOD[number % len(GOOD)][1])
                name, content = BAD[number % len(BAD)]
                upload(page, name, content)
            expect(page.get_by_test_id("stAlert")).to_be_visible()
