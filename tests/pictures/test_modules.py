"""Modules of the pictures in a real browser, each on a page without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page

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
    ("asked", "said", "uncaught"),
    [
        ({"addresses": ["/good"], "draws": True}, "", []),
        ({"addresses": ["/good", "/bad"], "draws": True}, "The server does not answer.", []),
        ({"addresses": ["/good", "/good"], "draws": False}, "", ["nothing to draw on"]),
    ],
)
def test_an_error_of_drawing_is_logged_as_such_and_not_said_of_the_server(page: Page, asked, said, uncaught):
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.message))
    assert page.evaluate(ASK, asked) == [said, False]
    page.evaluate("0")  # what was logged has come
    assert errors == uncaught


FIELD = """async () => {
  const { refuseTooLong } = await import("/page_keys/longest.js");
  document.addEventListener("beforeinput", (event) => refuseTooLong(event, { "": 10, long: 20_000 }), true);
  document.body.innerHTML = '<textarea>12345</textarea><div class="a st-key-long b"><textarea></textarea></div>';
}"""


def paste(page: Page, field: Locator, text: str) -> tuple[str, str]:
    """Paste a text into a field, and return the field's value and its validation message."""
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    field.press("Control+v")
    return field.input_value(), field.evaluate("field => field.validationMessage")


def test_what_is_too_long_for_a_field_is_refused_whole_and_said(page: Page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate(FIELD)
    limited, longer = page.locator("textarea").all()
    limited.press("End")
    refusal = "This field takes 10 characters; with these it would have 12,005."
    assert paste(page, limited, "x" * 12_000) == ("12345", refusal)
    assert paste(page, limited, "67890") == ("1234567890", "")
    limited.press("a")
    assert limited.evaluate("field => field.validationMessage").endswith("it would have 11.")
    limited.select_text()
    assert paste(page, limited, "abcdefghij") == ("abcdefghij", "")
    assert paste(page, longer, "x" * 12_000) == ("x" * 12_000, "")
