"""Softmax over the temperature, against torch and against its limits."""

import math

import numpy as np
import pytest
import torch

from visualizer.figures.temperature_curves import (
    MOST_KEYS,
    softmax_at,
    temperature_curves,
    temperatures_around,
)

SCORES = np.random.default_rng(1).normal(scale=5, size=9)


def curves(scores=SCORES, own=4.0):
    figure = temperature_curves(scores, [f"{i} <k>" for i in range(len(scores))], own=own, theme="dark")
    return figure, {
        trace.name: trace for trace in figure.data if trace.mode == "lines" and trace.name != "this run"
    }


def test_softmax_and_entropy_are_torchs():
    temperatures = np.array([0.5, 1.0, 4.0, 30.0])
    found = softmax_at(SCORES, temperatures)
    for i, temperature in enumerate(temperatures):
        expected = torch.distributions.Categorical(logits=torch.tensor(SCORES / temperature))
        assert found.weights[i] == pytest.approx(expected.probs.numpy())
        assert found.entropy[i] == pytest.approx(expected.entropy().item() / math.log(2))


def test_cold_takes_the_largest_and_hot_takes_all_alike():
    cold, hot = softmax_at(np.array([1.0, 3.0, 3.0, 2.0]), np.array([1e-3, 1e6])).entropy
    assert (cold, hot) == pytest.approx((1.0, 2.0), abs=1e-4)


def test_the_curves_of_a_temperature_sum_to_one_and_the_highest_scores_have_their_own():
    figure, drawn = curves()
    weights = [trace.y for name, trace in drawn.items() if name != "entropy"]
    assert len(weights) == MOST_KEYS + 1
    assert sum(weights) == pytest.approx(np.ones(len(weights[0])))
    highest = np.argsort(-SCORES)[:MOST_KEYS]
    assert list(drawn)[:MOST_KEYS] == [f"{key} &lt;k&gt;" for key in highest]
    assert drawn["the other 3 together"].y[-1] == pytest.approx(
        softmax_at(SCORES, temperatures_around(4.0)).weights[-1, np.argsort(-SCORES)[MOST_KEYS:]].sum()
    )
    assert len({trace.line.dash for trace in figure.data[:MOST_KEYS]}) == MOST_KEYS


def test_the_runs_own_temperature_is_marked_with_its_entropy():
    figure, drawn = curves(own=4.0)
    marks = [trace for trace in figure.data if trace.name == "this run"]
    assert [list(mark.x) for mark in marks] == [[4.0, 4.0]] * 2
    (point,) = (trace for trace in figure.data if trace.mode == "markers")
    assert (point.x[0], point.y[0]) == (4.0, pytest.approx(softmax_at(SCORES, np.array([4.0])).entropy[0]))
    middle = len(drawn["entropy"].x) // 2
    assert (drawn["entropy"].x[middle], drawn["entropy"].y[middle]) == pytest.approx((4.0, point.y[0]))
    (ceiling,) = figure.layout.shapes
    assert ceiling.y0 == pytest.approx(math.log2(len(SCORES)))


def test_one_key_alone_has_no_entropy_at_any_temperature():
    _, drawn = curves(np.array([7.0]))
    assert not drawn["entropy"].y.any()
