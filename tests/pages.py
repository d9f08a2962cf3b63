"""Chromium for the tests: a browser for each worker, and for each page a context of its own that is watched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

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

PATIENCE = 120_000
"""Milliseconds that a test waits for a state: long, so that none fails for a machine that is slow."""

HEIGHT = 1000
SLOWDOWN = float(os.environ.get("HEADLIGHT_TEST_SLOWDOWN", "1"))
"""The factor by which DevTools slow each page."""

_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)

expect.set_options(timeout=PATIENCE)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium, as the variable ``CHROMIUM`` names it or as it is installed; a test without one is skipped.

    Except in continuous integration, where it fails. The shell without a window needs a quarter less time.
    """
    known = filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser")))
    executable = os.environ.get("CHROMIUM") or next(known, None)
    if executable is None:
        reason = "no browser: install chromium, or name one in the variable CHROMIUM"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=list(_ARGUMENTS))
        yield launched
        launched.close()


@contextmanager
def fresh_context(
    browser: Browser, *, dark: bool = False, width: int = 1280, height: int = HEIGHT
) -> Iterator[BrowserContext]:
    """A context with nothing kept from any other: no cache, no storage, no page."""
    context = browser.new_context(
        reduced_motion="reduce",
        color_scheme="dark" if dark else "light",
        viewport={"width": width, "height": height},
    )
    context.set_default_timeout(PATIENCE)
    context.on("page", _slow_down)
    try:
        yield context
    finally:
        context.close()


@contextmanager
def watched(page: Page, address: str) -> Iterator[None]:
    """Until the end the page neither shows nor logs an error, and asks no other address for anything."""
    problems: list[str] = []

    def note_error(error: Error) -> None:
        problems.append(str(error))

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    def note_request(request: Request) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            problems.append(f"asked for {request.url}")

    page.on("pageerror", note_error)
    page.on("console", note_console)
    page.on("request", note_request)
    yield
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert not problems, problems


def set_screen(page: Page, *, dark: bool, width: int) -> None:
    """Change the width of the window and the theme of the system."""
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme="dark" if dark else "light")


def _slow_down(page: Page) -> None:
    if SLOWDOWN != 1:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
