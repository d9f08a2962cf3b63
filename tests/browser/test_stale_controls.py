"""Acts on a page that has the address of a change already, and not yet the values of its controls."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, settle, tokens
from visualizer.settings.gallery import GALLERY
from visualizer.settings.link import write_query

CASE = next(case for case in GALLERY if case.title == "Source padding seen")

ACT_ON_ADDRESS = """
const pushState = history.pushState.bind(history);
history.pushState = (...given) => {
  pushState(...given);
  const act = probe.onAddress;
  probe.onAddress = null;
  act?.();
};
"""


def test_a_case_is_not_taken_back_by_an_act_on_a_page_that_has_its_address_alone(open_app):
    page = open_app(script=ACT_ON_ADDRESS, view="lab", architecture="decoder", text="a b c d")
    menu = page.locator("[class*='st-key-examples_menu'] button").first
    menu.evaluate("menu => { probe.onAddress = () => menu.click(); }")
    page.get_by_role("combobox", name="Cases").click()
    page.get_by_role("option", name=CASE.title, exact=True).click()
    page.wait_for_function("probe.onAddress === null")
    settle(page)
    assert tokens(page, "target")[1:4] == ["Die", "Katze", "saß"]
    expect(page.get_by_role("combobox", name="Architecture")).to_have_value("Encoder-decoder")
    assert link_of(page) == write_query(CASE.settings, CASE.selection)
