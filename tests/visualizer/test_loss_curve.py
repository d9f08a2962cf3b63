"""The curves of a training: what they are drawn from, and what stands beside them."""

from __future__ import annotations

import pytest

from visualizer.figures.loss_curve import Curve, loss_curve, match_curve

ONE = Curve("", "#112233", "solid", (0, 10, 20), (3.0, 1.5, 0.25))
TWO = (
    Curve("with <b>", "#112233", "solid", (0, 10), (3.0, 1.5)),
    Curve("without", "#445566", "dot", (0, 10), (3.0, 2.5)),
)


def test_the_line_goes_through_every_value_and_the_axis_to_the_last_step():
    figure = loss_curve([ONE], n_steps=100, guessing=3.4, moment=None)
    (line,) = figure.data
    assert (tuple(line.x), tuple(line.y)) == (ONE.steps, ONE.values)
    assert (line.line.color, line.line.dash) == (ONE.color, ONE.dash)
    assert tuple(figure.layout.xaxis.range) == (0, 100)
    assert not figure.layout.showlegend


def test_guessing_is_a_line_of_its_own():
    figure = loss_curve([ONE], n_steps=100, guessing=3.4, moment=None)
    (shape,) = figure.layout.shapes
    assert shape.y0 == shape.y1 == 3.4
    assert figure.layout.annotations[0].text == "guessing: 3.40"


@pytest.mark.parametrize("moment", [0, 10])
def test_a_moment_is_marked_in_both(moment):
    figures = [
        loss_curve([ONE], n_steps=100, guessing=3.4, moment=moment),
        match_curve([ONE], n_steps=100, moment=moment),
    ]
    for figure in figures:
        assert moment in [shape.x0 for shape in figure.layout.shapes if shape.x0 == shape.x1]


def test_two_trainings_are_named_and_told_apart():
    figure = match_curve(TWO, n_steps=100, moment=None)
    assert [line.name for line in figure.data] == ["with &lt;b&gt;", "without"]
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == 2
    assert figure.layout.showlegend
    assert figure.layout.yaxis.range[1] >= 1.0
