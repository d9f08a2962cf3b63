"""Both themes, a narrow window, the keyboard alone, and a text for whoever does not see the canvas."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.headlight_page import rerun, settle
from visualizer.settings.examples import EXAMPLES
from visualizer.settings.settings import FIELDS

VIEWS = tuple(FIELDS["view"].choices)
HEADS = "attention_heads_encoder_self_attention"
GRIDS = {"step": "picture", "heads": HEADS, "compare": "compare_grids", "lab": "mask_painter"}
MOST_STOPS = 200
"""How often Tab is pressed at most; with all of the sidebar open it takes 140."""

_OVERFLOW = """() => [document.scrollingElement, document.querySelector("[data-testid=stMain]")]
  .map((element) => element.scrollWidth - element.clientWidth)"""

_FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const host = document.activeElement.closest("[class*=st-key-]");
  const key = [...(host?.classList ?? [])].find((name) => name.startsWith("st-key-"))?.slice(7) ?? "";
  return [key, element.className.baseVal ?? element.className, element.getAttribute("role") ?? element.localName];
}"""

_CANVASES_WITHOUT_TEXT = """() => {
  const found = [];
  const isNamed = (element) => Boolean(element?.getAttribute("aria-label")?.trim());
  const hasText = (canvas) => {
    const isHidden = canvas.getAttribute("aria-hidden") === "true";
    if (!isHidden) return canvas.getAttribute("role") === "img" && isNamed(canvas);
    const around = canvas.closest("button, figure, [role=group], [role=img], [role=application]");
    return isNamed(around) || Boolean(around?.querySelector("canvas[role=img][aria-label], [role=application]"));
  };
  const visit = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) {
        for (const canvas of element.shadowRoot.querySelectorAll("canvas")) {
          if (canvas.checkVisibility() && !hasText(canvas)) found.push(canvas.outerHTML);
        }
        visit(element.shadowRoot);
      }
    }
  };
  visit(document);
  return found;
}"""


_UNREAD_PICTURES = """() => {
  const found = [];
  const isRead = (picture) => {
    for (let around = picture.parentElement; around; around = around.parentElement) {
      const reading = around.querySelector(".reading");
      if (reading) return reading.querySelectorAll("li").length > 0 && !reading.hasAttribute("aria-busy");
    }
    return false;
  };
  const isPicture = (one) => !one.matches(".legend-bar, .expectation-legend canvas") && one.checkVisibility();
  for (const host of document.querySelectorAll("[data-testid=stBidiComponentIsolated]")) {
    for (const one of host.shadowRoot.querySelectorAll("canvas, .token-way svg")) {
      const { top, bottom, width } = one.getBoundingClientRect();
      const isNear = bottom > 0 && top < innerHeight && width > 0;
      if (isNear && isPicture(one) && !isRead(one)) found.push(one.outerHTML.slice(0, 120));
    }
  }
  return found;
}"""
"""The pictures in sight that nobody has put into words, row by row."""


def is_read_by_row(page: Page) -> None:
    """Every picture in sight has its rows as texts, a moment after it is drawn."""
    page.wait_for_function(f"() => ({_UNREAD_PICTURES})().length === 0", timeout=5_000)


@pytest.mark.parametrize("view", VIEWS)
def test_dark_and_narrow_with_the_keyboard_alone_and_with_a_text_for_each_picture(open_app, view):
    page = open_app(view=view, dark=True, width=420)
    fits(page)
    expect(page.locator(".headlight[data-theme]").first).to_have_attribute("data-theme", "dark")
    page.set_viewport_size({"width": 1280, "height": 1000})
    settle(page)
    fits(page)
    is_read_by_row(page)
    if view in GRIDS:
        expect(page.locator(f".st-key-{GRIDS[view]} canvas").first).to_be_visible()
        everything_is_reached_with_the_keyboard_and_has_a_text(page, view)


def fits(page: Page) -> None:
    """Nothing sticks out to the side."""
    page.wait_for_function(f"() => ({_OVERFLOW})().every((overflow) => overflow <= 1)", timeout=5_000)


def everything_is_reached_with_the_keyboard_and_has_a_text(page: Page, view: str) -> None:
    assert page.evaluate(_CANVASES_WITHOUT_TEXT) == []

    wanted = {("view", "radio"), ("token_strip", "option"), (GRIDS[view], "application")}
    if view == "step":
        wanted.add(("stage_map", "group"))
    reached = set()
    page.locator("body").press("Tab")
    for _ in range(MOST_STOPS):
        key, _class, role = page.evaluate(_FOCUSED)
        reached.add((key, role))
        if wanted <= reached:
            break
        page.keyboard.press("Tab")
    assert wanted <= reached, wanted - reached
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tooltip:popover-open")).to_contain_text("query 1")


def test_no_two_buttons_have_one_name_and_all_views_share_a_row_with_the_menu_of_examples(open_app):
    page = open_app()
    views, menu = page.locator(".st-key-view").first, page.locator(".st-key-beside_views")
    assert abs(views.bounding_box()["y"] - menu.bounding_box()["y"]) < views.bounding_box()["height"] < 50
    with rerun(page):
        menu.get_by_role("button", name="Examples").click()
    texts = page.evaluate("() => [...document.querySelectorAll('button')].map((button) => button.innerText.trim())")
    names = [text for text in texts if text]
    assert {"Padding", "Padded text"} <= set(names)
    assert len(names) == len(set(names)), names
    expect(page.locator(".st-key-examples button")).to_have_count(len(EXAMPLES))
    expect(page.locator(".st-key-n_heads [data-testid=stTooltipHoverTarget]")).to_have_count(1)
    page.keyboard.press("Escape")  # to close the menu is told to the server, at whatever time it happens
    expect(page.locator(".st-key-examples")).to_have_count(0)
    settle(page)
