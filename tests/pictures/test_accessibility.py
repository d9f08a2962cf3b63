"""The pictures of every view for whoever does not see them, or has the keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.pictures.static_page import picture
from tests.reading import is_read_by_row, tooltip
from visualizer.settings.settings import FIELDS

VIEWS = tuple(FIELDS["view"].choices)
GRIDS = {
    "step": "picture",
    "heads": "attention_heads_encoder_self_attention",
    "compare": "compare_grids",
    "lab": "mask_painter",
}
MOST_STOPS = 100
"""The largest number of times that Tab is pressed."""

_CANVASES_WITHOUT_TEXT = """() => {
  const isNamed = (element) => Boolean(element?.getAttribute("aria-label")?.trim());
  const hasText = (canvas) => {
    const isHidden = canvas.getAttribute("aria-hidden") === "true";
    if (!isHidden) return canvas.getAttribute("role") === "img" && isNamed(canvas);
    const around = canvas.closest("button, figure, [role=group], [role=img], [role=application], [role=listbox]");
    return isNamed(around) || Boolean(around?.querySelector("canvas[role=img][aria-label], [role=application]"));
  };
  const roots = [...document.querySelectorAll(".picture > div")].map(({ shadowRoot }) => shadowRoot);
  const canvases = roots.flatMap((root) => [...root.querySelectorAll("canvas")]);
  return canvases.filter((one) => one.checkVisibility() && !hasText(one)).map(({ outerHTML }) => outerHTML);
}"""

_FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const key = document.activeElement.closest(".picture")?.dataset.key ?? "";
  return [key, element.getAttribute("role") ?? element.localName];
}"""


@pytest.mark.parametrize("view", VIEWS)
def test_each_picture_has_a_text_and_is_reached_with_the_keyboard_alone(show_link, view):
    page = show_link(view=view)
    is_read_by_row(page)
    assert page.evaluate(_CANVASES_WITHOUT_TEXT) == []
    if view in GRIDS:
        reach(page, {("token_strip", "option"), (GRIDS[view], "application")})
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        expect(tooltip(page)).to_contain_text("query 1")


def reach(page: Page, wanted: set[tuple[str, str]]) -> None:
    """Press Tab until each of these was in focus: the key of a picture, and the role of what is in it."""
    reached: set[tuple[str, str]] = set()
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        key, role = page.evaluate(_FOCUSED)
        reached.add((key, role))
        if wanted <= reached:
            return
    pytest.fail(f"never in focus: {wanted - reached}, but {reached}")


def test_what_was_read_of_a_derivation_is_silent_once_the_keyboard_has_left(show_link):
    page = show_link(view="step", text="a b c")
    derivation = picture(page, "derivation_0")
    bars, read = derivation.locator(".scroller"), derivation.locator("[aria-live]")
    bars.focus()
    page.keyboard.press("Home")
    expect(read).to_contain_text("element 0")
    bars.blur()
    expect(read).to_be_empty()
