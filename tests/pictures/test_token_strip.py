"""The token strip on a static page: the keys lead along its rows and from row to row."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.pictures.static_page import picture


def test_the_keys_scroll_the_row_and_lead_from_row_to_row(show_link):
    text = "the quick brown fox " * 15
    page = show_link(architecture="encoder-decoder", text=text, target="a b c", width=390)
    source, target = picture(page, "token_strip").locator(".chips").all()
    last = source.locator(".chip").last
    expect(last).not_to_be_in_viewport()
    source.locator(".chip").first.focus()
    page.keyboard.press("End")
    expect(last).to_be_focused()
    expect(last).to_be_in_viewport(ratio=0.99)
    page.keyboard.press("ArrowDown")
    expect(target.locator(".chip:focus")).to_have_count(1)
    page.keyboard.press("ArrowUp")
    expect(source.locator(".chip:focus")).to_have_count(1)
