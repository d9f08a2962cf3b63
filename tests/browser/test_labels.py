"""The labels that are drawn beside a matrix: which of them read upwards, and where words stand."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.headlight_page import panels, settle

_RECORD = """() => {
  window.written = {};
  const prototype = CanvasRenderingContext2D.prototype;
  const write = prototype.fillText;
  prototype.fillText = function (text, ...place) {
    window.written[text] = Math.abs(this.getTransform().b) > 0.01 ? "upwards" : "level";
    return write.call(this, text, ...place);
  };
}"""


def written_after(page: Page, width: int) -> dict[str, str]:
    """How each text of the canvases is written when the window has become so wide."""
    page.evaluate(_RECORD)
    page.set_viewport_size({"width": width, "height": 1000})
    settle(page)
    page.wait_for_function("() => Object.keys(window.written).length > 0")
    found: dict[str, str] = page.evaluate("() => window.written")
    return found


def test_letters_stand_level_also_between_words_that_read_upwards(open_app):
    page = open_app(text="because therefore " * 6 + "a b", n_heads=1)
    written = written_after(page, 900)
    assert (written["because"], written["therefore"]) == ("upwards", "upwards")
    assert (written["a"], written["b"]) == ("level", "level")


def test_letters_are_labels_in_cells_that_are_too_narrow_for_words(open_app):
    letters = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
    page = open_app(text=letters, n_heads=1)
    written = written_after(page, 1100)
    assert {written.get(letter) for letter in letters.split()} == {"level"}


def test_the_rows_of_an_embedding_table_carry_their_tokens(open_app):
    page = open_app(stage="encoder.inputs.embedding", text="red green red blue", n_heads=1)
    table = panels(page, "picture").first
    assert "vocabulary" in table.locator("canvas[role=img]").first.get_attribute("aria-label")
    written = written_after(page, 1200)
    assert {"red", "green", "blue", "<pad>"} <= written.keys()
    assert {written[text] for text in written if text.isdigit()} == {"level"}


def test_the_cells_of_a_mask_are_one_or_blocked(open_app):
    page = open_app(stage="encoder.self_attention.mask", text="red green blue " * 5, n_heads=1)
    written = written_after(page, 900)
    assert "1" in written
    assert "1.00" not in written
