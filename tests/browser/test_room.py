"""In front of people: presented by a key, in a theme of the link, and on paper."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import link_of, panels, rerun, settle
from tests.browser.test_accessibility import fits
from tests.reading import tooltip, tooltip_numbers

SETTINGS = {"text": "the cat sat on the mat", "stage": "encoder.self_attention.weights", "view": "step"}


def test_presented_by_a_key_in_a_theme_of_the_link_and_printed(open_app):
    page = open_app(**SETTINGS, embed_options="light_theme")
    expect(page.locator(".headlight[data-theme]").first).to_have_attribute("data-theme", "light")
    page.evaluate("window.sameDocument = true")
    page.locator(".st-key-audience_menu button").first.click()
    for title, option, theme in (("Light", "light_theme", "light"), ("Dark", "dark_theme", "dark")):
        page.locator(".theme-links").get_by_text(title).click()
        expect(page.locator(".st-key-picture .headlight").first).to_have_attribute("data-theme", theme)
        assert link_of(page)["embed_options"] == option
    assert page.evaluate("window.sameDocument"), "nothing is loaded again"
    page.keyboard.press("Escape")
    page.locator(".st-key-token_strip .chip").first.focus()

    page.keyboard.press("p")  # while the server may still hear that the menu was closed
    page.wait_for_url(lambda url: "present=on" in url)
    assert link_of(page)["embed_options"] == "dark_theme", "the theme that was chosen stays in the link"
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    fits(page)
    settle(page)
    plot = panels(page, "picture").last.locator(".matrix-plot")
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 1.5 / 6, box["y"] + box["height"] * 4.5 / 6)
    expect(tooltip(page)).to_contain_text("query 4 the → key 1 cat")
    note, pointed = tooltip(page).bounding_box(), box["x"] + box["width"] * 1.5 / 6
    assert abs(note["x"] - pointed) < 40, "an enlarged page has its note beside the pointer all the same"
    assert tooltip_numbers(page)

    with rerun(page):
        page.keyboard.press("p")
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    page.locator(".st-key-audience_menu button").first.click()
    page.locator(".theme-links").get_by_text("Light").click()
    expect(page.locator(".st-key-picture .headlight").first).to_have_attribute("data-theme", "light")
    n_entries = page.evaluate("history.length")
    page.go_back()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.locator("html")).to_have_attribute(
        "data-drawn", link_of(page)["embed_options"].removesuffix("_theme")
    )
    settle(page)
    assert page.evaluate("history.length") == n_entries, "one goes Forward again"
    beside = open_app(**SETTINGS)
    a_formula_is_whole_beside_an_open_sidebar(beside)
    on_paper_stands_what_is_shown_in_light(beside)


def a_formula_is_whole_beside_an_open_sidebar(page: Page) -> None:
    usual = page.viewport_size
    page.set_viewport_size({"width": 800, "height": 800})
    formula = page.locator(".st-key-formula .katex-html .base").last
    expect(formula).to_be_visible()
    box = formula.bounding_box()
    assert box["x"] + box["width"] <= 800
    page.set_viewport_size(usual)


def on_paper_stands_what_is_shown_in_light(page: Page) -> None:
    page.emulate_media(media="print")
    for key in ("header", "page_keys", "glossary", "depth"):
        expect(page.locator(f".st-key-{key}")).to_be_hidden()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.locator(".st-key-token_strip")).to_be_visible()
    main = "document.querySelector('[data-testid=stMain]')"
    assert page.evaluate(f"{main}.clientHeight >= {main}.scrollHeight"), "nothing is cut off"
    assert page.evaluate("getComputedStyle(document.querySelector('.stMain')).printColorAdjust") == "exact"
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-drawn", "dark")
    expect(page.locator(".stMain [data-testid=stElementContainer]").last).to_have_css(
        "filter", "invert(1) hue-rotate(180deg)"
    )
    expect(page.locator(".stApp")).to_have_css("background-color", "rgb(255, 255, 255)")
