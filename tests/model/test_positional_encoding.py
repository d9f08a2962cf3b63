"""Positions: the sinusoidal table against its formula, and what the three kinds give a model."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import masks as masking
from model import positions_from_first_token, sinusoidal_encoding
from model.positional_encoding import POSITIONS
from tests import numpy_reference
from tests.model.builders import ARCHITECTURES, small_inputs, small_transformer


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
    assert positions(torch.arange(16)).shape == (16, 8)
    assert torch.equal(positions(torch.arange(5)), positions(torch.arange(16))[:5])


def test_none_are_zeros():
    assert not POSITIONS["none"](16, 8)(torch.arange(16)).any()


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
    np.testing.assert_allclose(
        model.encoder.inputs.positions(torch.arange(16)).numpy(), expected, atol=1e-14, rtol=0
    )


def test_without_positions_the_order_of_the_tokens_is_not_seen():
    (ids,) = small_inputs()
    order = torch.tensor([3, 1, 5, 0, 4, 2])
    blind = small_transformer(positions="none", dtype=torch.float64)
    torch.testing.assert_close(blind(ids)[:, order], blind(ids[:, order]), atol=1e-12, rtol=0)
    seeing = small_transformer(positions="sinusoidal", dtype=torch.float64)
    assert not torch.allclose(seeing(ids)[:, order], seeing(ids[:, order]), atol=1e-3)


@pytest.mark.parametrize(
    ("is_padding", "expected"),
    [
        ([0, 0, 0], [0, 1, 2]),
        ([1, 1, 0, 0], [0, 0, 0, 1]),
        ([0, 0, 1, 1], [0, 1, 2, 3]),
        ([1, 0, 1, 0], [0, 0, 1, 2]),
        ([1, 1], [0, 0]),
    ],
)
def test_positions_count_from_the_first_token_that_is_no_padding(is_padding, expected):
    found = positions_from_first_token(torch.tensor([is_padding, is_padding], dtype=torch.bool))
    assert found.tolist() == [expected, expected]


def padded_inputs(model, sequences, n_padding, side):
    """The sequences with padding on a side, and everything that a model needs to see past it."""
    names = ("source", "target")[: len(sequences)]
    padded, is_padding = [], []
    for ids in sequences:
        pads = torch.zeros(len(ids), n_padding, dtype=torch.int64)
        padded.append(torch.cat([pads, ids] if side == "left" else [ids, pads], -1))
        marks = [pads == 0, torch.zeros_like(ids, dtype=torch.bool)]
        is_padding.append(torch.cat(marks if side == "left" else marks[::-1], -1))
    masks = {f"{name}_mask": masking.padding(pads) for name, pads in zip(names, is_padding, strict=True)}
    n_last = padded[-1].shape[-1]
    if model.encoder is None or len(names) == 2:
        masks[f"{names[-1]}_mask"] = masks[f"{names[-1]}_mask"] & masking.causal(n_last, n_last)
    if len(names) == 2:
        masks["memory_mask"] = masks["source_mask"]
    positions = {
        f"{name}_positions": positions_from_first_token(pads) for name, pads in zip(names, is_padding, strict=True)
    }
    return padded, masks, positions, ~is_padding[-1][0]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("kind", POSITIONS)
@pytest.mark.parametrize("side", ["left", "right"])
@given(n_padding=st.integers(0, 7))
def test_padding_that_is_masked_changes_no_output(architecture, kind, side, n_padding):
    model = small_transformer(architecture, positions=kind, dtype=torch.float64)
    sequences = small_inputs(architecture)
    padded, masks, positions, is_real = padded_inputs(model, sequences, n_padding, side)
    _, alone, _, _ = padded_inputs(model, sequences, 0, side)
    found, expected = model(*padded, **masks, **positions)[:, is_real], model(*sequences, **alone)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_positions_that_count_the_padding_change_the_output():
    """Positions are passed for a reason: without them the same text, padded on the left, is another one."""
    model, sequences = small_transformer("decoder", dtype=torch.float64), small_inputs("decoder")
    padded, masks, _, is_real = padded_inputs(model, sequences, 3, "left")
    _, alone, _, _ = padded_inputs(model, sequences, 0, "left")
    assert (model(*padded, **masks)[:, is_real] - model(*sequences, **alone)).abs().max() > 1e-2


def test_each_sequence_of_a_batch_has_positions_of_its_own():
    model, (ids,) = small_transformer(dtype=torch.float64), small_inputs()
    positions = torch.stack([torch.arange(6), torch.arange(6).flip(0)])
    together = model(ids, source_positions=positions)
    for i in range(2):
        torch.testing.assert_close(
            together[i : i + 1], model(ids[i : i + 1], source_positions=positions[i]), atol=1e-12, rtol=0
        )


def test_positions_count_for_the_longest_sequence_and_not_the_padding():
    model = small_transformer(max_len=6)
    ids = torch.zeros(1, 9, dtype=torch.int64)
    is_padding = torch.arange(9)[None] < 3
    model(ids, source_positions=positions_from_first_token(is_padding))
    with pytest.raises(ValueError, match=r"the sequence has 9 tokens: max_len \(6\) is the most"):
        model(ids)
    with pytest.raises(ValueError, match=r"the sequence has 9 tokens: max_len \(6\) is the most"):
        model(ids, source_positions=torch.arange(9))
    with pytest.raises(ValueError, match=r"a position \(-1\) must be 0 or more"):
        model(ids, source_positions=torch.full((9,), -1))
    with pytest.raises(ValueError, match="has one sequence: give source_positions"):
        model(ids[:, :6], target_positions=torch.arange(6))
