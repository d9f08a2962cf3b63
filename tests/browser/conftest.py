"""A real server, and for each test a browser's page, session and settings of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.headlight_page import PROBE, settle
from tests.pages import HEIGHT, fresh_context, watched

APP = Path(__file__).parents[2] / "app.py"
START_SECONDS = 120
USUAL = {"view": "step"}
"""A link to the usual settings: an address without parameters opens something else."""

OpenApp = Callable[..., Page]


@pytest.fixture(scope="session")
def app_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of our own."""
    with served(APP, tmp_path_factory.mktemp("server") / "log.txt") as address:
        yield address


@pytest.fixture
def open_app(browser: Browser, app_url: str) -> Iterator[OpenApp]:
    """Loads the app on a link, each time as a person who was never there."""
    with visits(browser, app_url) as open_page:
        yield open_page


@contextmanager
def visits(browser: Browser, address: str) -> Iterator[OpenApp]:
    """The loader of a server's page on a link, each time in a context of its own.

    It takes the place of the page before, or is opened ``beside`` it: a page that is slowed keeps the processor
    busy, also where it does nothing. ``script`` is run before all of its own. No page may show or log an error, or
    ask another host for anything.
    """
    with ExitStack() as opened:

        def open_page(
            *,
            beside: bool = False,
            script: str = "",
            dark: bool = False,
            width: int = 1280,
            height: int = HEIGHT,
            **query: object,
        ) -> Page:
            if not beside:
                opened.close()
            context = opened.enter_context(fresh_context(browser, dark=dark, width=width, height=height))
            context.add_init_script(f"{PROBE}{script}")
            page = context.new_page()
            opened.enter_context(watched(page, address))
            load(page, f"{address}/?{urlencode(query or USUAL)}")
            return page

        yield open_page


def load(page: Page, address: str) -> None:
    """Open an address, and wait until all of it is drawn."""
    page.goto(address)
    settle(page, "() => probe.finished > 0")  # what is sent first stands alone for a moment


@contextmanager
def served(script: Path, log: Path) -> Iterator[str]:
    """The address of a server that runs a script. Whatever it logs as an error fails the tests that use it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = start_server(script, port, log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(START_SECONDS)
    assert not has_error(logged := log.read_text()), logged[-4000:]


def has_error(log: str) -> bool:
    """True if a server logged an error; a file of a screen that the person has left is none."""
    return log.count("Traceback") > log.count("MediaFileStorageError: Deferred file")


def start_server(script: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    """A server that answers. What it logs is appended to a file."""
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *options, "--server.fileWatcherType=none"]
    environment = os.environ | {"PYTHONPATH": str(APP.parent)}
    with log.open("a") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=APP.parent, env=environment)
    _wait_for_answer(f"http://127.0.0.1:{port}/_stcore/health", server, log)
    return server


def _wait_for_answer(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            server.wait(0.05)
            break
        with suppress(OSError):
            if urlopen(address, timeout=1).read() == b"ok":
                return
    server.kill()
    pytest.fail(f"the server did not start:\n{log.read_text()}")
