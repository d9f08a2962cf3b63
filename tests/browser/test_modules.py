"""Modules of the pictures in a real browser, each on a page without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.static_page import static_page
from visualizer.colors import as_json


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with static_page(browser) as opened:
        yield opened


HATCHED = """async ({ theme, bits }) => {
  const { Hatches } = await import("/mask_painter/reasons.js");
  const context = new OffscreenCanvas(12, 12).getContext("2d");
  context.fillStyle = new Hatches([{ name: "custom", label: "painted" }], theme, 20, 1).patternOf(bits, context);
  context.fillRect(0, 0, 12, 12);
  return [...new Uint32Array(context.getImageData(0, 0, 12, 12).data.buffer)];
}"""


def test_a_cell_blocked_by_no_known_reason_has_a_plain_hatch(page: Page):
    theme = as_json()["themes"]["light"]
    known, unknown = (set(page.evaluate(HATCHED, {"theme": theme, "bits": bits})) for bits in (1, 2))
    assert len(unknown) > 1  # stripes and their ground
    assert all(pixel >> 24 == 0xFF for pixel in unknown)
    assert unknown.isdisjoint(known)
