"""The curves of the positional encoding: the formula of the paper in them, and the likeness by distance."""

import math

import numpy as np
import pytest

from visualizer.figures.position_curves import curves_shown, position_curves, product_curve, products_by_distance

LENGTH, WIDTH = 9, 12
SINUSOIDS = np.array(
    [
        [
            (math.cos if column % 2 else math.sin)(place / 10_000 ** (column // 2 * 2 / WIDTH))
            for column in range(WIDTH)
        ]
        for place in range(LENGTH)
    ]
)
NOISE = np.random.default_rng(0).normal(size=(LENGTH, WIDTH))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_curve_is_one_dimension_over_all_positions(theme):
    figure = position_curves(SINUSOIDS, ["<x>"] * LENGTH, selected=7, theme=theme)
    drawn = {int(curve.name.split()[-1]): curve for curve in figure.data}
    assert list(drawn) == curves_shown(LENGTH, WIDTH, 7)
    for dimension, curve in drawn.items():
        wave = math.cos if dimension % 2 else math.sin
        period = 10_000 ** (dimension // 2 * 2 / WIDTH)
        assert list(curve.y) == pytest.approx([wave(place / period) for place in range(LENGTH)])
        assert curve.line.dash == ("dash" if dimension % 2 else "solid")
    assert {dimension for dimension, curve in drawn.items() if curve.line.width > 2} == {7}
    assert "<x>" not in figure.to_json()


@pytest.mark.parametrize(("width", "selected"), [(1, 0), (2, 1), (8, 7), (64, 9), (768, 767)])
def test_few_dimensions_are_drawn_and_the_selected_one_always(width, selected):
    for length in (1, 40, 512):
        shown = curves_shown(length, width, selected)
        assert selected in shown
        assert shown == sorted(set(shown))
        assert len(shown) <= 9
        assert max(shown) < width


def test_over_a_long_text_the_fastest_waves_are_left_out():
    assert curves_shown(40, 64, 0)[0] == 0
    fastest = min(set(curves_shown(512, 64, 63)) - {63})
    assert 512 / (math.tau * 10_000 ** (fastest / 64)) <= 20 < 512 / (math.tau * 10_000 ** ((fastest - 2) / 64))


def test_dot_products_by_distance():
    mean, least, greatest = products_by_distance(NOISE)
    for distance in range(LENGTH):
        pairs = [sum(NOISE[i] * NOISE[i + distance]) for i in range(LENGTH - distance)]
        assert (mean[distance], least[distance], greatest[distance]) == pytest.approx(
            (sum(pairs) / len(pairs), min(pairs), max(pairs))
        )


def test_sinusoids_equally_far_apart_have_one_dot_product_the_sum_of_cosines():
    mean, least, greatest = products_by_distance(SINUSOIDS)
    cosines = [
        sum(math.cos(distance / 10_000 ** (2 * pair / WIDTH)) for pair in range(WIDTH // 2))
        for distance in range(LENGTH)
    ]
    for found in (mean, least, greatest):
        assert found == pytest.approx(cosines)


def test_the_curve_of_products_is_the_mean_in_its_band():
    mean, least, greatest = products_by_distance(NOISE)
    low, high, line = product_curve(mean, least, greatest, theme="light").data
    assert [list(trace.y) for trace in (low, high, line)] == [list(least), list(greatest), list(mean)]
    assert high.fill == "tonexty"
