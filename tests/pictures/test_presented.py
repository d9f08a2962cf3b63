"""Pictures on a page that is presented: every grid fits the window, whatever stands above it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.pictures.static_page import pictures_of

TEXT = "The cat sat on the mat because it was tired ."
GRIDS = {
    "heads": ("attention_heads/element.js", {"view": "heads", "shown": "0"}),
    "compare": ("compare_grids/element.js", {"view": "compare"}),
    "step": ("tensor_grid/element.js", {"view": "step"}),
    "lab": ("mask_painter/element.js", {"view": "lab"}),
}
FITS = """(above) => {
  const plot = document.querySelector(".picture > div").shadowRoot.querySelector(".matrix-plot");
  const { top, bottom, height } = plot.getBoundingClientRect();
  return top > above && height > 100 && bottom <= innerHeight;
}"""


def present(page: Page, *, width: int, height: int, zoom: float) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.add_style_tag(content=f"body {{ --hl-presented: yes; max-width: none; margin: 0; zoom: {zoom}; }}")


@pytest.mark.parametrize("view", GRIDS)
def test_every_row_of_a_grid_is_in_sight_while_the_page_is_presented(show, view):
    module, link = GRIDS[view]
    grid = next(one for one in pictures_of(text=TEXT, **link) if one.module == module)
    page = show([grid], width=1600)
    page.set_viewport_size({"width": 1600, "height": 500})
    assert not page.evaluate(FITS, 0), "without it the grid is as high as can be read well"
    present(page, width=1920, height=1080, zoom=1.55)
    page.wait_for_function(FITS, arg=0)
    present(page, width=1280, height=720, zoom=1.1)
    page.wait_for_function(FITS, arg=0)

    page.evaluate("document.body.prepend(Object.assign(document.createElement('div'), {style: 'height: 60px'}))")
    page.wait_for_function(FITS, arg=60)


def test_a_grid_whose_rows_would_be_too_low_below_what_stands_above_has_the_whole_window(show):
    page = show([one for one in pictures_of(text=TEXT, view="lab") if one.module == GRIDS["lab"][0]])
    present(page, width=1280, height=720, zoom=1)
    page.evaluate("document.body.prepend(Object.assign(document.createElement('div'), {style: 'height: 600px'}))")
    page.wait_for_function(
        """() => {
          const root = document.querySelector(".picture > div").shadowRoot;
          const { height } = root.querySelector(".matrix-body").getBoundingClientRect();
          return height > 400 && height < innerHeight;
        }"""
    )
