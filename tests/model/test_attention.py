"""Attention against PyTorch's, against NumPy, and in the corners: masks, blocked rows, free widths, dropout."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from model import MultiHeadAttention, record, scaled_dot_product_attention, seed_dropout
from model.analysis.references import sdpa_difference
from tests import numpy_reference
from tests.model.builders import as_arrays, keyless, random_mask, random_tensor, randomized

N_QUERIES, N_KEYS, D_MODEL, N_HEADS = 5, 7, 8, 2


def cross_inputs(dtype=torch.float32, d_model=D_MODEL):
    query = random_tensor(2, N_QUERIES, d_model, seed=1, dtype=dtype)
    memory = random_tensor(2, N_KEYS, d_model, seed=2, dtype=dtype)
    return query, memory, memory.flip(1)


def pytorch_attention(attention):
    """``nn.MultiheadAttention`` with the same weights."""
    has_bias = attention.w_q.bias is not None
    reference = nn.MultiheadAttention(D_MODEL, N_HEADS, bias=has_bias, batch_first=True).eval()
    projections = (attention.w_q, attention.w_k, attention.w_v)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([linear.weight for linear in projections]))
        reference.out_proj.weight.copy_(attention.w_o.weight)
        if has_bias:
            reference.in_proj_bias.copy_(torch.cat([linear.bias for linear in projections]))
            reference.out_proj.bias.copy_(attention.w_o.bias)
    return reference


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", [None, random_mask(N_QUERIES, N_KEYS)], ids=["no mask", "mask"])
def test_it_agrees_with_pytorch(bias, mask):
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS, bias=bias))
    inputs = cross_inputs()
    with record(attention) as trace:
        output = attention(*inputs, mask)
    blocked = None if mask is None else ~mask
    expected, weights = pytorch_attention(attention)(*inputs, attn_mask=blocked, average_attn_weights=False)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(trace["weights"].value, weights, atol=1e-6, rtol=0)


def test_it_agrees_with_pytorch_on_a_padding_mask():
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS))
    inputs = cross_inputs()
    is_padding = torch.arange(N_KEYS) >= torch.tensor([[4], [6]])
    output = attention(*inputs, ~is_padding[:, None, None])
    expected, _ = pytorch_attention(attention)(*inputs, key_padding_mask=is_padding)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)


def test_it_agrees_with_pytorch_on_a_mask_per_batch_item_and_head():
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS))
    inputs, mask = cross_inputs(), random_mask(2, N_HEADS, N_QUERIES, N_KEYS)
    expected, _ = pytorch_attention(attention)(*inputs, attn_mask=~mask.flatten(0, 1))
    torch.testing.assert_close(attention(*inputs, mask), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale_scores", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("d_model", "n_heads", "choices"),
    [
        (8, 2, {}),
        (3, 2, {"head_dim": 2}),
        (3, 2, {"head_dim": 2, "output_projection": False}),
        (3, 2, {"head_dim": 4, "d_out": 5}),
        (6, 1, {"output_projection": False}),
        (5, 5, {}),
    ],
)
@pytest.mark.parametrize(
    "mask",
    [None, keyless(random_mask(2, 1, N_QUERIES, N_KEYS), query=2), torch.zeros(1, N_KEYS, dtype=torch.bool)],
    ids=["no mask", "one blocked row", "all blocked"],
)
def test_it_agrees_with_numpy(d_model, n_heads, choices, bias, scale_scores, mask):
    attention = MultiHeadAttention(d_model, n_heads, bias=bias, scale_scores=scale_scores, **choices)
    attention = randomized(attention).double()
    inputs = cross_inputs(torch.float64, d_model)
    with torch.no_grad(), record(attention) as trace:
        attention(*inputs, mask)
    expected = numpy_reference.multi_head_attention(
        as_arrays(attention),
        *(tensor.numpy() for tensor in inputs),
        None if mask is None else mask.numpy(),
        n_heads=n_heads,
        scale_scores=scale_scores,
    )
    for name, value in expected.items():
        np.testing.assert_allclose(trace[name].value.numpy(), value, atol=1e-12, rtol=0)


def test_self_attention_agrees_with_numpy():
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS)).double()
    x = random_tensor(2, N_QUERIES, D_MODEL, dtype=torch.float64)
    causal = torch.ones(N_QUERIES, N_QUERIES, dtype=torch.bool).tril()
    expected = numpy_reference.multi_head_attention(
        as_arrays(attention), x.numpy(), x.numpy(), x.numpy(), causal.numpy(), n_heads=N_HEADS
    )
    np.testing.assert_allclose(attention(x, x, x, causal).detach(), expected["output"], atol=1e-12, rtol=0)


def test_the_widths_are_those_asked_for():
    attention = MultiHeadAttention(3, 2, head_dim=2, d_out=5)
    with record(attention) as trace:
        attention(*cross_inputs(d_model=3))
    assert trace["query_input"].dims == (("B", 2), ("Tq", N_QUERIES), ("D", 3))
    assert trace["q_proj"].dims == (("B", 2), ("Tq", N_QUERIES), ("H*Dh", 4))
    assert trace["k"].dims == (("B", 2), ("H", 2), ("Tk", N_KEYS), ("Dh", 2))
    assert trace["weights"].dims == (("B", 2), ("H", 2), ("Tq", N_QUERIES), ("Tk", N_KEYS))
    assert trace["output"].dims == (("B", 2), ("Tq", N_QUERIES), ("Do", 5))


@given(
    n_queries=st.integers(1, 6),
    n_keys=st.integers(1, 6),
    magnitude=st.sampled_from([0.01, 1.0, 100.0]),
    seed=st.integers(0, 1000),
)
def test_weights_are_a_distribution_over_the_allowed_keys(n_queries, n_keys, magnitude, seed):
    q = magnitude * random_tensor(1, 2, n_queries, 4, seed=seed)
    k = magnitude * random_tensor(1, 2, n_keys, 4, seed=seed + 1)
    mask = torch.rand(n_queries, n_keys, generator=torch.Generator().manual_seed(seed)) < 0.5
    context, weights = scaled_dot_product_attention(q, k, k, mask)
    assert (weights[:, :, ~mask] == 0).all()
    has_key = mask.any(-1)
    torch.testing.assert_close(weights.sum(-1), has_key.float().expand(1, 2, -1), atol=1e-6, rtol=0)
    assert (weights >= 0).all()
    assert (context[:, :, ~has_key] == 0).all()


def test_a_divisor_divides_the_scores():
    q, k, v = (random_tensor(1, 1, 4, 8, seed=seed) for seed in range(3))
    by_default, _ = scaled_dot_product_attention(q, k, v)
    by_hand, _ = scaled_dot_product_attention(q, k, v, divisor=math.sqrt(8))
    assert torch.equal(by_default, by_hand)
    unscaled, weights = scaled_dot_product_attention(q, k, v, divisor=1.0)
    assert torch.equal(weights, (q @ k.mT).softmax(-1))
    torch.testing.assert_close(unscaled, F.scaled_dot_product_attention(q, k, v, scale=1.0), atol=1e-6, rtol=0)


def test_values_may_be_of_another_width_than_keys():
    q, k, v = random_tensor(1, 2, 4, 8), random_tensor(1, 2, 5, 8, seed=1), random_tensor(1, 2, 5, 3, seed=2)
    context, _ = scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(context, F.scaled_dot_product_attention(q, k, v), atol=1e-6, rtol=0)


def test_a_query_with_every_key_blocked_gets_exactly_nothing():
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS))
    with record(attention) as trace:
        output = attention(*cross_inputs(), keyless(random_mask(N_QUERIES, N_KEYS), query=3))
    assert (trace["masked_scores"].value[:, :, 3] == -math.inf).all()
    assert (trace["weights"].value[:, :, 3] == 0).all()
    assert (trace["context"].value[:, :, 3] == 0).all()
    torch.testing.assert_close(output[:, 3], attention.w_o.bias.expand(2, -1))
    assert output.isfinite().all()


def test_gradients_stay_finite_when_every_key_is_blocked():
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS))
    query, memory, _ = (tensor.requires_grad_() for tensor in cross_inputs())
    mask = keyless(random_mask(N_QUERIES, N_KEYS), query=3)
    attention(query, memory, memory, mask).square().sum().backward()
    gradients = [query.grad, memory.grad, *(parameter.grad for parameter in attention.parameters())]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (query.grad[:, 3] == 0).all()
    assert query.grad[:, 2].abs().sum() > 0


def test_not_a_number_stays_visible():
    """Only rows without a key are set to zero: a NaN that comes from anywhere else is a bug to be seen."""
    q = random_tensor(1, 1, 3, 4)
    q[0, 0, 1, 0] = math.nan
    _, weights = scaled_dot_product_attention(q, q, q, torch.ones(3, 3, dtype=torch.bool).tril())
    assert weights[0, 0, 1].isnan().any()
    assert (weights[0, 0, 0] == torch.tensor([1.0, 0.0, 0.0])).all()


def test_a_mask_of_numbers_is_refused():
    q = random_tensor(1, 1, 3, 4)
    for numbers in (torch.zeros(3, 3), torch.ones(3, 3, dtype=torch.int64)):
        with pytest.raises((TypeError, RuntimeError)):
            scaled_dot_product_attention(q, q, q, numbers)


def test_dropped_weights_are_traced_and_used():
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS, dropout=0.5)).train()
    seed_dropout(attention, 0)
    with record(attention) as trace:
        attention(*cross_inputs())
    weights, dropped = trace["weights"].value, trace["dropped_weights"].value
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * weights[kept])
    assert 0.3 < kept.float().mean() < 0.7
    assert ((dropped.sum(-1) - 1).abs() > 1e-3).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, N_HEADS, N_QUERIES))
    assert torch.equal(trace["context"].value, dropped @ trace["v"].value)


def test_the_mean_over_many_draws_of_dropout_is_the_weight():
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS, dropout=0.3)).train()
    seed_dropout(attention, 0)
    n_draws = 4000
    with torch.no_grad(), record(attention) as trace:
        attention(*(tensor[:1].expand(n_draws, -1, -1) for tensor in cross_inputs()))
    weights, dropped = trace["weights"].value[0], trace["dropped_weights"].value
    torch.testing.assert_close(dropped.mean(0), weights, atol=0.05, rtol=0)
    assert (dropped.mean(0) - weights).mean().abs() < 0.005


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"d_model": 10, "n_heads": 4}, r"d_model \(10\) must be divisible by n_heads \(4\): try 8 or 12"),
        ({"d_model": 3, "n_heads": 4}, r"d_model \(3\) must be divisible by n_heads \(4\): try 4"),
        ({"d_model": 8, "n_heads": 0}, r"n_heads \(0\) must be at least 1"),
        ({"d_model": 8, "n_heads": -2}, r"n_heads \(-2\) must be at least 1"),
        ({"d_model": 8, "n_heads": 2, "head_dim": 0}, r"head_dim \(0\) must be at least 1"),
        (
            {"d_model": 3, "n_heads": 2, "head_dim": 2, "d_out": 5, "output_projection": False},
            r"d_out \(5\) must be n_heads \* head_dim \(4\)",
        ),
        ({"d_model": 8, "n_heads": 2, "dropout": 1.0}, r"dropout \(1.0\) must be at least 0 and below 1"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(choices, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**choices)


class TestSdpaDifference:
    """The number that the app shows beside every attention."""

    @pytest.mark.parametrize("scale_scores", [True, False])
    @pytest.mark.parametrize(
        "mask", [None, keyless(random_mask(2, 1, N_QUERIES, N_KEYS), query=2)], ids=["no mask", "blocked row"]
    )
    def test_it_is_rounding_alone(self, scale_scores, mask):
        attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS, scale_scores=scale_scores))
        for precision, tolerance in ((attention, 1e-6), (attention.double(), 1e-14)):
            inputs = cross_inputs(precision.w_q.weight.dtype)
            with record(precision) as trace:
                precision(*inputs, mask)
            assert sdpa_difference(trace, "") < tolerance

    def test_it_leaves_dropout_out(self):
        attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS, dropout=0.5)).train()
        seed_dropout(attention, 0)
        with record(attention) as trace:
            attention(*cross_inputs(), random_mask(N_QUERIES, N_KEYS))
        assert sdpa_difference(trace, "") < 1e-6

    def test_it_shows_an_attention_that_was_tampered_with(self):
        attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS))
        with record(attention, {"context": lambda context: context + 0.25}) as trace:
            attention(*cross_inputs())
        assert sdpa_difference(trace, "") == pytest.approx(0.25, abs=1e-5)

    def test_it_shows_not_a_number(self):
        attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS))
        with record(attention, {"context": lambda context: context * math.nan}) as trace:
            attention(*cross_inputs())
        assert math.isnan(sdpa_difference(trace, ""))

    def test_pytorch_gives_zero_where_every_key_is_blocked(self):
        q = random_tensor(1, 2, 4, 8)
        mask = keyless(torch.ones(4, 4, dtype=torch.bool), query=1)
        assert (F.scaled_dot_product_attention(q, q, q, attn_mask=mask)[:, :, 1] == 0).all()
