"""Masks as a person meets them: painted cell by cell, and a query that is left without any key."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import expect

from tests.browser.headlight_page import choose_view, panels
from tests.reading import point_at, tooltip, tooltip_numbers
from visualizer.settings.painted_mask import encode_cells

HEADS = "attention_heads_encoder_self_attention"
N_TOKENS, ROW = 4, 2


def blocked_row() -> np.ndarray:
    blocked = np.zeros((N_TOKENS, N_TOKENS), dtype=np.bool_)
    blocked[ROW] = True
    return blocked


def test_a_query_without_a_key_is_shown_as_such(open_app):
    page = open_app(text="a b c d", mask="causal,custom", custom=encode_cells(blocked_row()), query=ROW, key=1)
    for view, key in (("Step through", "picture"), ("Heads", HEADS)):
        if view != "Step through":
            choose_view(page, view)
        point_at(panels(page, key).last, ROW, 1, (N_TOKENS, N_TOKENS))
        assert tooltip_numbers(page) == [0]
        expect(tooltip(page)).to_contain_text("blocked by custom")
        expect(tooltip(page)).to_contain_text("every key is blocked: no key left")
    page.get_by_role("button", name="Lines", exact=True).click()
    notes = page.locator(".lines-query .lines-empty-note")
    assert notes.all_text_contents() == ["", "", "no key left", ""]


def test_a_text_and_a_token_chosen_at_once_both_count(open_app):
    """Leaving the text for a token sends both at the same moment."""
    page = open_app()
    page.locator(".st-key-text textarea").fill("four five six")
    page.locator(".st-key-token_strip .chip").nth(1).click()
    page.wait_for_url(lambda url: "text=four" in url and "query=1" in url)
