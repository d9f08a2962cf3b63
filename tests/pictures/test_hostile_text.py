"""A text may hold anything: in a picture it is drawn exactly, and becomes no element."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

import pytest
from playwright.sync_api import Page, expect

from tests.hostile_texts import ELEMENTS, LETTERS, MARKUP
from tests.pictures.static_page import panels, picture
from tests.reading import point_at, tooltip
from visualizer.runs.tokens import encode
from visualizer.settings.settings import Settings


@pytest.mark.parametrize("texts", [MARKUP, LETTERS], ids=["markup", "letters"])
def test_a_text_is_shown_exactly_and_becomes_no_element(show_link, texts):
    harmless = elements(show_link(text="plain words only"))
    page = show_link(text=" ".join(texts))
    shown = picture(page, "token_strip").locator(".token").all_text_contents()
    assert shown == labels_of(" ".join(texts))
    assert elements(page) == harmless
    for row in ends_of(texts):
        point_at(panels(page, "picture").last, row, 0, (len(shown), len(shown)))
        expect(tooltip(page).locator("bdi").first).to_have_text(re.compile(f"^{re.escape(shown[row])}$"))
    assert page.evaluate("window.attacked") is None


def elements(page: Page) -> dict[str, int]:
    found: dict[str, int] = page.locator("body").evaluate(ELEMENTS)
    return found


def labels_of(text: str) -> list[str]:
    return list(encode(Settings(text=text)).sources[0].labels)


def ends_of(texts: Sequence[str]) -> list[int]:
    """The place of the last token of each of these texts, where they are one."""
    return [end - 1 for end in accumulate(len(labels_of(text)) for text in texts)]
