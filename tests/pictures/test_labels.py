"""The labels that are drawn beside a matrix: which of them read upwards, and where words stand."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.pages import set_screen
from tests.pictures.static_page import panels, wait_until_drawn

_RECORD = """() => {
  window.written = {};
  for (const { prototype } of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D]) {
    const write = prototype.fillText;
    prototype.fillText = function (text, ...place) {
      window.written[text] = Math.abs(this.getTransform().b) > 0.01 ? "upwards" : "level";
      return write.call(this, text, ...place);
    };
  }
}"""


def written(page: Page, width: int, *awaited: str) -> dict[str, str]:
    """Return the direction of each text in a new drawing at this width, once the awaited texts are among them."""
    page.evaluate(_RECORD)
    set_screen(page, dark=True, width=width)
    page.wait_for_function("texts => texts.every((text) => text in written)", arg=awaited)
    wait_until_drawn(page)
    ways: dict[str, str] = page.evaluate("written")
    return ways


def test_letters_stand_level_also_between_words_that_read_upwards(show_link):
    page = show_link(text="because therefore " * 6 + "a b", n_heads=1)
    ways = written(page, 900, "because", "therefore", "a", "b")
    assert (ways["because"], ways["therefore"]) == ("upwards", "upwards")
    assert (ways["a"], ways["b"]) == ("level", "level")


def test_letters_are_labels_in_cells_that_are_too_narrow_for_words(show_link):
    letters = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
    page = show_link(text=letters, n_heads=1)
    ways = written(page, 700, *letters.split(), "24")  # numbers take the place of words, here of those of the rows
    assert {ways[letter] for letter in letters.split()} == {"level"}


def test_the_rows_of_an_embedding_table_carry_their_tokens(show_link):
    page = show_link(stage="encoder.inputs.embedding", text="red green red blue", n_heads=1)
    table = panels(page, "picture").first.locator("canvas[role=img]").first
    expect(table).to_have_attribute("aria-label", re.compile("vocabulary"))
    ways = written(page, 1200, "red", "green", "blue", "<pad>")
    assert {way for text, way in ways.items() if text.isdigit()} == {"level"}


def test_the_cells_of_a_mask_are_one_or_blocked(show_link):
    page = show_link(stage="encoder.self_attention.mask", text="red green blue " * 5, n_heads=1)
    assert "1.00" not in written(page, 700, "1")
