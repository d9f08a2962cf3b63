"""Without colours: what is below zero differs from what is as far above it."""

from __future__ import annotations

import json

import pytest

from tests.pictures.modules_page import scripted_page
from visualizer import colors
from visualizer.components.bundle import FOLDER

ENTRY = """import { drawMatrix, signCanvas } from "./cells.js";
import { makeScale } from "./scale.js";
window.luminances = (theme, size) => {
  const [rows, columns, width, height] = [1, 2, 64, 32];
  const matrix = { values: Float32Array.of(size, -size), rows, columns, blocked: null, steps: null, dtype: "f4" };
  const scale = makeScale(theme, "diverging", [-1, 1]);
  const cells = document.createElement("canvas");
  drawMatrix(cells, matrix, scale, width, height);
  const picture = new OffscreenCanvas(width, height).getContext("2d");
  picture.imageSmoothingEnabled = false;
  picture.drawImage(cells, 0, 0, width, height);
  picture.drawImage(signCanvas(matrix, scale, width, height, 1), 0, 0);
  const luminance = (left) => {
    const { data } = picture.getImageData(left, 0, width / 2, height);
    let sum = 0;
    for (let i = 0; i < data.length; i += 4) sum += 0.2126 * data[i] + 0.7152 * data[i + 1] + 0.0722 * data[i + 2];
    return sum / (data.length / 4) / 255;
  };
  return [luminance(0), luminance(width / 2)];
};
"""
LEAST = 0.12
"""The share of their distance from the background by which both signs differ in mean luminance."""


@pytest.fixture
def page(browser):
    with scripted_page(browser, ENTRY, FOLDER / "marks", "luminances") as found:
        yield found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_equal_sizes_of_opposite_sign_differ_in_greyscale(page, theme):
    tables = json.loads(json.dumps(colors.as_json()))["themes"][theme]
    background = colors.BACKGROUND[theme]
    of_background = sum(
        share * int(background[start : start + 2], 16) / 255
        for share, start in ((0.2126, 1), (0.7152, 3), (0.0722, 5))
    )
    for size in (0.2, 0.5, 1.0):
        given = {"name": theme, "background": background, **tables}
        above, below = page.evaluate("([theme, size]) => luminances(theme, size)", [given, size])
        assert abs(above - below) >= LEAST * abs(above - of_background), (size, above, below)
