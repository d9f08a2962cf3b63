"""Weight by distance: sums to one, and its mean distance is that of the measure."""

import numpy as np
import pytest
import torch

from model.analysis.metrics import Attention, mean_distance
from visualizer.figures.attention_distance import attention_distance, weight_by_distance

WEIGHTS = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0)).softmax(-1).numpy()
ALL = np.ones((3, 5), bool)


def test_weight_by_distance_is_the_mean_of_what_lies_there():
    distances, means = weight_by_distance(WEIGHTS, ALL)
    assert list(distances) == list(range(-4, 7))
    for head in range(3):
        for distance, mean in zip(distances, means[head], strict=True):
            there = [WEIGHTS[head, q, q + distance] for q in range(5) if 0 <= q + distance < 7]
            assert mean == pytest.approx(sum(there) / 5)
    assert means.sum(1) == pytest.approx(np.ones(3))


def test_its_mean_distance_is_the_measure():
    square = WEIGHTS[:, :, :5] / WEIGHTS[:, :, :5].sum(-1, keepdims=True)
    ids, padding = torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 5, dtype=torch.bool)
    measure = mean_distance(Attention(torch.tensor(square)[None], ids, ids, padding, padding, True))
    distances, means = weight_by_distance(square, ALL)
    assert (means * abs(distances)).sum(1) == pytest.approx(measure.numpy())


def test_queries_that_do_not_count_are_left_out():
    counted = np.zeros((3, 5), bool)
    counted[0, 2] = counted[1] = True
    _, means = weight_by_distance(WEIGHTS, counted)
    assert means[0][2:9] == pytest.approx(WEIGHTS[0, 2])
    assert means[1].sum() == pytest.approx(1)
    assert np.isnan(means[2]).all()


def test_a_causal_head_is_drawn_up_to_its_query_and_heads_differ_in_more_than_colour():
    causal = np.tril(np.ones((4, 6, 6))) / np.arange(1, 7)[:, None]
    distances, means = weight_by_distance(causal, np.ones((4, 6), bool))
    figure = attention_distance(distances, means, ["a", "b", "c", "<d>"], selected=1, theme="dark")
    assert [list(curve.x) for curve in figure.data] == [[-5, -4, -3, -2, -1, 0]] * 4
    assert list(figure.data[0].y) == pytest.approx(means[0][:6])
    assert len({curve.line.dash for curve in figure.data}) == 4
    assert [curve.line.width > 3 for curve in figure.data] == [False, True, False, False]
    assert figure.data[3].name == "&lt;d&gt;"
