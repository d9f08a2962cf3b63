"""Masks as a person meets them: painted cell by cell, and a query that is left without any key."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import expect

from tests.browser.headlight_page import (
    choose_view,
    link_of,
    panels,
    pill,
    point_at,
    rerun,
    tooltip,
    tooltip_numbers,
)
from visualizer.custom_mask import decode_mask, encode_mask

HEADS = "attention_heads_encoder_self_attention"
N_TOKENS, ROW = 4, 2


def blocked_row() -> np.ndarray:
    blocked = np.zeros((N_TOKENS, N_TOKENS), dtype=np.bool_)
    blocked[ROW] = True
    return blocked


def test_a_query_without_a_key_is_shown_as_such(open_app):
    page = open_app(text="a b c d", mask="causal,custom", custom=encode_mask(blocked_row()), query=ROW, key=1)
    expect(page.locator(".painted-warning")).to_contain_text("1")
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


def test_a_painted_cell_is_in_the_link_and_blocks(open_app):
    page = open_app(text="a b c d", head=0)
    with rerun(page, "mask_painter"):
        pill(page, "mask", "Painted").click()
    plot = page.locator(".st-key-mask_painter [tabindex='0'][role]").last
    plot.focus()
    page.keyboard.press("ArrowDown")
    with rerun(page, "picture"):
        page.keyboard.press("Space")
    painted = decode_mask(link_of(page)["custom"], N_TOKENS)
    assert painted.sum() == 1
    row, column = np.argwhere(painted)[0].tolist()
    assert (row, column) == (1, 0)
    point_at(panels(page, "picture").last, row, column, (N_TOKENS, N_TOKENS))
    expect(tooltip(page)).to_contain_text("blocked by custom")
    assert tooltip_numbers(page) == [0]


def test_a_text_and_a_token_chosen_at_once_both_count(open_app):
    """Leaving the text for a token sends both at the same moment."""
    page = open_app()
    page.locator(".st-key-text textarea").fill("four five six")
    page.locator(".st-key-token_strip .chip").nth(1).click()
    page.wait_for_url(lambda url: "text=four" in url and "query=1" in url)
