"""The token strip stays on top of the page, in one opaque row, whatever passes below it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import settle
from tests.pages import set_screen

_STRIP = """() => {
  const strip = document.querySelector(".st-key-sticky");
  const main = document.querySelector("[data-testid=stMain]");
  const box = strip.getBoundingClientRect();
  const ground = getComputedStyle(strip).backgroundColor;
  const covers = (x, y) => strip.contains(document.elementFromPoint(x, y));
  const xs = Array.from({ length: 12 }, (_, i) => box.left + 60 + (i * (main.clientWidth - 70)) / 12);
  return {
    top: box.top,
    height: box.height,
    sides: [box.left - main.getBoundingClientRect().left, main.clientWidth - box.width],
    ground,
    page: getComputedStyle(document.querySelector(".stApp")).backgroundColor,
    shadow: getComputedStyle(strip).boxShadow,
    covers: xs.every((x) => covers(x, box.top + 3) && covers(x, box.bottom - 4)),
  };
}"""

_ROW = """row => ({
  lines: new Set([...row.children].map((chip) => chip.offsetTop)).size,
  overflow: row.scrollWidth - row.clientWidth,
})"""


def test_what_is_scrolled_below_the_strip_is_covered(open_app):
    page = open_app(width=390, text="the quick brown fox " * 15)
    page.get_by_test_id("stMain").evaluate("main => main.scrollTop = 700")
    for dark in (False, True):
        set_screen(page, dark=dark, width=390)
        settle(page)
        strip = page.evaluate(_STRIP)
        assert strip["top"] == 0
        assert strip["height"] < 64
        assert strip["sides"] == [0, 0]
        assert strip["ground"] == strip["page"]
        assert strip["ground"].startswith("rgb(")  # rgba(...) would be transparent
        assert strip["shadow"] != "none"
        assert strip["covers"]
    row = page.locator(".st-key-token_strip .chips")
    measured = row.evaluate(_ROW)
    assert measured["lines"] == 1
    assert measured["overflow"] > 1000


def test_the_keys_scroll_the_row_and_lead_from_row_to_row(open_app):
    page = open_app(architecture="encoder-decoder", text="the quick brown fox " * 15, target="a b c", width=390)
    source, target = page.locator(".st-key-token_strip .chips").all()
    source.locator(".chip").first.focus()
    page.keyboard.press("End")
    last = source.locator(".chip").last
    expect(last).to_be_focused()
    expect(last).to_be_in_viewport(ratio=0.99)
    page.keyboard.press("ArrowDown")
    expect(target.locator(".chip:focus")).to_have_count(1)
    page.keyboard.press("ArrowUp")
    expect(source.locator(".chip:focus")).to_have_count(1)
