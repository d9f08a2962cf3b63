"""A text may hold anything: no view takes it for markup, and each has it exactly as it was typed."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, rerun, settle, tokens, type_text
from tests.hostile_texts import ATTACK, ELEMENTS, LETTERS, MARKUP
from visualizer.runs.tokens import encode
from visualizer.settings.settings import Settings

PLAIN = "one two three four\nfive six seven"
HOSTILE = f"**b** $x$ {' '.join(MARKUP)}\n:red[y] {ATTACK} {' '.join(LETTERS)}"


def elements(page: Page) -> dict[str, int]:
    """Count the elements that a text could turn into, in the main part of the page."""
    settle(page)
    found: dict[str, int] = page.get_by_test_id("stMain").evaluate(ELEMENTS)
    return found


def test_no_view_interprets_a_text(open_app):
    page = open_app(text="nothing yet", view="compare", query=3)
    names = page.locator(".st-key-batch").get_by_role("radio")
    for view, title in {"compare": "Compare", "heads": "Heads", "step": "Step through"}.items():
        if view != "compare":
            choose_view(page, title)
        type_text(page, PLAIN)
        before = elements(page)
        type_text(page, HOSTILE)
        after = elements(page)
        accounts = before["strong"] - after["strong"] if view == "compare" else 0  # two sentences, or one
        assert after == before | {"strong": before["strong"] - accounts}
        held = page.locator("[class*='st-key-text'] textarea").input_value()
        assert tokens(page) == list(encode(Settings(text=held)).sources[0].labels)
        expect(names).to_have_text([re.compile(re.escape(name)) for name in ("**b** $x$", ":red[y] <img")])
    type_text(page, ATTACK)  # so short that all of it is among the most likely tokens
    page.locator(".stage-map").focus()
    with rerun(page, "picture"):
        page.keyboard.press("End")
    expect(page.locator(".js-plotly-plot .yaxislayer-above, .js-plotly-plot .ytick").first).to_be_attached()
    shown = page.locator(".js-plotly-plot").inner_text()
    assert {"img", "onerror"} <= set(shown.split())
    assert page.locator(".js-plotly-plot img, .js-plotly-plot a, .js-plotly-plot b").count() == 0
    assert page.evaluate("window.attacked") is None
