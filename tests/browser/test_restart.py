"""A server that dies and is started again: the page stays, and what is done first on it is done."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import APP, load, start_server
from tests.browser.headlight_page import PROBE, link_of
from tests.pages import fresh_context


class Server:
    """A server on a port of its own, which can be killed."""

    def __init__(self, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = log
        self.start()

    def start(self) -> None:
        self.process: subprocess.Popen[bytes] = start_server(APP, self.port, self.log)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "log.txt")
    yield started
    started.kill()
    assert "Traceback" not in started.log.read_text()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with fresh_context(browser) as context:
        context.add_init_script(PROBE)
        yield context.new_page()


def open_link(page: Page, server: Server, **query: str) -> None:
    load(page, f"http://127.0.0.1:{server.port}/?{urlencode(query)}")


def kill(page: Page, server: Server) -> None:
    """Kill the server, until the page knows."""
    server.kill()
    expect(page.get_by_test_id("stApp")).not_to_have_attribute("data-test-connection-state", "CONNECTED")


def restart(page: Page, server: Server) -> None:
    """Start the server again, until the page speaks with it."""
    server.start()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-connection-state", "CONNECTED")


def test_what_is_done_first_after_a_restart_is_done_and_what_was_done_before_it(page, server):
    open_link(page, server, view="heads", n_layers="4", text="a b c d e f")
    layer = page.locator(".layer-text")
    for _ in range(2):
        page.get_by_role("button", name="next layer").click()
    page.wait_for_url(lambda url: "layer=2" in url)
    kill(page, server)
    page.get_by_role("button", name="next layer").click()
    restart(page, server)
    page.wait_for_url(lambda url: "layer=3" in url)
    expect(layer).to_have_text("Layer 3")
    kill(page, server)
    restart(page, server)
    page.keyboard.press("Shift+L")
    page.wait_for_url(lambda url: "layer=2" in url)
    expect(layer).to_have_text("Layer 2")
    kill(page, server)
    restart(page, server)
    page.get_by_role("radio", name="Compare", exact=True).click()
    expect(page.locator(".st-key-compare_grids")).to_be_visible()
    assert link_of(page) == {"view": "compare", "n_layers": "4", "text": "a b c d e f", "layer": "2"}
