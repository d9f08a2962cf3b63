"""Pictures row by row, for who does not see them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.pictures.static_page import panels

WEIGHTS = {"view": "step", "text": "the cat sat on the mat", "stage": "encoder.self_attention.weights"}


def test_a_row_says_which_keys_a_query_looks_at_and_which_are_blocked(show_link):
    shown = panels(show_link(**WEIGHTS), "picture").last
    expect(shown.get_by_role("list", name="rows of Attention weights")).to_have_count(1)
    expect(shown.get_by_role("listitem").nth(1)).to_contain_text("query 1 cat: the ")
    expect(shown.get_by_role("listitem").nth(1)).to_contain_text("mat blocked")


@pytest.mark.parametrize(
    ("link", "read"),
    [
        ({"view": "heads", "drawn": "lines"}, "the heads as lines"),
        ({"view": "lab", "panel": "apply"}, "the weights"),
        ({"view": "way"}, "the path of the token"),
    ],
)
def test_pictures_that_no_view_opens_with_are_read_too(show_link, link, read):
    rows = show_link(**link).get_by_role("list", name=f"rows of {read}").get_by_role("listitem")
    expect(rows.nth(1)).not_to_be_empty()
