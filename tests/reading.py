"""Acts of a person with the pictures of a page, in the app or without it, and what they read there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page

from tests.pages import PATIENCE


def point_at(panel: Locator, row: int, column: int, shape: tuple[int, int]) -> None:
    """Move the pointer to a cell of a matrix with this many rows and columns."""
    plot = panel.locator(".matrix-plot")
    plot.hover(position=_middle_of_cell(plot, row, column, shape))


def click_cell(panel: Locator, row: int, column: int, shape: tuple[int, int]) -> None:
    plot = panel.locator(".matrix-plot")
    plot.click(position=_middle_of_cell(plot, row, column, shape))


def _middle_of_cell(plot: Locator, row: int, column: int, shape: tuple[int, int]) -> dict[str, float]:
    left, top, width, height = plot.evaluate(
        """plot => {
          const { width, height } = plot.getBoundingClientRect();
          return [plot.clientLeft, plot.clientTop, width, height];
        }"""
    )
    return {"x": (column + 0.5) / shape[1] * width - left, "y": (row + 0.5) / shape[0] * height - top}


def tooltip(page: Page) -> Locator:
    """The note beside the pointer."""
    return page.locator(".tooltip:popover-open")


def number(text: str) -> float:
    """A number as the page writes it."""
    return float(text.replace("−", "-").replace("∞", "inf").removeprefix("≈"))


def tooltip_numbers(page: Page) -> list[float]:
    """The numbers of the tooltip, from top to bottom."""
    return [number(text) for text in tooltip(page).locator(".tooltip-value b").all_inner_texts()]


def wait_for_numbers(page: Page, expected: list[float]) -> None:
    """Wait until the tooltip has exactly these numbers, from top to bottom, as closely as it writes them."""
    page.wait_for_function(_HAS_NUMBERS, arg=expected)


_HAS_NUMBERS = """expected => {
  const roots = [document, ...[...document.querySelectorAll("*")].flatMap(({ shadowRoot }) => shadowRoot ?? [])];
  const notes = roots.flatMap((root) => [...root.querySelectorAll(".tooltip:popover-open .tooltip-value b")]);
  const numbers = notes.map((note) => Number(note.textContent.replace("−", "-").replace("≈", "")));
  const isClose = (value, i) => Math.abs(value - expected[i]) <= Math.max(6e-4 * Math.abs(expected[i]), 1e-7);
  return numbers.length === expected.length && numbers.every(isClose);
}"""


_LIT_CELLS = """panels => panels.map((panel) => {
  const [row, column] = [panel.querySelector(".light-row"), panel.querySelector(".light-column")];
  const plot = panel.querySelector(".matrix-plot").getBoundingClientRect();
  const isLit = (light) => getComputedStyle(light).visibility === "visible";
  const [rowBox, columnBox] = [row.getBoundingClientRect(), column.getBoundingClientRect()];
  return [
    isLit(row) ? Math.round((rowBox.top - plot.top) / rowBox.height) : null,
    isLit(column) ? Math.round((columnBox.left - plot.left) / columnBox.width) : null,
  ];
})"""


def lit_in(matrices: Locator) -> list[tuple[int | None, int | None]]:
    """The lit row and column of each of these matrices, None where none is."""
    return [(row, column) for row, column in matrices.evaluate_all(_LIT_CELLS)]


def wait_until_lit(matrices: Locator, cells: list[tuple[int | None, int | None]]) -> None:
    """Wait until these are the lit row and column of each of these matrices, None where none is."""
    matrices.evaluate_all(
        f"""(panels, expected) => new Promise((done, fail) => {{
          const end = performance.now() + {PATIENCE};
          const look = () => {{
            const found = JSON.stringify(({_LIT_CELLS})(panels));
            if (found === JSON.stringify(expected)) return done();
            if (performance.now() > end) return fail(new Error(`lit are ${{found}}`));
            requestAnimationFrame(look);
          }};
          look();
        }})""",
        [list(cell) for cell in cells],
    )


def open_fold(page: Page, name: str) -> None:
    """Open what is folded away in a picture behind a word."""
    page.locator(".fold-title", has_text=name).click()


def close_to(value: float) -> object:
    """Match a number of the model written with four or more digits."""
    return pytest.approx(value, rel=6e-4, abs=1e-7)


MOVE_TO = """(dial, place) => {
  dial.value = place;
  dial.dispatchEvent(new Event("input", { bubbles: true }));
}"""
"""Drags a dial to a place, where a hand still holds it."""

LAYERS_BACK_AND_FORTH = """forward => {
  const root = forward.getRootNode();
  const press = (name) => root.querySelector(`[aria-label="${name}"]`).click();
  for (const way of ["next", "next", "next", "previous", "previous"]) press(`${way} layer`);
  return root.querySelector(".layer-text").textContent;
}"""
"""From layer 0 to layer 3 and back to layer 1 within one task of the page; gives what is said of the layer then."""


def room_for(plot: Locator, text: str) -> bool:
    """True if a text fits beside a matrix, where the names of its rows stand."""
    fits: bool = plot.evaluate(
        """(plot, text) => {
          const context = document.createElement("canvas").getContext("2d");
          context.font = `11px ${getComputedStyle(plot).fontFamily}`;
          const left = plot.getBoundingClientRect().left - plot.closest(".matrix").getBoundingClientRect().left;
          return left > context.measureText(text).width;
        }""",
        text,
    )
    return fits


def is_read_by_row(page: Page) -> None:
    """Every picture in sight has its rows as texts, a moment after it is drawn."""
    page.wait_for_function(_ALL_IS_READ)


_ALL_IS_READ = """() => {
  const isRead = (picture) => {
    for (let around = picture.parentElement; around; around = around.parentElement) {
      const reading = around.querySelector(".reading");
      if (reading) return reading.querySelectorAll("li").length > 0 && !reading.hasAttribute("aria-busy");
    }
    return false;
  };
  const isPicture = (one) => !one.matches(".legend-bar") && one.checkVisibility();
  const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated], .picture > div")];
  const roots = hosts.map(({ shadowRoot }) => shadowRoot);
  return roots.flatMap((root) => [...root.querySelectorAll("canvas, .token-way svg")]).every((one) => {
    const { top, bottom, width } = one.getBoundingClientRect();
    const isNear = bottom > 0 && top < innerHeight && width > 0;
    return !isNear || !isPicture(one) || isRead(one);
  });
}"""
"""True if every picture in sight is put into words, row by row."""


BESIDE_THE_SIDEBAR = (700, 400)


def controls_in_sight(page: Page) -> list[str]:
    """The name of each button, link, field and switch that is to be seen without scrolling, a menu as one."""
    page.mouse.move(*BESIDE_THE_SIDEBAR)  # which draws a button of its own under the pointer
    names: list[str] = page.evaluate(_IN_SIGHT)
    return names


_IN_SIGHT = """() => {
  const kinds = "button, a[href], input, textarea, select, summary, [role=radio], [role=switch], [role=slider]";
  const inside = (root) => [...root.querySelectorAll("*")].flatMap((element) => [
    element, ...(element.shadowRoot ? inside(element.shadowRoot) : []),
  ]);
  const isInSight = (element) => {
    const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
    const isInWindow = right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
    return width > 3 && height > 3 && isInWindow && element.checkVisibility({ visibilityProperty: true });
  };
  const found = inside(document).filter((element) => element.matches(kinds) && isInSight(element));
  const apart = found.filter((element) => !element.matches("button[aria-haspopup=listbox]"));
  return apart.map((element) => element.getAttribute("aria-label") ?? (element.innerText || element.value));
}"""
