"""Acts of a person in a picture while the page is about to leave it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, link_of, settle
from tests.reading import click_cell

HOLD = """
const { WebSocket: Socket } = window;
probe.held = null; // what the server has said, while the page does not hear of it
window.WebSocket = class extends Socket {
  constructor(...address) {
    super(...address);
    this.addEventListener("message", (message) => {
      if (!probe.held || !this.isOfStreamlit) return;
      message.stopImmediatePropagation();
      probe.held.push(() => this.dispatchEvent(new MessageEvent("message", { data: message.data })));
    });
  }
};
"""
"""Makes a page on which ``probe.held = []`` lets the server go on, and all that is shown stays."""


@contextmanager
def unheard(page: Page) -> Iterator[None]:
    """Do something that the server answers, of which the page shows nothing yet."""
    before = page.evaluate("() => ((probe.held ??= []), probe.finished)")
    yield
    page.evaluate("before => probe.until(() => probe.finished > before)", before)


def hear(page: Page) -> None:
    page.evaluate("() => probe.held.splice(0).forEach((hear) => hear((probe.held = null)))")
    settle(page)


def test_a_cell_of_the_picture_that_one_is_leaving_leaves_the_next_view_as_it_is(open_app):
    page = open_app(script=HOLD, view="compare", architecture="decoder", text="a b c d e f")
    for left, key in (("Compare", "compare_grids"), ("Heads", "attention_heads_")):
        choose_view(page, left)
        with unheard(page):
            page.get_by_role("radio", name="Step through", exact=True).click()
        with unheard(page):
            click_cell(page.locator(f"[class*=st-key-{key}] .matrix:visible").first, 4, 2, (6, 6))
        hear(page)
        expect(page.get_by_role("radio", name="Step through", exact=True)).to_have_attribute("aria-checked", "true")
        expect(page.locator(".st-key-stage_map")).to_be_visible()
        expect(page.get_by_test_id("stAlert")).to_have_count(0)
        assert "query" not in link_of(page)
