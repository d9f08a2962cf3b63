"""Masks written in every convention are read back, the right reading first; what is no mask is refused."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import event, given
from hypothesis import strategies as st
from torch import Tensor

from model.mask_tools.conventions import HIGHEST_FILL, read_as
from tests.model.builders import random_tensor

T = 6
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()
POSITION = torch.arange(T)
PADDING_RIGHT, PADDING_LEFT = POSITION < 4, POSITION >= 2

WRITERS = {
    "true_attends": lambda allowed: allowed,
    "true_blocked": lambda allowed: ~allowed,
    "one_attends": lambda allowed: allowed.to(torch.int64),
    "one_blocked": lambda allowed: (~allowed).to(torch.float32),
    "added": lambda allowed: torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf),
}
"""Each convention, from the mask to an array that is in it."""

USUAL = {
    "causal": CAUSAL,
    "causal, padding right": CAUSAL & PADDING_RIGHT,
    "causal, padding left": CAUSAL & PADDING_LEFT,
    "padding right": PADDING_RIGHT.expand(T, T),
    "padding left": PADDING_LEFT.expand(T, T),
    "everything": torch.ones(T, T, dtype=torch.bool),
    "itself alone": torch.eye(T, dtype=torch.bool),
    "window": (POSITION[:, None] - POSITION).abs() < 2,
    "causal window": CAUSAL.triu(-2),
    "prefix": CAUSAL | (POSITION < 3),
    "documents": (POSITION[:, None] // 3) == (POSITION // 3),
    "global token": (POSITION == 0) | (POSITION[:, None] == 0) | ((POSITION[:, None] - POSITION).abs() < 2),
    "causal, a row without keys": CAUSAL & (POSITION != 3)[:, None],
    "one token": torch.ones(1, 1, dtype=torch.bool),
    "causal, the first of more keys": torch.ones(4, 6, dtype=torch.bool).tril(),
    "causal, the last of more keys": torch.ones(4, 6, dtype=torch.bool).tril(2),
    "causal, fewer keys": torch.ones(6, 4, dtype=torch.bool).tril(),
}

masks = st.tuples(st.integers(1, 7), st.integers(1, 7)).flatmap(
    lambda size: st.lists(
        st.lists(st.booleans(), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)


@pytest.mark.parametrize("convention", WRITERS)
@pytest.mark.parametrize("allowed", USUAL.values(), ids=USUAL)
def test_the_likeliest_reading_of_a_usual_mask_is_the_right_one(convention, allowed):
    first = read_as(WRITERS[convention](allowed))[0]
    assert torch.equal(first.allowed, allowed)


@pytest.mark.parametrize("convention", WRITERS)
@given(cells=masks)
def test_every_mask_is_among_the_readings_of_every_convention(convention, cells):
    allowed = torch.tensor(cells)
    readings = {reading.name: reading for reading in read_as(WRITERS[convention](allowed))}
    assert torch.equal(readings[convention].allowed, allowed)
    for name, reading in readings.items():
        assert reading.allowed.dtype is torch.bool
        assert reading.allowed.shape == (allowed.shape if "transposed" not in name else allowed.mT.shape)
        assert reading.reason.startswith("Then ")
        assert reading.reason.endswith(".")


@pytest.mark.parametrize("convention", WRITERS)
@pytest.mark.parametrize(
    "name", ["causal", "padding right", "padding left", "causal, a row without keys", "causal window"]
)
def test_a_mask_by_keys_and_queries_is_read_transposed(convention, name):
    allowed = USUAL[name]
    first, *others = read_as(WRITERS[convention](allowed.T))
    assert first.name == f"{convention}_transposed"
    assert first.title.endswith("transposed: rows are keys")
    assert torch.equal(first.allowed, allowed)
    assert any(torch.equal(other.allowed, allowed.T) for other in others)


@pytest.mark.parametrize(
    "name", ["window", "documents", "prefix", "everything", "itself alone", "causal", "one token"]
)
def test_a_mask_is_not_read_transposed_for_nothing(name):
    assert not [reading for reading in read_as(USUAL[name]) if "transposed" in reading.name]


@pytest.mark.parametrize(
    ("array", "names"),
    [
        (CAUSAL, ["true_attends", "true_blocked"]),
        (~CAUSAL, ["true_blocked", "true_attends"]),
        (CAUSAL.to(torch.uint8), ["one_attends", "one_blocked"]),
        (CAUSAL.to(torch.bfloat16), ["one_attends", "one_blocked"]),
        (torch.zeros(T, T), ["added", "one_blocked", "one_attends"]),
        (torch.zeros(T, T).masked_fill(~CAUSAL, -1e9), ["added"]),
        (torch.full((T, T), -math.inf), ["added"]),
        (CAUSAL.T, ["true_attends_transposed", "true_blocked", "true_attends"]),
    ],
)
def test_entries_leave_these_conventions(array, names):
    assert [reading.name for reading in read_as(array)] == names


@pytest.mark.parametrize(
    ("dtype", "fill", "spelled"),
    [
        (torch.float32, -math.inf, "-inf = blocked"),
        (torch.float32, -1e9, "-1e+09 = blocked"),
        (torch.float32, torch.finfo(torch.float32).min, "-3.40282e+38 = blocked"),
        (torch.float16, torch.finfo(torch.float16).min, "-65504 = blocked"),
        (torch.int32, -10000, "-10000 = blocked"),
        (torch.float64, HIGHEST_FILL, "-100 = blocked"),
    ],
)
def test_the_fill_of_an_added_mask_is_told(dtype, fill, spelled):
    array = torch.zeros(T, T, dtype=dtype).masked_fill(~CAUSAL, fill)
    (reading,) = read_as(array)
    assert reading.fill == fill
    assert spelled in reading.title
    assert torch.equal(reading.allowed, CAUSAL)


def test_the_weakest_of_several_fills_is_told():
    """Two masks that were added: some cells are blocked twice."""
    once, twice = ~CAUSAL, ~CAUSAL & (POSITION > 4)
    (reading,) = read_as(torch.zeros(T, T).masked_fill(once, -1e4).masked_fill(twice, -2e4))
    assert reading.fill == -1e4
    assert torch.equal(reading.allowed, CAUSAL)


def test_only_an_added_mask_has_a_fill():
    fills = {reading.name: reading.fill for array in (CAUSAL, CAUSAL.int()) for reading in read_as(array)}
    assert set(fills.values()) == {None}


@pytest.mark.parametrize("shape", [(T,), (1, T), (1, 1, T), (1, 1, 1, T)])
def test_one_row_serves_all_queries(shape):
    for seen in (PADDING_RIGHT, PADDING_LEFT):
        for convention, write in WRITERS.items():
            first, *others = read_as(write(seen).reshape(shape))
            assert first.name == convention
            assert torch.equal(first.allowed, seen[None])
            assert not [other for other in others if "transposed" in other.name]


@pytest.mark.parametrize("shape", [(1, T, T), (1, 1, T, T), (1, 1, 1, T, T)])
def test_axes_of_size_one_are_dropped(shape):
    assert torch.equal(read_as(CAUSAL.reshape(shape))[0].allowed, CAUSAL)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (CAUSAL, "Then every query has a key, all tokens see themselves, and no query sees a later key."),
        (
            CAUSAL.tril(-1),
            "Then no key is left for query 0, no tokens see themselves, and no query sees a later key.",
        ),
        (PADDING_RIGHT.expand(T, T), "Then every query has a key, and 4 of 6 tokens see themselves."),
        (torch.zeros(T, T, dtype=torch.bool), "Then no query has a key, and no tokens see themselves."),
        (
            PADDING_RIGHT[:, None].expand(T, T),
            "Then no key is left for queries 4 and 5, and 4 of 6 tokens see themselves.",
        ),
        (
            CAUSAL & (POSITION > 3),
            "Then no key is left for queries 0, 1, 2 and 1 more, 2 of 6 tokens see themselves, and no query sees a "
            "later key.",
        ),
        (CAUSAL[:4], "Then every query has a key, and no query sees a later key."),
        (torch.ones(4, 6, dtype=torch.bool), "Then every query has a key."),
        (PADDING_RIGHT, "Then every query may attend to 4 of 6 keys, and the others are at the end, like padding."),
        (
            PADDING_LEFT,
            "Then every query may attend to 4 of 6 keys, and the others are at the start, like padding.",
        ),
        (POSITION % 2 == 0, "Then every query may attend to 3 of 6 keys, and the others are not at one end."),
        (POSITION >= 0, "Then every query may attend to all keys."),
    ],
)
def test_the_reason_says_what_the_mask_is_like(array, reason):
    reasons = {reading.name: reading.reason for reading in read_as(array)}
    assert reasons["true_attends"] == reason


def attention_weights(*, causal: bool = False) -> Tensor:
    scores = random_tensor(T, T)
    return (scores.masked_fill(~CAUSAL, -math.inf) if causal else scores).softmax(-1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (attention_weights(), "look like attention weights"),
        (attention_weights(causal=True), "look like attention weights"),
        (attention_weights().mul(100).round().div(100), "look like attention weights"),
        (attention_weights().index_fill(0, torch.tensor(2), 0.0), "look like attention weights"),
        (attention_weights()[0], "look like attention weights"),
        (CAUSAL.float().index_fill(1, torch.tensor(2), math.nan), "NaN at query 0, key 2"),
        (torch.zeros(T, T).masked_fill(~CAUSAL, -5), "0 and numbers such as -5, which block nothing"),
        (torch.zeros(T, T).masked_fill(~CAUSAL, -1e9).fill_diagonal_(-0.5), "numbers such as -0.5"),
        (torch.ones(T, T).masked_fill(~CAUSAL, -math.inf), "-inf stands beside numbers up to 1, and"),
        (torch.full((T, T), 3.25).masked_fill(~CAUSAL, -math.inf), "scores with a mask already in them"),
        (torch.zeros(T, T).masked_fill(~CAUSAL, math.inf), "the entries are 0 and inf"),
        (CAUSAL.int() * 255, "the entries are 0 and 255"),
        (-CAUSAL.int().fill_(1), "every entry is -1"),
        (torch.arange(9).reshape(3, 3), "9 different numbers from 0 to 8"),
        (torch.ones(2, 3, 3), r"3 axes, and axis 0 has 2 entries \(heads or sequences\): give one of the 2 masks"),
        (torch.ones(1, 4, 3, 3), "4 axes, and axis 1 has 4 entries"),
        (torch.ones(0, 5), r"empty: its shape is \(0, 5\)"),
        (torch.ones(0), r"empty: its shape is \(0,\)"),
        (torch.tensor(1), "a single number"),
        (torch.ones(3, 3, dtype=torch.complex64), "complex"),
    ],
)
def test_what_is_no_mask_is_refused_with_the_reason(array, message):
    with pytest.raises(ValueError, match=message):
        read_as(array)


@given(st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1, max_size=4))
def test_any_numbers_are_read_or_refused(rows):
    try:
        assert read_as(torch.tensor(rows))
    except ValueError as error:
        event(str(error)[:20])
