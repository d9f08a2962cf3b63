"""The mask painter on a static page: strokes, reasons, findings, and what its host hears of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from tests.pictures.painter import ALL_CLEAR, Painter, blocked_with, weights_under
from tests.pictures.static_page import wait_until_drawn
from tests.reading import close_to, number, tooltip, wait_until_lit
from visualizer import colors

OpenPainter = Callable[..., Painter]

HOSTILE = ("<img src=x onerror=alert(1)>", "שלום", "$x$ :red[x]", "w" * 300, "\u202etac", "👩‍👩‍👧", "", "&lt;b&gt;")


@pytest.fixture
def open_painter(show) -> OpenPainter:
    return partial(Painter, show)


def cell_pixels(painter: Painter, row: int, column: int, canvas: str = ".matrix-pixels") -> NDArray[np.uint8]:
    """Red, green, blue and alpha of the pixels of a cell; of a large one, of those in its inner half."""
    wait_until_drawn(painter.page)
    read = """(canvas, [row, column, size]) => {
      const side = canvas.width / size;
      const margin = Math.floor(side / 4);
      const start = (index) => Math.round(index * side) + margin;
      const length = (index) => Math.round((index + 1) * side) - margin - start(index);
      const place = [start(column), start(row), length(column), length(row)];
      return [...canvas.getContext("2d").getImageData(...place).data];
    }"""
    pixels = painter.page.locator(canvas).evaluate(read, [row, column, len(painter.cells)])
    return np.array(pixels, dtype=np.uint8).reshape(-1, 4)


def is_opaque(painter: Painter, row: int, column: int, canvas: str = ".matrix-pixels") -> bool:
    """True if all of a cell is drawn; the test fails where only a part is."""
    (drawn,) = set(cell_pixels(painter, row, column, canvas)[:, 3] > 0)
    return bool(drawn)


def has_color(pixels: NDArray[np.uint8], color: str) -> bool:
    return bool((pixels == (*bytes.fromhex(color[1:]), 255)).all(1).any())


def says_counted(page: Page, text: str) -> None:
    expect(page.locator(".painted-count")).to_contain_text(f"{text} cells blocked")


def test_the_host_hears_nothing_before_the_pointer_is_released(open_painter):
    painter = open_painter()
    painter.drag((0, 0), (0, 5), (5, 5))
    says_counted(painter.page, "11 of 36")
    assert painter.heard == []
    painter.page.mouse.up()
    painter.answer()
    [(name, event)] = painter.heard
    assert (name, event["n_queries"], event["n_keys"], event["seq"]) == ("paint", 6, 6, 1)
    assert painter.painted == [(0, column) for column in range(6)] + [(row, 5) for row in range(1, 6)]


def test_a_rectangle_and_a_whole_row_are_strokes_too(open_painter):
    painter = open_painter()
    painter.page.keyboard.down("Shift")
    painter.drag((1, 1), (4, 4), (2, 3))
    painter.page.keyboard.up("Shift")
    painter.page.mouse.up()
    painter.answer()
    rectangle = [(row, column) for row in (1, 2) for column in (1, 2, 3)]
    assert painter.painted == rectangle
    plot = painter.page.locator(".matrix-plot").bounding_box()
    painter.page.mouse.click(plot["x"] - 15, plot["y"] + plot["height"] * 4.5 / 6)
    painter.answer()
    assert painter.painted == rectangle + [(4, column) for column in range(6)]


def test_a_stroke_can_be_undone_and_done_again(open_painter):
    painter = open_painter(4)
    painter.click(1, 0)
    painter.click(2, 0)
    painter.page.keyboard.press("Control+z")
    painter.answer()
    assert painter.painted == [(1, 0)]
    painter.button("Undo").click()
    painter.answer()
    assert painter.painted == []
    painter.page.keyboard.press("Control+Shift+z")
    painter.answer()
    assert painter.painted == [(1, 0)]


def test_a_stroke_on_some_heads_cannot_be_undone_on_others(open_painter):
    painter = open_painter(4)
    painter.click(1, 0)
    painter.answer()
    expect(painter.button("Undo")).to_have_attribute("aria-disabled", "false")
    painter.scope, painter.cells = "other heads", np.eye(4, dtype=np.bool_)
    painter.send()
    says_counted(painter.page, "4 of 16")
    expect(painter.button("Undo")).to_have_attribute("aria-disabled", "true")


def test_an_answer_to_an_older_stroke_takes_no_newer_one_back(open_painter):
    painter = open_painter()
    for column in range(6):
        painter.click(3, column)
    for seen in range(1, 7):
        painter.answer_next()
        assert painter.painted == [(3, column) for column in range(seen)]
        assert painter.page.locator(".painted-count").text_content().startswith("6 of 36 cells blocked")


def test_strokes_and_choices_before_the_first_answer_are_all_kept(open_painter):
    painter = open_painter()
    for column in range(6):
        painter.click(3, column)
        painter.page.keyboard.press("Enter")
    painter.answer()
    assert [name for name, _ in painter.heard] == ["paint", "select"] * 6
    assert [event["key"] for name, event in painter.heard if name == "select"] == list(range(6))
    assert painter.painted == [(3, column) for column in range(6)]


def test_the_note_says_why_a_cell_is_blocked_and_what_the_weight_of_another_is(open_painter):
    painter = open_painter(reasons=("causal", "padding"), row=3)
    note = tooltip(painter.page)
    painter.point_at(2, 5)
    expect(note).to_have_text("query 2 sat may not see key 5 mat: causal; also padding")
    painter.point_at(3, 4)
    expect(note).to_contain_text("query 3 on may not see key 4 a: causal; also padding, painted")
    expect(note).to_contain_text("no key left")
    painter.point_at(2, 1)
    expect(note).to_contain_text("query 2 sat sees key 1 cat: weight")
    written = note.inner_text().rpartition(" ")[2]
    assert number(written) == close_to(weights_under(painter.blocked)[2, 1])


def test_the_keyboard_reads_the_same_sentence_and_paints(open_painter):
    painter = open_painter(reasons=("causal",))
    page = painter.page
    page.locator(".matrix-plot").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    sentence = "query 1 cat may not see key 2 sat: causal"
    expect(tooltip(page)).to_have_text(sentence)
    expect(page.locator(".matrix-body [aria-live]")).to_have_text(sentence)
    for key in ("ArrowLeft", "ArrowDown", "ArrowDown", "Space"):
        page.keyboard.press(key)
    painter.answer()
    assert painter.painted == [(3, 1)]
    expect(tooltip(page)).to_have_text("query 3 on may not see key 1 cat: painted")


def test_enter_and_looking_select_a_cell_and_paint_nothing(open_painter):
    painter = open_painter()
    painter.page.locator(".matrix-plot").focus()
    painter.page.keyboard.press("ArrowDown")
    painter.page.keyboard.press("Enter")
    painter.button("Look").click()
    painter.click(4, 2)
    painter.answer()
    assert painter.heard == [
        ("select", {"query": 1, "key": 0, "seq": 1}),
        ("select", {"query": 4, "key": 2, "seq": 2}),
    ]
    assert painter.painted == []


def test_a_cell_is_hatched_in_the_colours_of_all_that_blocks_it(open_painter):
    painter = open_painter(reasons=("causal", "padding"), row=5)
    light = colors.MASK_COLORS["light"]
    reasons = {(0, 1): {"causal"}, (4, 4): {"padding"}, (0, 5): {"causal", "padding"}, (5, 0): {"custom"}}
    reasons[5, 5] = {"padding", "custom"}
    for cell, names in reasons.items():
        pixels = cell_pixels(painter, *cell)
        assert {name for name, color in light.items() if has_color(pixels, color)} == names
    legend = painter.page.locator(".reason:visible")
    expect(legend).to_have_text(["causal15 cells", "padding12 cells", "painted6 cells"])


def test_what_a_stroke_frees_stays_plain_until_its_weight_has_come(open_painter):
    painter = open_painter(row=3)
    note = tooltip(painter.page)
    painter.drag((3, 1), (3, 2))
    expect(note).to_have_text("query 3 on sees key 2 sat: its weight is not computed yet")
    assert [is_opaque(painter, row, 2) for row in (2, 3)] == [True, False]
    painter.page.mouse.up()
    painter.answer()
    assert is_opaque(painter, 3, 2)
    expect(note).to_contain_text("query 3 on sees key 2 sat: weight 0.")


def test_without_weights_open_cells_are_plain(open_painter):
    painter = open_painter(reasons=("causal",), has_weights=False)
    assert not is_opaque(painter, 3, 2)
    painter.point_at(3, 2)
    expect(tooltip(painter.page)).to_have_text("query 3 on sees key 2 sat")
    expect(painter.page.locator(".legend")).to_be_hidden()


def test_a_cell_that_another_mask_blocks_cannot_be_freed(open_painter):
    painter = open_painter(reasons=("causal",), row=3)
    said = painter.page.get_by_role("status")
    painter.click(2, 5)
    expect(said).to_have_text("causal still blocks query 2, key 5, since the key comes later")
    assert painter.heard == []
    painter.drag((3, 2), (3, 5))
    painter.page.mouse.up()
    painter.answer()
    assert painter.painted == [(3, 0), (3, 1)]
    expect(said).to_have_text("causal still blocks 2 of these cells")
    offer = painter.page.locator(".painted-offer")
    offer.click()
    painter.answer()
    assert painter.heard[-1][0] == "take_over"
    expect(offer).to_be_hidden()


def test_the_other_masks_can_be_taken_into_the_painting(open_painter):
    painter = open_painter(4, reasons=("causal", "padding"))
    painter.click(1, 3)
    take_over = painter.button("Paint over causal, padding")
    take_over.click()
    painter.click(0, 3)  # before the host has answered
    painter.answer()
    assert [name for name, _ in painter.heard] == ["take_over", "paint"]
    expect(painter.page.get_by_role("status")).to_be_empty()
    blocked = blocked_with(np.zeros((4, 4), dtype=np.bool_), ("causal", "padding"))
    blocked[0, 3] = False
    assert np.array_equal(painter.cells, blocked)
    expect(take_over).to_be_hidden()
    expect(painter.page.locator(".reason:visible")).to_have_count(1)


def test_a_finding_lights_its_cells(open_painter):
    painter = open_painter(row=2)
    page = painter.page

    def covered(*cells: tuple[int, int]) -> list[bool]:
        return [is_opaque(painter, *cell, canvas=".matrix-marks") for cell in cells]

    column = [(row, 4) for row in range(6)]
    entry = page.locator(".finding").filter(has_text="A query keeps no key")
    expect(entry).to_contain_text("error")
    entry.hover()
    assert covered(*column) == [True, True, False, True, True, True]
    page.mouse.move(5, 5)
    assert not any(covered(*column))
    name = page.locator(".finding").nth(1).locator(".finding-title")
    name.click()
    expect(name).to_have_attribute("aria-pressed", "true")
    page.mouse.move(5, 5)
    assert covered(*((0, key) for key in range(6))) == [True, True, True, True, False, False]


def test_mending_asks_the_host_and_can_be_undone(open_painter):
    painter = open_painter()
    painter.button("Fix: Padding can be seen").click()
    painter.answer()
    assert painter.heard == [("mend", {"finding": 0, "seq": 1})]
    assert painter.painted == [(row, column) for row in range(6) for column in (4, 5)]
    expect(painter.page.locator(".finding")).to_have_count(0)
    expect(painter.page.locator(".findings")).to_have_text(ALL_CLEAR)
    painter.button("Undo").click()
    painter.answer()
    assert painter.painted == []


@pytest.mark.parametrize("name", ["Fix: Padding can be seen", "Paint over causal"])
def test_the_masks_that_a_painting_replaced_come_back_and_go_again(open_painter, name):
    painter = open_painter(4, reasons=("causal",))
    painter.click(3, 0)
    painter.click(0, 3)  # which causal blocks: it offers to paint over it
    painter.answer()
    undo, before = painter.button("Undo"), painter.painted
    painter.button(name).click()
    expect(undo).to_have_attribute("aria-disabled", "true")
    painter.answer()
    after = painter.painted
    assert (painter.reasons, len(after) > len(before)) == ((), True)
    undo.click()
    expect(painter.page.locator(".reason:visible").first).to_have_text("causal6 cells")  # at once
    painter.answer()
    assert (painter.reasons, painter.painted) == (("causal",), before)
    painter.button("Redo").click()
    painter.answer()
    assert (painter.reasons, painter.painted) == ((), after)


def test_findings_about_an_older_painting_cannot_be_mended(open_painter):
    painter = open_painter()
    mend = painter.button("Fix: Padding can be seen")
    painter.drag((0, 0))
    expect(mend).to_have_attribute("aria-disabled", "true")
    painter.page.mouse.up()
    painter.answer()
    expect(mend).to_have_attribute("aria-disabled", "false")


def test_a_row_is_empty_when_all_masks_together_block_it(open_painter):
    painter = open_painter(reasons=("causal",))
    warning = painter.page.locator(".painted-warning")
    expect(warning).to_be_empty()
    painter.click(0, 0)
    painter.answer()
    expect(warning).to_have_text("1 query has no key left")
    description = painter.page.locator(".matrix-pixels").get_attribute("aria-label")
    assert "causal blocks 15 cells; painted blocks 1 cell; error: A query keeps no key" in description
    assert "query 0 the may not see key 0 (painted), keys 1 to 5 (causal)" in description


def test_tokens_are_text_and_nothing_else(open_painter):
    painter = open_painter(8, words=HOSTILE, dark=True, width=420)
    note = tooltip(painter.page)
    for index, token in enumerate(HOSTILE):
        painter.point_at(index, index)
        expect(note).to_contain_text(f"query {index}")
        expect(note).to_contain_text("sees")
        assert note.locator(".token").all_text_contents() == ([token, token] if token else [])
    assert painter.page.locator("img[src=x]").count() == 0


def test_pointing_is_shared_with_the_rest_of_the_page(open_painter):
    painter = open_painter()
    page = painter.page
    page.evaluate("addEventListener('headlight:hover', ({ detail }) => (window.marks = detail.marks))")
    painter.point_at(4, 1)
    assert page.evaluate("window.marks") == [
        {"sequence": "source", "index": 4, "role": "query"},
        {"sequence": "source", "index": 1, "role": "key"},
    ]
    marks = [{"sequence": "source", "index": 3, "role": "token"}]
    page.evaluate("marks => dispatchEvent(new CustomEvent('headlight:hover', { detail: { marks } }))", marks)
    wait_until_lit(painter.panel, [(3, 3)])
    expect(tooltip(page)).to_be_hidden()


@pytest.mark.parametrize("size", [1, 2, 11, 64, 128])
def test_any_size_can_be_painted_on_a_narrow_screen(open_painter, size):
    painter = open_painter(size, reasons=("causal",), width=420, dark=True)
    row = size - 1
    painter.point_at(row, 0)
    expect(tooltip(painter.page)).to_contain_text(f"query {row}")
    painter.click(row, 0)
    painter.answer()
    assert painter.painted == [(row, 0)]
    assert has_color(cell_pixels(painter, row, 0), colors.MASK_COLORS["dark"]["custom"])
    assert painter.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
