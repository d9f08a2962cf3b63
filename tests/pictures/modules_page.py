"""A page without a server, in a context of its own, which can import the modules of the pictures by their path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, Route

from tests.pages import fresh_context
from visualizer.components.javascript_modules import module_text

COMPONENTS = Path(__file__).parents[2] / "visualizer" / "components"
ADDRESS = "http://localhost/"


@contextmanager
def modules_page(browser: Browser) -> Iterator[Page]:
    """The page: ``await import("/shared/dom.js")`` imports ``visualizer/components/shared/dom.js``."""

    def answer(route: Route) -> None:
        file = COMPONENTS / route.request.url.removeprefix(ADDRESS)
        if file.is_file():
            route.fulfill(
                path=file, content_type="application/json" if file.suffix == ".json" else "text/javascript"
            )
        elif route.request.url == ADDRESS:
            route.fulfill(body="<!doctype html><title>Pictures</title>", content_type="text/html")
        else:
            route.fulfill(status=404)

    with fresh_context(browser) as context:
        page = context.new_page()
        page.route(f"{ADDRESS}**", answer)
        page.goto(ADDRESS)
        yield page


@contextmanager
def scripted_page(browser: Browser, entry: str, folder: Path, ready: str) -> Iterator[Page]:
    """An empty page that runs a module which would stand in ``folder``, once that has set ``window[ready]``."""
    with fresh_context(browser) as context:
        page = context.new_page()
        page.add_script_tag(content=module_text(entry, folder), type="module")
        page.wait_for_function(f"() => window.{ready}")
        yield page
