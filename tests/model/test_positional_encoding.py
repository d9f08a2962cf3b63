"""Positions: the sinusoidal table against its formula, and what the three kinds give a model."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import sinusoidal_encoding
from model.positional_encoding import POSITIONS
from tests import numpy_reference
from tests.model.builders import small_inputs, small_transformer


@given(length=st.integers(1, 40), d_model=st.integers(1, 33))
def test_it_is_the_formula(length, d_model):
    table = sinusoidal_encoding(length, d_model)
    assert table.dtype == torch.float64
    expected = numpy_reference.sinusoidal_encoding(length, d_model)
    np.testing.assert_allclose(table.numpy(), expected, atol=1e-12, rtol=0)


@given(offset=st.integers(-7, 7), half=st.integers(1, 16))
def test_a_shift_is_one_linear_map_for_all_positions(offset, half):
    """Each pair (sin, cos) turns by its own angle (section 3.5: PE(t + k) is a linear function of PE(t))."""
    d_model = 2 * half
    shift = torch.zeros(d_model, d_model, dtype=torch.float64)
    for pair in range(half):
        angle = offset / 10000 ** (2 * pair / d_model)
        turn = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        shift[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = torch.tensor(turn, dtype=torch.float64)
    table = sinusoidal_encoding(30, d_model)
    torch.testing.assert_close(table[7:23] @ shift.T, table[7 + offset : 23 + offset], atol=1e-12, rtol=0)


@given(length=st.integers(2, 30))
def test_likeness_depends_on_the_distance_alone(length):
    table = sinusoidal_encoding(length, 16)
    likeness = table @ table.T
    for distance in range(length):
        diagonal = likeness.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", POSITIONS)
def test_a_shorter_sequence_has_the_first_rows(kind):
    positions = POSITIONS[kind](16, 8)
    assert positions(16).shape == (16, 8)
    assert torch.equal(positions(5), positions(16)[:5])


def test_none_are_zeros():
    assert not POSITIONS["none"](16, 8)(16).any()


def test_only_learned_ones_are_trained():
    trained = {kind: len(list(POSITIONS[kind](16, 8).parameters())) for kind in POSITIONS}
    assert trained == {"sinusoidal": 0, "learned": 1, "none": 0}


@pytest.mark.parametrize("kind", POSITIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_has_them_in_its_own_precision(kind, dtype):
    model = small_transformer(positions=kind, dtype=dtype)
    assert model(*small_inputs()).dtype == dtype


def test_a_float64_model_has_sinusoids_of_float64():
    model = small_transformer(dtype=torch.float64)
    expected = numpy_reference.sinusoidal_encoding(16, 8)
    np.testing.assert_allclose(model.encoder.inputs.positions(16).numpy(), expected, atol=1e-14, rtol=0)


def test_without_positions_the_order_of_the_tokens_is_not_seen():
    (ids,) = small_inputs()
    order = torch.tensor([3, 1, 5, 0, 4, 2])
    blind = small_transformer(positions="none", dtype=torch.float64)
    torch.testing.assert_close(blind(ids)[:, order], blind(ids[:, order]), atol=1e-12, rtol=0)
    seeing = small_transformer(positions="sinusoidal", dtype=torch.float64)
    assert not torch.allclose(seeing(ids)[:, order], seeing(ids[:, order]), atol=1e-3)
