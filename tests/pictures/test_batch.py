"""One sequence of a padded batch: its tokens, and what the padding is to its cells."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.pictures.static_page import panels, picture
from tests.reading import point_at, tooltip, tooltip_numbers

LINES = {"architecture": "decoder", "text": "one two three four\na dog", "batch": 1}
SHAPE = (4, 4)


@pytest.mark.parametrize(
    ("view", "key"), [("step", "picture"), ("heads", "attention_heads_decoder_self_attention")]
)
def test_the_padding_of_a_shorter_line_is_hidden_until_its_mask_is_off(show_link, view, key):
    page = show_link(**LINES, view=view)
    chips = picture(page, "token_strip").locator(".chip")
    expect(chips.locator(".token")).to_have_text(["a", "dog", "<pad>", "<pad>"])
    expect(chips.and_(page.locator(".padding"))).to_have_count(2)
    point_at(panels(page, key).last, 3, 2, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by padding")
    page = show_link(**LINES, view=view, mask="causal")
    point_at(panels(page, key).last, 3, 2, SHAPE)
    assert tooltip_numbers(page)[-1] > 0
