"""The measures as squares that carry their layer and head."""

import numpy as np
import pytest

from visualizer.colors import SEQUENTIAL
from visualizer.figures.measure_map import Measured, measure_map

SHARES = Measured("On <itself>", np.array([[0.0, 1.0, 0.5], [np.nan, 0.25, 0.75]]))
BITS = Measured("Entropy", np.array([[0.0, 4.0, 2.0], [1.0, 3.0, 0.5]]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_square_has_its_place_its_number_and_its_colour(theme):
    figure = measure_map([SHARES, BITS], ["a", "b", "<c>"], layer=1, head=2, theme=theme)
    ring, squares, _, bits = figure.data
    assert (ring.x, ring.y) == ((2,), (1,))
    assert list(squares.customdata) == [[layer, head] for layer in (0, 1) for head in (0, 1, 2)]
    assert [(y, x) for x, y in zip(squares.x, squares.y, strict=True)] == [tuple(p) for p in squares.customdata]
    scale = SEQUENTIAL[theme]
    assert squares.marker.color[:3] == (scale[0], scale[255], scale[127])
    assert squares.marker.color[3] == "rgba(0, 0, 0, 0)"
    assert bits.marker.color[:3] == squares.marker.color[:3], "a measure beyond one is scaled to its largest"
    assert list(squares.text) == ["0.00", "1.00", "0.50", "–", "0.25", "0.75"]
    assert squares.hovertext[2] == "layer 0, &lt;c&gt;<br>On &lt;itself&gt;: 0.500"


def test_many_heads_become_small_squares_without_numbers():
    squares = measure_map([Measured("x", np.zeros((12, 16)))], ["h"] * 16, layer=0, head=0, theme="light").data[1]
    assert len(squares.x) == 12 * 16
    assert not any(squares.text)
