"""Weights of a recorded attention under another mask are those that the model gives under it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.nn import functional as F

import headlight
from tests.headlight.mask_cases import CORRECT
from tests.headlight.small_models import causal, stacked, vectors
from tests.headlight.test_transformers_models import IDS, built
from visualizer.runs.watched import WatchedRun
from visualizer.runs.watched_masks import under_another_mask


def watched(model, given):
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(given)
    return trace


def test_the_weights_are_those_of_the_model_under_the_other_mask():
    bias = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(0))
    with_all = stacked(partial(F.scaled_dot_product_attention, attn_mask=bias), n_layers=1)
    hidden = stacked(
        partial(F.scaled_dot_product_attention, attn_mask=bias.masked_fill(~causal(6), -torch.inf)), n_layers=1
    )
    hidden.load_state_dict(with_all.state_dict())
    (one,), (other,) = watched(with_all, vectors()), watched(hidden, vectors())
    for item in range(2):
        found = under_another_mask(one, "k <= q", item)
        torch.testing.assert_close(found.other, other.weights[item], rtol=0, atol=1e-6)
        assert torch.equal(found.recorded, one.weights[item])
        assert torch.equal(found.allowed, causal(6)[None])
    per_head = under_another_mask(one, "k <= q or h == 1", 0)
    torch.testing.assert_close(per_head.other[1], one.weights[0, 1], rtol=0, atol=1e-6)
    torch.testing.assert_close(per_head.other[0], other.weights[0, 0], rtol=0, atol=1e-6)


def test_heads_that_share_keys_are_tried_too():
    attention = watched(built("llama"), IDS)[0]
    assert attention.key_heads < attention.n_heads
    found = under_another_mask(attention, "k <= q", 0)
    torch.testing.assert_close(found.other, attention.weights[0], rtol=0, atol=1e-6)
    assert float(under_another_mask(attention, "True", 0).other[0, 0, -1]) > 0


def test_what_cannot_be_tried_says_why():
    soft_cap = stacked(lambda q, k, v: ((q @ k.mT).tanh() * 30).softmax(-1) @ v, n_layers=1)
    attention = watched(soft_cap, vectors())[0]
    with pytest.raises(ValueError, match="are not the softmax of the recorded queries and keys"):
        under_another_mask(attention, "k <= q", 0)
    without_queries = replace(attention, query=None, key=None)
    with pytest.raises(ValueError, match="queries and keys were not recorded"):
        under_another_mask(without_queries, "k <= q", 0)


def test_a_sink_is_labelled_as_one_and_no_other_mask_is_tried_beside_it():
    case = CORRECT["a sink at the end"]
    with torch.no_grad(), headlight.watch(case.model, keep="all") as trace:
        case.model(*case.args)
    trace.tokens = tuple("abcdef")
    run = WatchedRun(trace, "")
    assert run.labels(trace[0], 0) == (tuple("abcdef"), (*"abcdef", "sink"))
    assert not run.looking_ahead
    with pytest.raises(ValueError, match="a sink takes a share of each row"):
        under_another_mask(trace[0], "k <= q", 0)
