"""The residual stream in numbers: lengths, and shares that sum to one with the stream's own."""

import numpy as np
import pytest

from visualizer.figures.residual_stream import Addition, residual_stream, share_of_sum

RANDOM = np.random.default_rng(2)
STREAM, FIRST, SECOND = RANDOM.normal(size=(3, 4, 5))
PRE = (
    Addition("0 self-attention", "attention", STREAM, STREAM + FIRST),
    Addition("0 feed-forward", "feed_forward", STREAM + FIRST, STREAM + FIRST + SECOND),
)
NORMED = (STREAM + FIRST) / 7
POST = (PRE[0], Addition("0 feed-forward", "feed_forward", NORMED, NORMED + SECOND))
COUNTED = np.array([True, True, True, False])


def traces(additions):
    figure = residual_stream(additions, COUNTED, selected=3, token="<x>", theme="light")
    return {trace.name: trace for trace in figure.data}


def length(vectors):
    return np.sqrt((vectors**2).sum(-1))


def test_the_shares_of_the_stream_and_of_the_sub_layer_sum_to_one():
    total = STREAM + FIRST
    own = share_of_sum(FIRST, total)  # as if the sub-layer had come first
    assert share_of_sum(STREAM, total) + own == pytest.approx(np.ones(4))
    assert share_of_sum(STREAM, STREAM * 4) == pytest.approx(np.full(4, 0.75))
    assert np.isnan(share_of_sum(STREAM, np.zeros_like(STREAM))).all()


def test_lengths_are_means_over_the_tokens_that_count_and_of_one_token():
    drawn = traces(PRE)
    stages = [STREAM, STREAM + FIRST, STREAM + FIRST + SECOND]
    assert drawn["length, mean of all tokens"].y == pytest.approx([length(stage)[:3].mean() for stage in stages])
    assert drawn["length, token 3 &lt;x&gt;"].y == pytest.approx([length(stage)[3] for stage in stages])


def test_each_bar_is_the_mean_share_of_its_sub_layer():
    drawn = traces(POST)
    for addition in POST:
        added = addition.after - addition.before
        shares = [added[i] @ addition.after[i] / (addition.after[i] @ addition.after[i]) for i in range(4)]
        assert drawn[addition.title].y == pytest.approx([np.mean(shares[:3])])
    dashes = drawn["share, token 3 &lt;x&gt;"].y
    assert dashes[1] == pytest.approx(shares[3])
    assert drawn["0 feed-forward"].marker.pattern.shape != drawn["0 self-attention"].marker.pattern.shape


def test_where_a_norm_cuts_the_stream_its_length_before_each_sum_is_drawn_too():
    name = "length before the sum, mean of all tokens"
    assert traces(POST)[name].y == pytest.approx([length(STREAM)[:3].mean(), length(NORMED)[:3].mean()])
    assert name not in traces(PRE)
