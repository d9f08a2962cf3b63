"""A result that is hidden cannot be read anywhere on the page; what is expected is marked, undone, revealed."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import link_of, panels, rerun
from tests.reading import click_cell
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

KEY = "expectation"
WEIGHTS = "encoder.layers.0.self_attention.weights"

_EVERYTHING_WRITTEN = """() => {
  const found = [];
  const visit = (root) => {
    for (const node of root.querySelectorAll("*")) {
      const told = [...node.attributes].filter(({ name }) => /^(title|aria-|alt|data-|value)/.test(name));
      found.push(...told.map(({ value }) => value));
      if (node.shadowRoot) visit(node.shadowRoot);
    }
    const pieces = root.body ? [root.body] : [...root.querySelectorAll(".headlight")];
    found.push(...pieces.map((piece) => piece.innerText));
  };
  visit(document);
  return found.join(" | ");
}"""


def everything_written(page: Page) -> str:
    """All text, names, titles and descriptions of the page, those of its pictures included."""
    text: str = page.evaluate(_EVERYTHING_WRITTEN)
    return text


def test_a_hidden_head_is_marked_and_revealed(open_app):
    page = open_app(view="step", text="the cat the dog", weights="random", head=0, query=3, hidden="on")
    weights = compute_run(Settings(text="the cat the dog", weights="random")).trace[WEIGHTS].value[0, :, 3]
    numbers = {str(round(float(weight), 6))[:5] for weight in weights.flatten()}
    assert not [number for number in numbers if number in everything_written(page)]
    expect(page.locator(f".st-key-{KEY} canvas[role=img]:visible")).to_have_count(1)
    with rerun(page, KEY):
        page.get_by_role("button", name="Reveal").click()
    assert [number for number in numbers if number in everything_written(page)]

    page = open_app(view="heads", text="the cat the dog", head=0, query=3, hidden="on")
    expect(page.get_by_text("What each head does, measured")).to_have_count(0)
    marks = panels(page, KEY).first
    for row, column in ((1, 0), (2, 1), (3, 0)):
        with rerun(page, KEY):
            click_cell(marks, row, column, (4, 4))
    status = page.locator(f".st-key-{KEY} .expectation-status")
    expect(status).to_have_text("3 of 4 rows marked")
    with rerun(page, KEY):
        page.locator("body").press("Control+z")
    expect(status).to_have_text("2 of 4 rows marked")
    for key in ["Home", *["ArrowDown"] * 3]:  # the first key shows where the keyboard is
        marks.locator(".matrix-plot").press(key)
    with rerun(page, KEY):
        page.keyboard.press("Space")
    expect(status).to_have_text("3 of 4 rows marked")

    with rerun(page, KEY):
        page.get_by_role("button", name="Reveal").click()
    expect(page.get_by_text("2 of 3 queries as you expected; query ")).to_be_visible()
    expect(panels(page, KEY)).to_have_count(2)
    assert link_of(page)["hidden"] == "on"
    with rerun(page, KEY):
        page.get_by_role("button", name="Cover it again").click()
    expect(status).to_have_text("3 of 4 rows marked")
