"""Masks against loops over their definitions, and how they combine."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import MASKS, CombinedMask, MaskInputs, build_masks
from model.masks import causal, custom, padding, prefix, sliding_window, strided

sizes = st.integers(1, 9)
seeds = st.integers(0, 1000)
names = st.lists(st.sampled_from(list(MASKS)), unique=True)


def by_loops(n_queries, n_keys, may_attend):
    return torch.tensor([[may_attend(query, key) for key in range(n_keys)] for query in range(n_queries)])


def random_bool(*shape, seed):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6


@st.composite
def mask_inputs(draw):
    n_queries, n_keys, n_batch, seed = draw(sizes), draw(sizes), draw(st.integers(1, 3)), draw(seeds)
    shapes = [(n_queries, n_keys), (2, n_queries, n_keys), (n_batch, 2, n_queries, n_keys)]
    return MaskInputs(
        n_queries,
        n_keys,
        key_is_padding=random_bool(n_batch, n_keys, seed=seed),
        window=draw(st.integers(1, 5)),
        prefix=draw(st.integers(0, 5)),
        stride=draw(st.integers(1, 5)),
        custom=draw(st.sampled_from([None, *(random_bool(*shape, seed=seed + 1) for shape in shapes)])),
    )


def every_cell(given):
    return [
        (batch, head, query, key)
        for batch in range(len(given.key_is_padding))
        for head in range(2)
        for query in range(given.n_queries)
        for key in range(given.n_keys)
    ]


def expanded(mask, given):
    return mask.expand(len(given.key_is_padding), 2, given.n_queries, given.n_keys)


@given(sizes, sizes)
def test_causal(n_queries, n_keys):
    assert torch.equal(causal(n_queries, n_keys), by_loops(n_queries, n_keys, lambda query, key: key <= query))


@given(sizes, sizes, st.integers(1, 12))
def test_sliding_window(n_queries, n_keys, width):
    expected = by_loops(n_queries, n_keys, lambda query, key: query - width < key < query + width)
    assert torch.equal(sliding_window(n_queries, n_keys, width), expected)


@given(sizes, sizes, st.integers(0, 12))
def test_prefix(n_queries, n_keys, length):
    expected = by_loops(n_queries, n_keys, lambda query, key: key in range(length) or key <= query)
    assert torch.equal(prefix(n_queries, n_keys, length), expected)


@given(sizes, sizes, st.integers(1, 12))
def test_strided(n_queries, n_keys, stride):
    expected = by_loops(n_queries, n_keys, lambda query, key: abs(query - key) in range(0, 20, stride))
    assert torch.equal(strided(n_queries, n_keys, stride), expected)


def test_padding():
    is_padding = torch.tensor([[False, False, True], [False, True, True]])
    assert padding(is_padding).tolist() == [[[[True, True, False]]], [[[True, False, False]]]]


def test_a_window_with_causal_is_the_last_tokens():
    window = MaskInputs(5, 5, torch.zeros(1, 5, dtype=torch.bool), window=2)
    allowed = build_masks(("causal", "sliding_window"), window).allowed
    assert torch.equal(allowed[0, 0], by_loops(5, 5, lambda query, key: key in (query - 1, query)))


def test_a_prefix_of_nothing_is_causal():
    assert torch.equal(prefix(6, 6, 0), causal(6, 6))


@given(names, mask_inputs())
def test_masks_combine_with_and(chosen, given):
    allowed = build_masks(chosen, given).allowed
    if not chosen:
        assert allowed is None
        return
    assert allowed.dim() == 4
    parts = [expanded(MASKS[name](given), given) for name in chosen]
    assert torch.equal(expanded(allowed, given), torch.stack(parts).all(0))


@given(names, mask_inputs())
def test_the_order_changes_nothing(chosen, given):
    forward, backward = build_masks(chosen, given).allowed, build_masks(chosen[::-1], given).allowed
    assert (forward is None and backward is None) or torch.equal(forward, backward)


@given(names, mask_inputs())
def test_a_cell_knows_exactly_what_blocks_it(chosen, given):
    combined = build_masks(chosen, given)
    assert combined.names == tuple(chosen)
    parts = {name: expanded(MASKS[name](given), given) for name in chosen}
    for cell in every_cell(given):
        batch, head, query, key = cell
        expected = tuple(name for name, part in parts.items() if not part[cell])
        assert combined.blocked_by(query, key, batch, head) == expected
        assert combined.allowed is None or bool(expanded(combined.allowed, given)[cell]) == (not expected)


@given(names, mask_inputs())
def test_the_bits_say_the_same(chosen, given):
    combined = build_masks(chosen, given)
    for batch in range(len(given.key_is_padding)):
        of_heads = combined.blocked_bits(given.n_queries, given.n_keys, batch)
        assert of_heads.dtype == torch.uint8
        for head in range(2):
            bits = of_heads[head if len(of_heads) > 1 else 0]
            assert bits.shape == (given.n_queries, given.n_keys)
            for query in range(given.n_queries):
                for key in range(given.n_keys):
                    named = tuple(name for i, name in enumerate(chosen) if bits[query, key] >> i & 1)
                    assert named == combined.blocked_by(query, key, batch, head)


def test_every_mask_has_a_bit():
    assert len(MASKS) <= 8


def test_nothing_is_blocked_without_a_mask():
    combined = CombinedMask({})
    assert combined.allowed is None
    assert combined.blocked_by(0, 0) == ()
    assert combined.blocked_bits(2, 3).tolist() == [[[0, 0, 0], [0, 0, 0]]]


def test_a_batch_item_that_is_not_there_is_an_error():
    combined = CombinedMask({"padding": padding(torch.zeros(2, 3, dtype=torch.bool))})
    with pytest.raises(IndexError):
        combined.blocked_bits(3, 3, batch=2)
    with pytest.raises(IndexError):
        combined.blocked_by(0, 0, batch=2)


def given_masks(**choices):
    return MaskInputs(
        **({"n_queries": 4, "n_keys": 4, "key_is_padding": torch.zeros(1, 4, dtype=torch.bool)} | choices)
    )


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("sliding_window", {"window": 0}, r"width \(0\) must be at least 1"),
        ("prefix", {"prefix": -1}, r"length \(-1\) must be at least 0"),
        ("strided", {"stride": 0}, r"stride \(0\) must be at least 1"),
        ("custom", {"custom": torch.ones(4, 4)}, "custom must be boolean, not torch.float32"),
        (
            "custom",
            {"custom": torch.ones(4, 3, dtype=torch.bool)},
            r"custom has cells \(4, 3\): it must have \(Tq, Tk\) = \(4, 4\)",
        ),
        ("padding", {"key_is_padding": torch.ones(1, 4, dtype=torch.int64)}, "key_is_padding must be boolean"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name, choices, message):
    with pytest.raises(ValueError, match=message):
        build_masks((name,), given_masks(**choices))


def test_an_unknown_name_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"mask \('banded'\) must be one of: causal, padding, sliding_window"):
        build_masks(("causal", "banded"), given_masks())


def test_numbers_are_no_custom_mask():
    for numbers in (torch.ones(2, 2), torch.ones(2, 2, dtype=torch.uint8)):
        with pytest.raises(ValueError, match="boolean"):
            custom(numbers)


def test_padding_before_the_first_token_is_no_part_of_a_prefix():
    pads = torch.tensor([[True, True, False, False, False], [False, False, False, False, True]])
    masks = build_masks(["prefix"], MaskInputs(5, 5, pads, prefix=2)).allowed
    assert torch.equal(masks[0, 0], prefix(5, 5, 4)), "the padding and two tokens"
    assert torch.equal(masks[1, 0], prefix(5, 5, 2))
