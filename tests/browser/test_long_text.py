"""A text that is far too long is refused by the browser, before the server hears of it."""

from __future__ import annotations

from tests.browser.headlight_page import settle


def test_a_book_that_is_pasted_is_refused_in_one_sentence_and_takes_nothing_away(open_app):
    page = open_app(view="step", text="the cat sat")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("navigator.clipboard.writeText('word '.repeat(1_000_000))")
    field = page.locator(".st-key-text textarea")
    field.press("Control+a")
    field.press("Control+v")
    assert field.input_value() == "the cat sat"
    said = field.evaluate("field => field.validationMessage")
    assert said == "This field takes 20,000 characters, and with these it would have 5,000,000."
    field.press("End")
    field.press_sequentially(" down")
    field.press("Control+Enter")
    settle(page)
    assert field.evaluate("field => field.validationMessage") == ""
    assert field.input_value() == "the cat sat down"
