"""The token strip in the app: it stays on top of the page, and a token is chosen together with a text."""

from __future__ import annotations

from playwright.sync_api import Page

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


_WHOLE = """row => [...row.children].filter((chip) => {
  const [one, all] = [chip.getBoundingClientRect(), row.getBoundingClientRect()];
  return one.left >= all.left && one.right <= all.right;
}).length"""


def test_a_phone_shows_several_tokens_and_covers_what_is_scrolled_below_them(open_app):
    for link, least in (({}, 5), ({"architecture": "encoder-decoder"}, 4)):
        assert whole_chips(open_app(width=390, text="the cat sat on the mat", **link)) >= least
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


def whole_chips(page: Page) -> int:
    shown: int = page.locator(".st-key-token_strip .chips").first.evaluate(_WHOLE)
    return shown


def test_a_text_and_a_token_chosen_at_once_both_count(open_app):
    """Leaving the text for a token sends both at the same moment."""
    page = open_app()
    page.locator("[class*='st-key-text'] textarea").fill("four five six")
    page.locator(".st-key-token_strip .chip").nth(1).click()
    page.wait_for_url(lambda url: "text=four" in url and "query=1" in url)
