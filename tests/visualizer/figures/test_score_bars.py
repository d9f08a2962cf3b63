"""One row of scores and weights as bars."""

import numpy as np
import pytest

from visualizer.figures.score_bars import score_bars

SCORES = np.array([0.5, -1.25, 2.0], np.float32)
WEIGHTS = np.array([0.2, 0.8, 0.0], np.float32)


def bars(theme="light", labels=("a", "a", "<i>")):
    return score_bars(
        SCORES,
        WEIGHTS,
        labels,
        blocked_by=["", "", "causal and padding"],
        score_name="score",
        selected=1,
        theme=theme,
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_number_has_one_bar_and_blocked_scores_are_hatched(theme):
    open_bars, blocked_bars, weight_bars = bars(theme).data
    assert np.array_equal(open_bars.y, [0.5, -1.25, np.nan], equal_nan=True)
    assert np.array_equal(blocked_bars.y, [np.nan, np.nan, 2.0], equal_nan=True)
    assert blocked_bars.marker.pattern.shape == "/"
    assert list(weight_bars.y) == pytest.approx([0.2, 0.8, 0.0])


def test_the_axis_is_one_of_numbers_and_the_hover_says_what_blocks():
    figure = bars()
    assert [list(bar.x) for bar in figure.data] == [[0, 1, 2]] * 3
    assert list(figure.layout.xaxis2.ticktext) == ["a", "a", "&lt;i&gt;"]
    assert [row[1] for row in figure.data[1].customdata] == [
        "may be attended to",
        "may be attended to",
        "blocked by causal and padding",
    ]
    assert {(shape.x0, shape.x1) for shape in figure.layout.shapes} == {(0.5, 1.5)}
