"""An expression found for cells has exactly these cells, and for well-known masks it is the well-known one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.mask_tools.language import READY, MaskExpressionError, express, parse
from model.mask_tools.language.spelling import LONGEST
from tests.model.mask_tools.language.pieces import conditions, contexts, plain_context


def check_round_trip(allowed, context):
    """Say it, read it again, and compare; returns the text."""
    text = express(allowed, context)
    assert len(text) <= LONGEST
    assert torch.equal(parse(text).evaluate(context), allowed)
    return text


def random_mask(n_queries, n_keys, share, seed):
    return torch.rand(n_queries, n_keys, generator=torch.Generator().manual_seed(seed)) < share


@given(contexts(largest=9), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 1000))
def test_random_masks_come_back(context, share, seed):
    check_round_trip(random_mask(context.n_queries, context.n_keys, share, seed), context)


@given(conditions, contexts(largest=9))
def test_masks_of_random_expressions_come_back(piece, context):
    try:
        allowed = parse(piece.text).evaluate(context)
    except MaskExpressionError:
        return
    check_round_trip(allowed, context)


@settings(max_examples=50)
@given(
    st.sampled_from(READY), st.integers(1, 24), st.integers(1, 24), st.integers(0, 3), st.integers(1, 4), st.data()
)
def test_ready_expressions_come_back_and_so_do_they_with_some_cells_changed(
    ready, n_queries, n_keys, n_padding, n_segments, data
):
    context = plain_context(n_queries, n_keys, n_padding, n_segments)
    allowed = parse(ready.text).evaluate(context)
    check_round_trip(allowed, context)
    cells = st.tuples(st.integers(0, n_queries - 1), st.integers(0, n_keys - 1))
    for query, key in data.draw(st.lists(cells, max_size=4, unique=True)):
        allowed[query, key] = ~allowed[query, key]
    check_round_trip(allowed, context)


@pytest.mark.parametrize(
    "text",
    [
        "True",
        "False",
        "k <= q",
        "k < q",
        "k >= q",
        "k > q",
        "k == q",
        "k != q",
        "k == q - 3",
        "k <= q + 2",
        "k <= q - 2",
        "abs(q - k) < 4",
        "k <= q and q - k < 4",
        "k < 3",
        "q >= 5",
        "2 <= q <= 6",
        "k <= q or k < 3",
        "q // 5 == k // 5",
        "k // 5 <= q // 5",
        "abs(q // 5 - k // 5) < 2",
        "(q - k) % 3 == 0",
        "k % 4 == 3",
        "abs(q - k) < 7 and (q - k) % 2 == 0",
        "abs(q - k) < 3 or q == 0 or k == 0",
        "k <= q and (q - k < 4 or k == 0)",
        "k <= q and (q // 5 == k // 5 or k % 5 == 4)",
        "same_token",
        "not same_token",
        "not is_pad(k)",
        "segment(q) == segment(k)",
        "k <= q and not is_pad(k)",
        "k <= q and segment(q) == segment(k)",
        "k <= q and q - k < 4 and segment(q) == segment(k) and not is_pad(k)",
        "not is_pad(k) and (k <= q or k < 3)",
        "not is_pad(k) and (abs(q - k) < 2 or k == 0)",
        "k <= q and not (q == 9 and k == 2)",
        "k <= q or (q == 3 and k == 11)",
        "k <= q and not (4 <= q <= 8 and 2 <= k <= 6)",
        "(2 <= q <= 4 and (k < 4 or k == 7)) or (q == 5 and k == 0)",
        "q == 3 and k == 1",
        "not (q == 3 and k == 1)",
    ],
)
def test_what_people_write_comes_back_word_for_word(text):
    context = plain_context(20, 20, n_padding=3, n_segments=3)
    assert express(parse(text).evaluate(context), context) == text


@pytest.mark.parametrize("offset", [-3, 3])
def test_causal_alignment_of_unequal_lengths_is_read_off(offset):
    context = plain_context(10, 10 + offset)
    allowed = parse("k <= q + n_keys - n_queries").evaluate(context)
    assert express(allowed, context) == ("k <= q + 3" if offset > 0 else "k <= q - 3")


@pytest.mark.parametrize("n_changed", [1, 3, 6])
def test_a_few_exceptions_are_spelled_out(n_changed):
    context = plain_context(24, 24)
    allowed = parse("k <= q").evaluate(context)
    for i in range(n_changed):
        allowed[4 * i, 23 - 5 * i % 24] ^= True
    text = check_round_trip(allowed, context)
    assert "k <= q" in text
    assert len(text) <= len("(k <= q)") + n_changed * len(" and not (q == 20 and k == 20)")


def test_the_expression_is_never_longer_than_can_be_read(monkeypatch):
    context = plain_context(20, 20, n_padding=3, n_segments=3)
    allowed = parse("k <= q and segment(q) == segment(k) and not is_pad(k)").evaluate(context)
    for longest in range(0, 120, 4):
        monkeypatch.setattr("model.mask_tools.language.description.LONGEST", longest)
        text = express(allowed, context)
        assert len(text) <= longest
        assert not text or torch.equal(parse(text).evaluate(context), allowed)


def test_a_mask_without_a_pattern_has_no_expression_that_could_be_read():
    context = plain_context(64, 64)
    assert express(random_mask(64, 64, 0.5, seed=0), context) == ""


def test_a_long_expression_is_found_up_to_what_can_be_read():
    context = plain_context(16, 16)
    assert len(check_round_trip(random_mask(16, 16, 0.5, seed=0), context)) > 500


@pytest.mark.parametrize("size", [(0, 3), (3, 0)])
def test_a_mask_without_cells_allows_everything(size):
    assert express(torch.ones(size, dtype=torch.bool), plain_context(*size)) == "True"


@pytest.mark.parametrize("allowed", [torch.ones(3, 3), torch.ones(2, 3, dtype=torch.bool)])
def test_what_is_no_mask_of_these_tokens_is_refused(allowed):
    with pytest.raises(ValueError, match=r"must be boolean and \(Tq, Tk\) = \(3, 3\)"):
        express(allowed, plain_context(3, 3))
