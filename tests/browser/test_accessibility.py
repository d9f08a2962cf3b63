"""The whole page in a narrow window, in the dark, with the keyboard alone, and how much it asks for at once."""

from __future__ import annotations

from itertools import pairwise

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, rerun, settle
from tests.reading import controls_in_sight, is_read_by_row, tooltip
from visualizer.settings.examples import EXAMPLES, OPENING
from visualizer.settings.link import write_query
from visualizer.settings.published import PUBLISHED
from visualizer.settings.settings import FIELDS

MOST_STOPS = 200
"""The largest number of times that Tab is pressed; with all of the sidebar open it takes 140."""

MOST_CONTROLS = {"step": 36, "heads": 35, "compare": 28, "generate": 35, "lab": 40}
"""The controls of a view that ask for attention at once on a screen of 1280 by 720."""

_OVERFLOW = """() => [document.scrollingElement, document.querySelector("[data-testid=stMain]")]
  .map((element) => element.scrollWidth - element.clientWidth)"""

_FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const host = document.activeElement.closest("[class*=st-key-]");
  const key = [...(host?.classList ?? [])].find((name) => name.startsWith("st-key-"))?.slice(7) ?? "";
  return [key, element.getAttribute("role") ?? element.localName];
}"""


def fits(page: Page) -> None:
    """Nothing sticks out to the side."""
    page.wait_for_function(f"() => ({_OVERFLOW})().every((overflow) => overflow <= 1)")


def test_the_whole_page_is_walked_with_the_keyboard_alone_and_every_view_fits(open_app):
    opening = write_query(OPENING.settings, OPENING.selection)
    page = open_app(dark=True, height=720, **opening | {"view": "step"})
    the_keyboard_reaches_all(page)
    the_menu_of_examples_stands_beside_the_views(page)
    for view, title in FIELDS["view"].choices.items():
        choose_view(page, title)
        for width in (420, 1280):
            page.set_viewport_size({"width": width, "height": 720})
            settle(page)
            fits(page)
        is_read_by_row(page)
        no_level_of_headings_is_left_out(page)
        if view in MOST_CONTROLS:
            assert len(asking := controls_in_sight(page)) <= MOST_CONTROLS[view], (view, asking)
        if view == "compare":
            assert page.locator(".compare-head .matrix-plot").first.bounding_box()["y"] < 300
        expect(page.locator(".headlight[data-theme]").first).to_have_attribute("data-theme", "dark")


def no_level_of_headings_is_left_out(page: Page) -> None:
    seen = "all => all.filter((one) => one.checkVisibility()).map((one) => Number(one.localName[1]))"
    levels = page.locator("h1, h2, h3, h4, h5, h6").evaluate_all(seen)
    assert all(level <= before + 1 for before, level in pairwise([0, *levels])), levels


def the_keyboard_reaches_all(page: Page) -> None:
    wanted = {("view", "radio"), ("token_strip", "option"), ("stage_map", "group"), ("picture", "application")}
    reached = set()
    page.locator("body").press("Tab")
    for _ in range(MOST_STOPS):
        reached.add(tuple(page.evaluate(_FOCUSED)))
        if wanted <= reached:
            break
        page.keyboard.press("Tab")
    assert wanted <= reached, wanted - reached
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(tooltip(page)).to_contain_text("query 1")


def the_menu_of_examples_stands_beside_the_views(page: Page) -> None:
    views, menu = page.locator("[class*='st-key-view']").first, page.locator(".st-key-beside_views")
    assert abs(views.bounding_box()["y"] - menu.bounding_box()["y"]) < views.bounding_box()["height"] < 50
    with rerun(page):
        menu.get_by_role("button", name="Examples").click()
    expect(page.locator(".st-key-examples button")).to_have_count(
        1 + len(EXAMPLES) + len(PUBLISHED)
    )  # the path before them
    page.keyboard.press("Escape")  # to close the menu is told to the server, at whatever time it happens
    expect(page.locator(".st-key-examples")).to_have_count(0)
    settle(page)
