"""A query that a mask leaves without any key, as a person meets it."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.pictures.static_page import panels
from tests.reading import open_fold, point_at, tooltip, tooltip_numbers
from visualizer.settings.painted_mask import encode_cells

HEADS = "attention_heads_encoder_self_attention"
N_TOKENS, ROW = 4, 2


@pytest.mark.parametrize(("view", "key"), [("step", "picture"), ("heads", HEADS)])
def test_a_query_without_a_key_is_shown_as_such(show_link, view, key):
    blocked = np.zeros((N_TOKENS, N_TOKENS), dtype=np.bool_)
    blocked[ROW] = True
    custom = encode_cells(blocked)
    page = show_link(view=view, text="a b c d", mask="causal,custom", custom=custom, query=ROW, key=1)
    point_at(panels(page, key).last, ROW, 1, (N_TOKENS, N_TOKENS))
    expect(tooltip(page)).to_contain_text("blocked by the painted mask")
    expect(tooltip(page)).to_contain_text("every key is blocked: no key left")
    assert tooltip_numbers(page) == [0]
    if view == "heads":
        open_fold(page, "View")
        page.get_by_role("button", name="Lines", exact=True).click()
        expect(page.locator(".lines-query .lines-empty-note")).to_have_text(["", "", "no key left", ""])
