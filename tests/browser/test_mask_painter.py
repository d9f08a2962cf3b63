"""The mask painter on a page of its own: strokes, reasons, findings, and what Python hears of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import painter_page
from tests.browser.conftest import served, visits
from tests.browser.headlight_page import link_of, lit_cells, messages_sent, rerun, settle
from tests.reading import number, tooltip
from visualizer import colors

OpenPainter = Callable[..., Page]

PAINT_BEFORE_THE_ANSWER_IS_READ = """async () => {
  const root = document.querySelector("[data-testid=stBidiComponentIsolated]").shadowRoot;
  const count = root.querySelector(".painted-count");
  const press = (key) => root.querySelector(".matrix-plot").dispatchEvent(new KeyboardEvent("keydown", { key }));
  press(" ");
  const before = [count.textContent];
  await new Promise((done) => setTimeout(done, 50));
  const end = performance.now() + 800;
  while (performance.now() < end);
  window.counts = [];
  const ofTexts = { characterData: true, childList: true, subtree: true };
  new MutationObserver(() => counts.push(count.textContent)).observe(count, ofTexts);
  press("ArrowRight");
  press(" ");
  return before;
}"""
"""Paints a cell, is deaf until Python's answer must have come, and paints another before the answer is read."""


@pytest.fixture(scope="module")
def painter_url(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(Path(painter_page.__file__), tmp_path_factory.mktemp("painter") / "log.txt") as address:
        yield address


@pytest.fixture
def open_painter(browser: Browser, painter_url: str) -> Iterator[OpenPainter]:
    """Opens a painter that nobody has touched, on a page of its own."""
    with visits(browser, painter_url) as open_page:
        yield partial(open_page, number=0)


def key_of(page: Page) -> str:
    return painter_page.key_of(link_of(page)["number"])


@contextmanager
def answered(page: Page) -> Iterator[None]:
    """Do something that Python hears of, and wait until its answer is painted."""
    with rerun(page, key_of(page)):
        yield


def point_of(page: Page, row: int, column: int, size: int) -> tuple[float, float]:
    """The middle of a cell in the window."""
    box = page.locator(".matrix-plot").bounding_box()
    assert box is not None
    return box["x"] + (column + 0.5) * box["width"] / size, box["y"] + (row + 0.5) * box["height"] / size


def drag(page: Page, size: int, *cells: tuple[int, int]) -> None:
    """Press on the first cell and move over the others; the button stays down."""
    page.mouse.move(*point_of(page, *cells[0], size))
    page.mouse.down()
    for cell in cells[1:]:
        page.mouse.move(*point_of(page, *cell, size), steps=3)


def click(page: Page, row: int, column: int, size: int) -> None:
    page.mouse.click(*point_of(page, row, column, size))


def point_at(page: Page, row: int, column: int, size: int) -> None:
    page.mouse.move(*point_of(page, row, column, size))


def painted(page: Page) -> list[tuple[int, int]]:
    """The cells that Python knows as painted."""
    lines = (page.locator(".st-key-painted").text_content() or "").split()
    return [(row, column) for row, line in enumerate(lines) for column, cell in enumerate(line) if cell == "#"]


def heard(page: Page) -> list[str]:
    return (page.locator(".st-key-heard").text_content() or "").splitlines()


def button(page: Page, name: str) -> Locator:
    return page.locator(".mask-painter").get_by_role("button", name=name)


def cell_pixels(page: Page, canvas: str, row: int, column: int, size: int) -> np.ndarray:
    """Red, green, blue and alpha of all pixels in the inner half of a cell."""
    read = """(canvas, [row, column, size]) => {
      const side = canvas.width / size;
      const start = (index) => Math.ceil((index + 0.25) * side);
      const length = Math.max(1, Math.floor(side / 2));
      return [...canvas.getContext("2d").getImageData(start(column), start(row), length, length).data];
    }"""
    return np.reshape(page.locator(canvas).evaluate(read, [row, column, size]), (-1, 4))


def has_color(pixels: np.ndarray, color: str) -> bool:
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return bool((pixels == (red, green, blue, 255)).all(1).any())


def test_python_hears_nothing_before_the_pointer_is_released(open_painter):
    page = open_painter(tokens=6)
    before = messages_sent(page)
    drag(page, 6, (0, 0), (0, 5), (5, 5))
    expect(page.locator(".painted-count")).to_contain_text("11 of 36 cells blocked")
    assert messages_sent(page) == before
    with answered(page):
        page.mouse.up()
    assert heard(page) == ["paint {'n_queries': 6, 'n_keys': 6, 'seq': 1}"]
    assert painted(page) == [(0, column) for column in range(6)] + [(row, 5) for row in range(1, 6)]


def test_a_rectangle_and_a_whole_row_are_strokes_too(open_painter):
    page = open_painter(tokens=6)
    page.keyboard.down("Shift")
    drag(page, 6, (1, 1), (4, 4), (2, 3))
    page.keyboard.up("Shift")
    with answered(page):
        page.mouse.up()
    assert painted(page) == [(row, column) for row in (1, 2) for column in (1, 2, 3)]
    left, _ = point_of(page, 4, 0, 6)
    with answered(page):
        page.mouse.click(left - 35, point_of(page, 4, 0, 6)[1])
    assert [cell for cell in painted(page) if cell[0] == 4] == [(4, column) for column in range(6)]


def test_a_stroke_can_be_undone_and_done_again(open_painter):
    page = open_painter(tokens=4)
    for row in (1, 2):
        with answered(page):
            click(page, row, 0, 4)
    with answered(page):
        page.keyboard.press("Control+z")
    assert painted(page) == [(1, 0)]
    with answered(page):
        button(page, "Undo").click()
    assert painted(page) == []
    with answered(page):
        page.keyboard.press("Control+Shift+z")
    assert painted(page) == [(1, 0)]


def test_a_stroke_on_some_heads_cannot_be_undone_on_others(open_painter):
    page = open_painter(tokens=4)
    with answered(page):
        click(page, 1, 0, 4)
    expect(button(page, "Undo")).to_have_attribute("aria-disabled", "false")
    with answered(page):
        page.get_by_role("button", name="Other heads").click()
    expect(page.locator(".painted-count")).to_contain_text("4 of 16 cells blocked")
    expect(button(page, "Undo")).to_have_attribute("aria-disabled", "true")


def test_strokes_faster_than_python_are_all_kept(open_painter):
    page = open_painter(tokens=6)
    points = [point_of(page, 3, column, 6) for column in range(6)]
    for point in points:
        page.mouse.click(*point)
    expect(page.locator(".st-key-heard")).to_contain_text("'seq': 6")
    settle(page)
    expect(page.locator(".painted-count")).to_contain_text("6 of 36 cells blocked")
    assert painted(page) == [(3, column) for column in range(6)]


def test_an_answer_to_an_older_stroke_takes_no_newer_one_back(open_painter):
    page = open_painter(tokens=6, busy=0.2)
    assert page.evaluate(PAINT_BEFORE_THE_ANSWER_IS_READ) == ["1 of 36 cells blocked"]
    expect(page.locator(".st-key-heard")).to_contain_text("'seq': 2")
    settle(page)
    assert page.evaluate("counts") == ["2 of 36 cells blocked"]
    assert painted(page) == [(0, 0), (0, 1)]


def test_events_of_all_kinds_reach_a_busy_python(open_painter):
    page = open_painter(tokens=6, busy=0.1)
    points = [point_of(page, 3, column, 6) for column in range(6)]
    for point in points:
        page.mouse.click(*point)
        page.keyboard.press("Enter")
    expect(page.locator(".st-key-heard")).to_contain_text("'seq': 12", timeout=20_000)
    settle(page)
    assert painted(page) == [(3, column) for column in range(6)]
    selected = [event for event in heard(page) if event.startswith("select")]
    assert [f"'key': {column}," in event for column, event in enumerate(selected)] == [True] * 6


def test_the_note_says_why_a_cell_is_blocked_and_what_the_weight_of_another_is(open_painter):
    page = open_painter(tokens=6, reasons="causal,padding", row=3)
    point_at(page, 2, 5, 6)
    expect(tooltip(page)).to_have_text("query 2 sat may not see key 5 mat: causal; also padding")
    point_at(page, 3, 4, 6)
    expect(tooltip(page)).to_contain_text("query 3 on may not see key 4 a: causal; also padding, painted")
    expect(tooltip(page)).to_contain_text("no key left")
    point_at(page, 2, 1, 6)
    expect(tooltip(page)).to_contain_text("query 2 sat sees key 1 cat: weight")
    row = np.zeros((6, 6), dtype=bool)
    row[3] = True
    weights = painter_page.weights_under(painter_page.blocked_with(row, ["causal", "padding"]))
    written = re.search(r"weight (\S+)$", tooltip(page).inner_text())
    assert written is not None
    assert number(written[1]) == pytest.approx(weights[2, 1], rel=6e-4)


def test_the_keyboard_reads_the_same_sentence_and_paints(open_painter):
    page = open_painter(tokens=6, reasons="causal")
    page.locator(".matrix-plot").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    sentence = "query 1 cat may not see key 2 sat: causal"
    expect(tooltip(page)).to_have_text(sentence)
    expect(page.locator(".matrix-body [aria-live]")).to_have_text(sentence)
    for key in ("ArrowLeft", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    with answered(page):
        page.keyboard.press("Space")
    assert painted(page) == [(3, 1)]
    expect(tooltip(page)).to_have_text("query 3 on may not see key 1 cat: painted")


def test_enter_and_looking_select_a_cell_and_paint_nothing(open_painter):
    page = open_painter(tokens=6)
    page.locator(".matrix-plot").focus()
    page.keyboard.press("ArrowDown")
    with answered(page):
        page.keyboard.press("Enter")
    button(page, "Look").click()
    with answered(page):
        click(page, 4, 2, 6)
    assert heard(page) == ["select {'query': 1, 'key': 0, 'seq': 1}", "select {'query': 4, 'key': 2, 'seq': 2}"]
    assert painted(page) == []


def test_a_cell_is_hatched_in_the_colours_of_all_that_blocks_it(open_painter):
    page = open_painter(tokens=6, reasons="causal,padding", row=5)
    light = colors.MASK_COLORS["light"]
    reasons = {(0, 1): {"causal"}, (4, 4): {"padding"}, (0, 5): {"causal", "padding"}, (5, 0): {"custom"}}
    reasons[5, 5] = {"padding", "custom"}
    for cell, names in reasons.items():
        pixels = cell_pixels(page, ".matrix-pixels", *cell, 6)
        assert {name for name, color in light.items() if has_color(pixels, color)} == names
    legend = page.locator(".reason:visible").all_inner_texts()
    assert [" ".join(text.split()) for text in legend] == ["causal 15 cells", "padding 12 cells", "painted 6 cells"]


def test_what_a_stroke_frees_stays_plain_until_python_has_its_weight(open_painter):
    page = open_painter(tokens=6, row=3)
    drag(page, 6, (3, 1), (3, 2))
    expect(tooltip(page)).to_have_text("query 3 on sees key 2 sat: its weight is not computed yet")
    assert not cell_pixels(page, ".matrix-pixels", 3, 2, 6)[:, 3].any()
    assert cell_pixels(page, ".matrix-pixels", 2, 2, 6)[:, 3].all()
    with answered(page):
        page.mouse.up()
    assert cell_pixels(page, ".matrix-pixels", 3, 2, 6)[:, 3].all()
    expect(tooltip(page)).to_contain_text("query 3 on sees key 2 sat: weight 0.")


def test_without_weights_open_cells_are_plain(open_painter):
    page = open_painter(tokens=6, reasons="causal", plain=1)
    assert not cell_pixels(page, ".matrix-pixels", 3, 2, 6)[:, 3].any()
    point_at(page, 3, 2, 6)
    expect(tooltip(page)).to_have_text("query 3 on sees key 2 sat")
    expect(page.locator(".legend")).to_be_hidden()


def test_a_cell_that_another_mask_blocks_cannot_be_freed(open_painter):
    page = open_painter(tokens=6, reasons="causal", row=3)
    before = messages_sent(page)
    click(page, 2, 5, 6)
    expect(page.get_by_role("status")).to_have_text("causal still blocks query 2, key 5, since the key comes later")
    assert messages_sent(page) == before
    drag(page, 6, (3, 2), (3, 5))
    with answered(page):
        page.mouse.up()
    assert painted(page) == [(3, 0), (3, 1)]
    expect(page.get_by_role("status")).to_have_text("causal still blocks 2 of these cells")
    with answered(page):
        page.locator(".painted-offer").click()
    assert heard(page)[-1].startswith("take_over")
    expect(page.locator(".painted-offer")).to_be_hidden()


def test_the_other_masks_can_be_taken_into_the_painting(open_painter):
    page = open_painter(tokens=4, reasons="causal,padding", busy=0.3)
    take_over = button(page, "Paint over causal, padding")
    take_over.click()
    click(page, 0, 3, 4)  # before Python has answered
    expect(page.locator(".st-key-heard")).to_contain_text("'seq': 2")
    settle(page)
    assert [event.partition(" ")[0] for event in heard(page)] == ["take_over", "paint"]
    expect(page.get_by_role("status")).to_be_empty()
    blocked = painter_page.blocked_with(np.zeros((4, 4), dtype=bool), ["causal", "padding"])
    blocked[0, 3] = False
    assert painted(page) == [tuple(cell) for cell in np.argwhere(blocked).tolist()]
    expect(take_over).to_be_hidden()
    expect(page.locator(".reason:visible")).to_have_count(1)


def test_a_finding_lights_its_cells(open_painter):
    page = open_painter(tokens=6, row=2)

    def is_covered(row: int, column: int) -> bool:
        return bool(cell_pixels(page, ".matrix-marks", row, column, 6)[:, 3].all())

    entry = page.locator(".finding").filter(has_text="A query keeps no key")
    expect(entry).to_contain_text("error")
    entry.hover()
    settle(page)
    assert [is_covered(row, 4) for row in range(6)] == [True, True, False, True, True, True]
    page.mouse.move(5, 5)
    settle(page)
    assert not any(is_covered(row, 4) for row in range(6))
    name = page.locator(".finding").nth(1).locator(".finding-title")
    name.click()
    expect(name).to_have_attribute("aria-pressed", "true")
    page.mouse.move(5, 5)
    settle(page)
    assert [is_covered(0, column) for column in range(6)] == [True, True, True, True, False, False]


def test_mending_asks_python_and_can_be_undone(open_painter):
    page = open_painter(tokens=6)
    with answered(page):
        button(page, "Fix: Padding can be seen").click()
    assert heard(page) == ["mend {'finding': 0, 'seq': 1}"]
    assert painted(page) == [(row, column) for row in range(6) for column in (4, 5)]
    expect(page.locator(".finding")).to_have_count(0)
    expect(page.locator(".findings")).to_have_text(painter_page.ALL_CLEAR)
    with answered(page):
        button(page, "Undo").click()
    assert painted(page) == []


def test_findings_about_an_older_painting_cannot_be_mended(open_painter):
    page = open_painter(tokens=6)
    mend = button(page, "Fix: Padding can be seen")
    drag(page, 6, (0, 0))
    expect(mend).to_have_attribute("aria-disabled", "true")
    with answered(page):
        page.mouse.up()
    expect(mend).to_have_attribute("aria-disabled", "false")


def test_a_row_is_empty_when_all_masks_together_block_it(open_painter):
    page = open_painter(tokens=6, reasons="causal")
    expect(page.locator(".painted-warning")).to_be_empty()
    with answered(page):
        click(page, 0, 0, 6)
    expect(page.locator(".painted-warning")).to_have_text("1 query has no key left")
    description = page.locator(".matrix-pixels").get_attribute("aria-label") or ""
    assert "causal blocks 15 cells; painted blocks 1 cell; error: A query keeps no key" in description
    assert "query 0 the may not see key 0 (painted), keys 1 to 5 (causal)" in description


def test_tokens_are_text_and_nothing_else(open_painter):
    page = open_painter(tokens=8, hostile=1, dark=True, width=420)
    for index, token in enumerate(painter_page.HOSTILE):
        point_at(page, index, index, 8)
        expect(tooltip(page)).to_contain_text("sees")
        assert tooltip(page).locator(".token").all_text_contents() == ([token, token] if token else [])
    assert page.locator("img[src=x]").count() == 0


def test_pointing_is_shared_with_the_rest_of_the_page(open_painter):
    page = open_painter(tokens=6)
    page.evaluate("addEventListener('headlight:hover', ({ detail }) => (window.marks = detail.marks))")
    point_at(page, 4, 1, 6)
    assert page.evaluate("window.marks") == [
        {"sequence": "source", "index": 4, "role": "query"},
        {"sequence": "source", "index": 1, "role": "key"},
    ]
    marks = [{"sequence": "source", "index": 3, "role": "token"}]
    page.evaluate("marks => dispatchEvent(new CustomEvent('headlight:hover', { detail: { marks } }))", marks)
    assert lit_cells(page, key_of(page)) == [(3, 3)]
    expect(tooltip(page)).to_be_hidden()


@pytest.mark.parametrize("size", [1, 2, 11, 64, 128])
def test_any_size_can_be_painted_on_a_narrow_screen(open_painter, size):
    page = open_painter(tokens=size, reasons="causal", width=420, dark=True)
    row = size - 1
    point_at(page, row, 0, size)
    expect(tooltip(page)).to_contain_text(f"query {row}")
    with answered(page):
        click(page, row, 0, size)
    assert painted(page) == [(row, 0)]
    assert has_color(cell_pixels(page, ".matrix-pixels", row, 0, size), colors.MASK_COLORS["dark"]["custom"])
    wide = "() => document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(wide)
