"""A result that is covered: nothing of it can be read, and what is expected is marked, undone, and revealed."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from tests.pages import set_screen
from tests.pictures.static_page import (
    let_answer,
    panels,
    picture,
    pictures_in,
    run_of,
    wait_until_drawn,
)
from tests.reading import click_cell
from tests.visualizer.unpacking import unpacked
from visualizer.runs.compute import compute_run
from visualizer.settings.link import read_query
from visualizer.settings.settings import Settings

KEY, REVEALED = "expectation", "revealed"
WEIGHTS = "encoder.layers.0.self_attention.weights"
LINK = {"text": "the cat the dog", "head": 0, "query": 3, "hidden": "on"}

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


IS_HATCHED = """([row, column]) => {
  const roots = [...document.querySelectorAll(".picture > div")].map(({ shadowRoot }) => shadowRoot);
  const marks = roots.flatMap((root) => root?.querySelector(".expectation .matrix") ?? [])[0];
  const [over, plot] = [marks.querySelector(".matrix-overlay"), marks.querySelector(".matrix-plot")];
  const [around, inside] = [over, plot].map((node) => node.getBoundingClientRect());
  const [width, height] = [inside.width / 4, inside.height / 4];
  const left = inside.left - around.left + (column + 0.1) * width;
  const top = inside.top - around.top + (row + 0.1) * height;
  const cell = [left, top, 0.8 * width, 0.8 * height].map((size) => Math.round(size * over.width / around.width));
  return over.getContext("2d").getImageData(...cell).data.some(Boolean);
}"""
"""True if anything is drawn over a cell of the grid to mark, which has four rows and columns."""


def everything_written(app: AppTest, page: Page) -> str:
    """All text, names, titles and descriptions of the pictures, and what the script sends beside them."""
    others = [str(getattr(node, "proto", "")) for node in app._tree if node.type != "bidi_component"]
    written: str = page.evaluate(_EVERYTHING_WRITTEN)
    return " | ".join([written, *others])


def test_a_number_of_a_covered_head_is_written_nowhere(show):
    app = run_of(**LINK, view="step", weights="random")
    weights = compute_run(Settings(text="the cat the dog", weights="random")).trace[WEIGHTS].value[0, :, 3]
    numbers = {str(round(float(weight), 6))[:5] for weight in weights.flatten()}
    page = show(pictures_in(app))
    written = everything_written(app, page)
    assert not [number for number in numbers if number in written]
    expect(picture(page, KEY).locator("canvas[role=img]:visible")).to_have_count(1)
    app.button(key="reveal").click().run()
    written = everything_written(app, show(pictures_in(app)))
    assert [number for number in numbers if number in written]


def test_what_is_expected_is_marked_undone_and_revealed(show):
    app = run_of(**LINK, view="heads")
    assert not [text.value for text in app.markdown if "measured" in text.value]
    page = show(pictures_in(app))
    marks, status = panels(page, KEY).first, picture(page, KEY).locator(".expectation-status")
    for row, column in ((1, 0), (2, 1), (3, 0)):
        click_cell(marks, row, column, (4, 4))
        let_answer(app, page, KEY)
    expect(status).to_have_text("3 of 4 rows marked")
    page.locator("body").press("Control+z")
    let_answer(app, page, KEY)
    expect(status).to_have_text("2 of 4 rows marked")
    for key in ["Home", *["ArrowDown"] * 3]:  # the first key shows where the keyboard is
        marks.locator(".matrix-plot").press(key)
    page.keyboard.press("Space")
    let_answer(app, page, KEY)
    expect(status).to_have_text("3 of 4 rows marked")

    app.button(key="reveal").click().run()
    assert any("2 of 3 queries as you expected; query " in text.value for text in app.markdown)
    assert "Outlined: not as you expected." in [text.value for text in app.caption]
    expect(panels(show(pictures_in(app)), REVEALED)).to_have_count(2)
    assert app.query_params["hidden"] == "on"
    assert app.button(key="reveal").label == "Cover it again"
    app.button(key="reveal").click().run()
    expect(picture(show(pictures_in(app)), KEY).locator(".expectation-status")).to_have_text("3 of 4 rows marked")


def test_what_was_computed_stands_beside_what_was_expected_and_what_differs_is_outlined(show):
    app = run_of(**LINK, view="heads")
    page = show(pictures_in(app))
    for row, column in ((1, 1), (2, 0)):
        click_cell(panels(page, KEY).first, row, column, (4, 4))
        let_answer(app, page, KEY)
    app.button(key="reveal").click().run()
    (revealed,) = (one for one in pictures_in(app) if one.key == REVEALED)
    _, arrays = unpacked(revealed.data)
    expected, differs = np.zeros((2, 4, 4), bool)
    expected[[1, 2], [1, 0]] = True
    weights = compute_run(read_query(app.query_params)[0]).trace[WEIGHTS].value[0, 0].numpy()
    largest = weights.argmax(axis=1)
    for row in (1, 2):  # the rows that were answered
        if not expected[row, largest[row]]:
            differs[row] = expected[row] | (np.arange(4) == largest[row])
    assert differs.any()
    assert (arrays["values0"].reshape(4, 4) == expected).all()
    for panel in (0, 1):
        assert (arrays[f"marked{panel}"].reshape(4, 4) == differs).all()
    np.testing.assert_array_equal(arrays["values1"].reshape(4, 4), weights)


def test_the_mask_is_hatched_where_the_strongest_key_is_marked(show):
    app = run_of(**LINK, view="heads", mask="causal")
    page = show(pictures_in(app))
    assert [page.evaluate(IS_HATCHED, place) for place in ([0, 3], [3, 0])] == [True, False]
    app.segmented_control("asked_question").set_value("seen").run()
    assert not show(pictures_in(app)).evaluate(IS_HATCHED, [0, 3]), "there it is the answer"


def test_what_is_expected_and_what_was_computed_stand_side_by_side(show):
    app = run_of(text="a b c d e f g h i j k l", view="heads", hidden="on")
    page = show(pictures_in(app))
    click_cell(panels(page, KEY).first, 0, 0, (12, 12))
    let_answer(app, page, KEY)
    app.button(key="reveal").click().run()
    page = show(pictures_in(app))
    for width in range(980, 1004, 2):
        set_screen(page, dark=False, width=width)
        wait_until_drawn(page)
        tops = [panel.bounding_box()["y"] for panel in panels(page, REVEALED).all()]
        assert tops[0] == tops[1]


def test_where_nothing_was_marked_what_was_computed_stands_alone(show):
    app = run_of(**LINK, view="heads")
    app.button(key="reveal").click().run()
    page = show(pictures_in(app))
    expect(panels(page, REVEALED)).to_have_count(1)
    expect(picture(page, REVEALED)).to_contain_text("Attention weights · head 0, computed")
    expect(picture(page, REVEALED).locator(".reading[aria-busy]")).to_have_count(0)


def test_a_class_is_told_of_the_one_row_that_it_is_asked_about(show):
    app = run_of(**LINK, view="heads", class_code="onerow")
    page = show(pictures_in(app))
    status = picture(page, KEY).locator(".expectation-status")
    expect(status).to_have_text("query 3 dog: nothing marked")
    click_cell(panels(page, KEY).first, 3, 1, (4, 4))
    expect(status).to_have_text("query 3 dog: key 1 cat marked")


def test_among_cells_to_mark_the_row_that_a_class_is_asked_about_is_lit(show):
    link = LINK | {"view": "heads", "question": "seen"}
    expect(picture(show(pictures_in(run_of(**link))), KEY).locator(".light-row")).to_be_hidden()
    expect(
        picture(show(pictures_in(run_of(**link, class_code="onerow"))), KEY).locator(".light-row")
    ).to_be_visible()


def test_a_grid_to_mark_fits_the_window_with_the_line_below_it(show):
    link = {"view": "heads", "text": " ".join("abcdefghijk"), "hidden": "on", "head": 0}
    page = show([one for one in pictures_in(run_of(**link)) if one.key == KEY], height=540)
    said = page.get_by_text("0 of 11 rows marked")
    expect(said).to_be_visible()
    box = said.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 540
