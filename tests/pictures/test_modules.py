"""Modules of the pictures in a real browser, each on a page without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.pictures.modules_page import modules_page
from visualizer.colors import as_json


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with modules_page(browser) as opened:
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


ASK = """async ({ addresses, draws }) => {
  const { Arrivals } = await import("/shared/arrivals.js");
  const arrivals = new Arrivals(document.body);
  const draw = () => {
    if (!draws) throw new TypeError("nothing to draw on");
  };
  const answers = { "/good": async () => ({}), "/bad": () => Promise.reject(new Error("cut off")) };
  await arrivals.ask(addresses, draw, (address) => answers[address]());
  const { problem, sentence, sign } = arrivals;
  const isWaiting = document.body.ariaBusy === "true" || !sign.hidden || arrivals.awaited !== null;
  return [problem.hidden ? "" : sentence.textContent, isWaiting];
}"""


@pytest.mark.parametrize(
    ("asked", "said", "logged"),
    [
        ({"addresses": ["/good"], "draws": True}, "", []),
        ({"addresses": ["/good", "/bad"], "draws": True}, "The server does not answer.", []),
        ({"addresses": ["/good", "/good"], "draws": False}, "", ["nothing to draw on"]),
    ],
)
def test_an_error_of_drawing_is_logged_as_such_and_not_said_of_the_server(page: Page, asked, said, logged):
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.message))
    assert page.evaluate(ASK, asked) == [said, False]
    page.evaluate("0")  # what was logged has come
    assert errors == logged
