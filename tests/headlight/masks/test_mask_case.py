"""The case that a mask is checked in, and the words for positions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headlight.masks.mask_case import MaskCase, counted, named
from model.texts import listed


def flags(*marked, size):
    return torch.tensor([position in marked for position in range(size)])


def case(**changed):
    given = {
        "allowed": torch.ones(2, 3, dtype=torch.bool),
        "query_is_padding": flags(size=2),
        "key_is_padding": flags(size=3),
        "causal": True,
    }
    return MaskCase(**(given | changed))


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ((3,), "query 3"),
        ((0, 2), "queries 0 and 2"),
        ((0, 2, 5), "queries 0, 2 and 5"),
        ((1, 2, 3, 4), "queries 1, 2, 3 and 1 more"),
        ((0, 1, 2, 3, 4, 5, 6), "queries 0, 1, 2 and 4 more"),
    ],
)
def test_at_most_three_positions_are_named(marked, text):
    assert named("query", flags(*marked, size=8)) == text


def test_keys_are_named_too():
    assert named("key", flags(4, size=8)) == "key 4"
    assert named("key", flags(4, 5, size=8)) == "keys 4 and 5"


def test_counts_agree_in_number():
    assert [counted("query", 1), counted("key", 1), counted("key", 5)] == ["1 query", "1 key", "5 keys"]


def test_lists_read_as_one_speaks():
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert [listed("abc", 3), listed("abcd", 3)] == ["a, b and c", "a, b, c and 1 more"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"allowed": torch.ones(3, dtype=torch.bool)}, r"allowed has shape \(3,\)"),
        ({"allowed": torch.ones(0, 3, dtype=torch.bool)}, r"allowed has shape \(0, 3\)"),
        ({"allowed": torch.ones(2, 3)}, "allowed is .* of torch.float32: it must be .* of torch.bool"),
        ({"query_is_padding": flags(size=3)}, r"query_is_padding is \(3,\) of torch.bool: it must be \(2,\)"),
        ({"key_is_padding": flags(size=2)}, r"key_is_padding is \(2,\) of torch.bool: it must be \(3,\)"),
        ({"key_is_padding": torch.zeros(3)}, "key_is_padding is .*: it must be .* of torch.bool"),
        ({"fill": math.nan}, r"fill \(nan\) must be"),
        ({"fill": math.inf}, r"fill \(inf\) must be"),
        ({"dtype": torch.int64}, r"dtype \(torch.int64\) must be one of: torch.float64"),
        ({"largest_score": -1.0}, r"largest_score \(-1.0\) must be at least 0"),
        ({"largest_score": math.inf}, r"largest_score \(inf\) must be at least 0 and finite"),
    ],
)
def test_what_does_not_fit_is_refused(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        case(**changed)


def test_minus_infinity_is_a_good_fill():
    assert case(fill=-math.inf).fill == -math.inf


@given(st.integers(1, 6), st.integers(1, 6), st.integers(-7, 7))
def test_edges_and_diagonals_are_what_loops_give(n_queries, n_keys, last):
    shape = torch.ones(n_queries, n_keys, dtype=torch.bool)
    given_case = case(allowed=shape, query_is_padding=flags(size=n_queries), key_is_padding=flags(size=n_keys))
    for query in range(n_queries):
        for key in range(n_keys):
            assert bool(given_case.reaching(last)[query, key]) == (key <= query + last)
            assert bool(given_case.diagonal(last)[query, key]) == (key == query + last)
            assert bool(given_case.future[query, key]) == (key > query and key > query + n_keys - n_queries)


def test_without_causal_nothing_is_future():
    assert not case(causal=False).future.any()


def test_only_as_many_queries_as_keys_are_one_token_each():
    assert not case().own.any()
    three = case(allowed=torch.ones(3, 3, dtype=torch.bool), query_is_padding=flags(size=3))
    assert torch.equal(three.own, torch.eye(3, dtype=torch.bool))


def test_what_must_be_blocked_and_what_may_be_opened():
    padded = case(query_is_padding=flags(0, size=2), key_is_padding=flags(1, size=3))
    assert padded.tokens.tolist() == [[False, False, False], [True, False, True]]
    assert padded.must_block.tolist() == [[False, False, False], [False, True, False]]
    assert padded.may_open.tolist() == [[True, True, False], [True, False, True]]
