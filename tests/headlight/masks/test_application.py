"""Every way of masking does what its line of code does, and what is measured of it is right."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headlight.masks.application import APPLICATIONS, DTYPES, applied, outcome_of
from model import scaled_dot_product_attention
from tests.model.builders import random_tensor

FILLS = ("minus_infinity_then_zero", "minus_infinity", "lowest", "minus_1e9", "minus_1e4")
SCORES = random_tensor(9) * 2
ALLOWED = torch.tensor([True, True, False, True, True, True, False, False, True])
finite_rows = st.lists(st.tuples(st.floats(-30, 30, width=16), st.booleans()), min_size=1, max_size=40)


def row_of(application, dtype, scores=SCORES, allowed=ALLOWED):
    return next(row for row in applied(scores, allowed) if (row.application, row.dtype) == (application, dtype))


def softmax_of_the_rest(scores, allowed, filling):
    """The weights in double precision, one exponential after the other."""
    numbers = [score if may else filling(score) for score, may in zip(scores, allowed, strict=True)]
    highest = max(numbers)
    exponentials = [math.exp(number - highest) for number in numbers]
    return np.array(exponentials) / math.fsum(exponentials)


def unpacked(pairs):
    scores, allowed = zip(*pairs, strict=True)
    return torch.tensor(scores), torch.tensor(allowed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_code_shown_is_the_code_run(name, dtype):
    """Except where PyTorch refuses the code shown, which is then said."""
    application, scores = APPLICATIONS[name], SCORES.to(dtype)
    expected = application.apply(scores, ALLOWED)
    assert expected.dtype == dtype
    names = {"scores": scores, "allowed": ALLOWED, "torch": torch, "math": math}
    if (refusal := row_of(name, dtype).refusal) is None:
        assert torch.equal(eval(application.code, names), expected)
    else:
        with pytest.raises(RuntimeError) as error:
            eval(application.code, names)
        assert str(error.value) == refusal


def test_only_float16_refuses_and_only_minus_1e9():
    refused = [(row.application, row.dtype) for row in applied(SCORES, ALLOWED) if row.refusal is not None]
    assert refused == [("minus_1e9", torch.float16)]
    assert "without overflow" in row_of(*refused[0]).refusal


def test_every_way_comes_in_every_type():
    rows = applied(SCORES, ALLOWED)
    assert [(row.application, row.dtype) for row in rows] == [(name, t) for name in APPLICATIONS for t in DTYPES]
    assert all(row.weights.shape == row.fully_blocked.shape == SCORES.shape for row in rows)
    assert {row.weights.dtype for row in rows} == {torch.float32}


@pytest.mark.parametrize(("dtype", "tolerance"), [*zip(DTYPES, (1e-6, 4e-3, 1e-3), strict=True)])
def test_weights_are_those_of_a_loop_in_double_precision(dtype, tolerance):
    scores, allowed = SCORES.to(dtype).tolist(), ALLOWED.tolist()
    without_blocked = softmax_of_the_rest(scores, allowed, lambda score: -math.inf)
    unmasked = softmax_of_the_rest(scores, allowed, lambda score: score)
    expected = dict.fromkeys(APPLICATIONS, without_blocked)
    expected["before_softmax"] = softmax_of_the_rest(scores, allowed, lambda score: 0.0)
    expected["after_softmax"] = unmasked * ALLOWED.numpy()
    for name, weights in expected.items():
        np.testing.assert_allclose(row_of(name, dtype).weights.numpy(), weights, rtol=0, atol=tolerance)


@pytest.mark.parametrize("allowed", [ALLOWED, torch.zeros_like(ALLOWED)])
def test_the_first_way_is_the_models_own(allowed):
    """One query of length one against keys that are the scores themselves."""
    keys = SCORES[None, None, :, None]
    one = torch.ones(1, 1, 1, 1)
    _, weights = scaled_dot_product_attention(one, keys, keys, allowed)
    first = next(iter(APPLICATIONS.values()))
    assert "Headlight" in first.note
    assert torch.equal(first.apply(SCORES, allowed), weights.flatten())


def test_rows_of_a_whole_tensor_are_masked_alike():
    scores, allowed = random_tensor(2, 3, 4, 5), random_tensor(2, 1, 4, 5, seed=1) > 0
    for application in APPLICATIONS.values():
        weights = application.apply(scores, allowed.expand_as(scores))
        row = application.apply(scores[1, 2, 3], allowed[1, 0, 3])
        torch.testing.assert_close(weights[1, 2, 3], row, equal_nan=True)


@given(finite_rows)
def test_what_is_measured_follows_from_the_weights(pairs):
    scores, allowed = unpacked(pairs)
    for row in applied(scores, allowed):
        weights = row.weights.numpy().astype(np.float64)
        blocked = ~allowed.numpy()
        np.testing.assert_equal(row.leak, float(torch.tensor(weights[blocked]).sum()))
        np.testing.assert_allclose(row.row_sum, weights.sum(), rtol=1e-12)
        if row.application == "after_softmax":
            assert row.leak == 0


@given(finite_rows)
def test_low_fills_hide_moderate_scores_entirely(pairs):
    """Scores within 30 of zero are thousands above every fill."""
    scores, allowed = unpacked(pairs)
    if not allowed.any():
        return
    for row in applied(scores, allowed):
        if row.application in FILLS:
            assert (row.leak, row.taken, row.sums_to_one) == (0, 0, True)


@given(finite_rows)
def test_after_the_softmax_what_is_taken_is_what_is_missing(pairs):
    scores, allowed = unpacked(pairs)
    if not allowed.any():
        return
    for dtype in DTYPES:
        row = row_of("after_softmax", dtype, scores, allowed)
        unit = torch.finfo(dtype).eps
        assert row.taken == pytest.approx(1 - row.row_sum, abs=2 * unit)
        mass_of_blocked = scores.to(dtype).double().softmax(-1)[~allowed].sum().item()
        assert row.taken == pytest.approx(mass_of_blocked, abs=2 * unit)


@given(finite_rows)
def test_without_anything_blocked_all_ways_agree(pairs):
    scores, _ = unpacked(pairs)
    allowed = torch.ones_like(scores, dtype=torch.bool)
    for row in applied(scores, allowed):
        assert torch.equal(row.weights, scores.to(row.dtype).softmax(-1).float())
        assert (row.leak, row.taken, row.sums_to_one) == (0, 0, True)


@pytest.mark.parametrize("n_keys", [1, 2, 7, 64, 128, 512])
def test_a_softmax_sums_to_one_as_its_type_can_say_it(n_keys):
    scores = random_tensor(n_keys, seed=n_keys) * 3
    for row in applied(scores, torch.ones(n_keys, dtype=torch.bool)):
        assert row.sums_to_one, (row.application, row.dtype, row.row_sum)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_that_misses_a_share_does_not_sum_to_one(dtype):
    assert not row_of("after_softmax", dtype).sums_to_one
    half = row_of("after_softmax", dtype, torch.zeros(2), torch.tensor([True, False]))
    assert (half.row_sum, half.taken, half.leak) == (0.5, 0.5, 0)


@pytest.mark.parametrize(
    ("name", "dtype", "fill", "overflows"),
    [
        ("minus_infinity", torch.float16, -math.inf, False),
        ("lowest", torch.float32, -3.4028234663852886e38, False),
        ("lowest", torch.bfloat16, -3.3895313892515355e38, False),
        ("lowest", torch.float16, -65504.0, False),
        ("minus_1e9", torch.float32, -1e9, False),
        ("minus_1e9", torch.bfloat16, -998244352.0, False),
        ("minus_1e9", torch.float16, -math.inf, True),
        ("minus_1e4", torch.float32, -1e4, False),
        ("minus_1e4", torch.bfloat16, -9984.0, False),
        ("minus_1e4", torch.float16, -1e4, False),
        ("after_softmax", torch.float32, None, False),
    ],
)
def test_the_fill_is_what_the_type_makes_of_it(name, dtype, fill, overflows):
    row = row_of(name, dtype)
    assert (row.fill, row.fill_overflows) == (fill, overflows)


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("minus_infinity_then_zero", ["zero"] * 3),
        ("minus_infinity", ["NaN"] * 3),
        ("lowest", ["uniform"] * 3),
        ("minus_1e9", ["uniform", "uniform", "NaN"]),
        ("minus_1e4", ["uniform"] * 3),
        ("before_softmax", ["uniform"] * 3),
        ("after_softmax", ["zero"] * 3),
    ],
)
def test_a_fully_blocked_row(name, outcomes):
    rows = [row_of(name, dtype) for dtype in DTYPES]
    assert [row.outcome for row in rows] == outcomes
    for row in rows:
        itself = row_of(name, row.dtype, allowed=torch.zeros_like(ALLOWED))
        np.testing.assert_array_equal(itself.weights.numpy(), row.fully_blocked.numpy())
        expected = {"zero": 0.0, "uniform": 1.0, "NaN": math.nan}[row.outcome]
        np.testing.assert_allclose(itself.leak, expected, atol=1e-2 if row.dtype == torch.bfloat16 else 1e-3)


def test_an_added_fill_forgets_the_mask_of_a_fully_blocked_row_as_far_as_the_type_tells_scores_apart():
    """Near -1e4 the numbers of float32 are 0.001 apart, those of float16 8 and those of bfloat16 64."""
    single, brain, half = (row_of("added_minus_1e4", dtype, scores=SCORES.clamp(-3.5, 3.5)) for dtype in DTYPES)
    assert (single.outcome, brain.outcome, half.outcome) == ("unmasked", "uniform", "uniform")
    torch.testing.assert_close(single.fully_blocked, SCORES.clamp(-3.5, 3.5).softmax(-1), atol=1e-3, rtol=0)
    assert row_of("added_minus_1e4", torch.float16, scores=SCORES * 3).outcome == "other"


@pytest.mark.parametrize(
    ("weights", "outcome"),
    [
        ([math.nan, math.nan, math.nan], "NaN"),
        ([0.5, math.nan, 0.5], "NaN"),
        ([0.0, 0.0, 0.0], "zero"),
        ([1 / 3, 1 / 3, 1 / 3], "uniform"),
        ([0.2, 0.3, 0.5], "unmasked"),
        ([0.205, 0.3, 0.495], "unmasked"),
        ([0.5, 0.3, 0.2], "other"),
        ([1.0, 0.0, 0.0], "other"),
    ],
)
def test_an_outcome_is_told_from_the_numbers(weights, outcome):
    assert outcome_of(torch.tensor(weights), torch.tensor([0.2, 0.3, 0.5])) == outcome


def test_one_key_alone():
    for row in applied(torch.tensor([2.0]), torch.tensor([True])):
        assert (row.weights.item(), row.leak, row.taken) == (1, 0, 0)


def test_minus_1e4_leaks_among_scores_as_low_as_itself():
    """Scores near -1e4 come of unscaled products of long vectors; -1e9 still hides what is below it."""
    scores, allowed = torch.tensor([-20_000.0, -20_001.0, 1.0, 2.0]), torch.tensor([True, True, False, False])
    assert row_of("minus_1e4", torch.float32, scores, allowed).leak == 1
    assert row_of("minus_1e4", torch.float32, scores, allowed).taken == pytest.approx(1)
    assert row_of("minus_1e9", torch.float32, scores, allowed).leak == 0
    half = row_of("minus_1e4", torch.float32, torch.tensor([-1e4, 5.0]), torch.tensor([True, False]))
    assert half.leak == half.taken == 0.5


@pytest.mark.parametrize(
    ("scores", "allowed", "match"),
    [
        (torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool), r"shapes \(2, 3\) and \(2, 3\)"),
        (torch.zeros(3), torch.ones(2, dtype=torch.bool), r"shapes \(3,\) and \(2,\)"),
        (torch.zeros(0), torch.ones(0, dtype=torch.bool), r"one key or more"),
        (torch.zeros(3), torch.ones(3), "allowed must be boolean, not torch.float32"),
        (torch.zeros(3, dtype=torch.int64), torch.ones(3, dtype=torch.bool), "floating type, not torch.int64"),
    ],
)
def test_what_is_no_row_is_refused(scores, allowed, match):
    with pytest.raises(ValueError, match=match):
        applied(scores, allowed)


def test_neither_scores_nor_gradients_are_touched():
    scores = SCORES.clone().requires_grad_(True)
    assert not any(row.weights.requires_grad or row.fully_blocked.requires_grad for row in applied(scores, ALLOWED))
    assert torch.equal(scores, SCORES)
