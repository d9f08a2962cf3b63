"""A real server and a real browser. Skipped where there is no browser, except in continuous integration."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.browser.headlight_page import PROBE, follow_link, settle

APP = Path(__file__).parents[2] / "app.py"
START_SECONDS = 60
HEIGHT = 1000
USUAL = {"view": "step"}
"""A link to the usual settings: an address without parameters opens something else."""
RESTING = "/_stcore/health"
"""What is left of a page between two tests: an address of the same server without a script."""

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)
OpenApp = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; its shell without a window, where that is installed, needs a quarter less time."""
    known = filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser")))
    executable = os.environ.get("CHROMIUM") or next(known, None)
    if executable is None:
        reason = "no browser: install chromium, or name one in the variable CHROMIUM"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def app_url(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of our own."""
    with served(APP, tmp_path_factory.mktemp("server") / "log.txt") as address:
        yield address


@contextmanager
def served(script: Path, log: Path) -> Iterator[str]:
    """The address of a server that runs a script. Whatever it logs as an error fails the tests that use it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *options, "--server.fileWatcherType=none"]
    environment = os.environ | {"PYTHONPATH": str(APP.parent)}
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=APP.parent, env=environment)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for_server(f"{address}{RESTING}", server, log)
            yield address
        finally:
            server.terminate()
            server.wait(20)
    assert "Traceback" not in log.read_text(), log.read_text()[-4000:]


def wait_for_server(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if urlopen(address, timeout=1).read() == b"ok":
                return
        except (OSError, URLError):
            time.sleep(0.05)
    pytest.fail(f"the server did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for all pages: its cache spares each of them the loading of Streamlit itself."""
    opened = browser.new_context(reduced_motion="reduce")
    opened.add_init_script(PROBE)
    opened.set_default_timeout(10_000)
    yield opened
    opened.close()


@pytest.fixture
def open_app(context: BrowserContext, app_url: str) -> Iterator[OpenApp]:
    """Loads the app on a link. None of its pages may show or log an error, or ask another host for anything."""
    with visit(context, app_url) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def open_app_once(context: BrowserContext, app_url: str) -> Iterator[OpenApp]:
    """The same for a page that all tests of a module share, where it has to be a page of its own."""
    with visit(context, app_url) as open_page:
        yield open_page


@pytest.fixture
def open_link(kept_page: Page, app_url: str) -> Iterator[OpenApp]:
    """Opens a link in the page that all tests share, as Back and Forward do: it is not loaded anew."""

    def open_page(*, dark: bool = False, width: int = 1280, **query: object) -> Page:
        set_screen(kept_page, dark=dark, width=width)
        follow_link(kept_page, urlencode(query or USUAL))
        return kept_page

    kept_page.bring_to_front()
    with watched(kept_page, app_url):
        yield open_page
    if kept_page.get_by_test_id("stException").count():
        load(kept_page, app_url)


@pytest.fixture(scope="session")
def kept_page(context: BrowserContext, app_url: str) -> Page:
    """The app, loaded once: loading is the greater part of what most tests would cost."""
    page = context.new_page()
    load(page, app_url)
    return page


@contextmanager
def visit(context: BrowserContext, app_url: str) -> Iterator[OpenApp]:
    """Loads the app on pages that rest afterwards: a new page for each test costs twice as much."""
    with ExitStack() as watches:

        def open_page(*, dark: bool = False, width: int = 1280, **query: object) -> Page:
            page = resting_page(context) or context.new_page()
            page.bring_to_front()
            set_screen(page, dark=dark, width=width)
            watches.callback(page.goto, f"{app_url}{RESTING}")
            watches.enter_context(watched(page, app_url))
            load(page, f"{app_url}/?{urlencode(query or USUAL)}")
            return page

        yield open_page


@contextmanager
def watched(page: Page, app_url: str) -> Iterator[None]:
    """Until the end the page neither shows nor logs an error, and asks no other host for anything."""
    problems: list[str] = []

    def note_error(error: Error) -> None:
        problems.append(str(error))

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    def note_request(request: Request) -> None:
        if not request.url.startswith((app_url, "data:", "blob:")):
            problems.append(f"asked for {request.url}")

    listeners = {"pageerror": note_error, "console": note_console, "request": note_request}
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.unroute_all()
        page.mouse.move(0, 0)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert not problems, problems


def load(page: Page, address: str) -> None:
    page.goto(address)
    settle(page, "() => probe.finished > 0")  # what is sent first stands alone for a moment


def set_screen(page: Page, *, dark: bool, width: int) -> None:
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme="dark" if dark else "light")


def resting_page(context: BrowserContext) -> Page | None:
    """A page that no test uses any more."""
    return next((page for page in context.pages if page.url.endswith(RESTING)), None)
