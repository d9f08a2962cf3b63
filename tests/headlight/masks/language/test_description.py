"""An expression found for cells has exactly these cells, and the named kinds and their pairs are found."""

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.masks.language import READY, MaskExpressionError, express, parse
from tests.headlight.masks.language.pieces import conditions, contexts, plain_context


def check_exact(allowed, context):
    """Say it, read it again, and compare; returns the text."""
    text = express(allowed, context)
    assert not text or torch.equal(parse(text).evaluate(context), allowed)
    return text


def random_mask(n_queries, n_keys, share, seed):
    return torch.rand(n_queries, n_keys, generator=torch.Generator().manual_seed(seed)) < share


@given(contexts(largest=9), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 1000))
def test_what_is_said_of_random_masks_is_exact(context, share, seed):
    check_exact(random_mask(context.n_queries, context.n_keys, share, seed), context)


@given(conditions, contexts(largest=9))
def test_what_is_said_of_random_expressions_is_exact(piece, context):
    try:
        allowed = parse(piece.text).evaluate(context)
    except MaskExpressionError:
        return
    check_exact(allowed, context)


@settings(max_examples=50)
@given(st.sampled_from(READY), st.integers(1, 24), st.integers(0, 3), st.integers(1, 4))
def test_ready_expressions_are_found(ready, size, n_padding, n_segments):
    context = plain_context(size, size, n_padding, n_segments)
    assert check_exact(parse(ready.text).evaluate(context), context)


KINDS = (
    "k <= q",
    "abs(q - k) < 4",
    "k < 3",
    "not is_pad(k)",
    "segment(q) == segment(k)",
    "same_token",
    "k % 4 == 3",
)


@pytest.mark.parametrize("word", ["and", "or"])
@pytest.mark.parametrize(("one", "other"), list(combinations(KINDS, 2)))
def test_pairs_of_named_kinds_are_found(one, word, other):
    context = plain_context(20, 20, n_padding=3, n_segments=3)
    assert check_exact(parse(f"{one} {word} {other}").evaluate(context), context)


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
        "k <= q + 2",
        "k <= q - 2",
        "abs(q - k) < 4",
        "k <= q and q - k < 4",
        "k < 3",
        "q >= 5",
        "k <= q or k < 3",
        "q // 5 == k // 5",
        "k // 5 <= q // 5",
        "abs(q // 5 - k // 5) < 2",
        "(q - k) % 3 == 0",
        "k % 4 == 3",
        "abs(q - k) < 7 and (q - k) % 2 == 0",
        "k <= q and (q - k < 4 or k == 0)",
        "k <= q and (q // 5 == k // 5 or k % 5 == 4)",
        "same_token",
        "not same_token",
        "not is_pad(k)",
        "segment(q) == segment(k)",
        "k <= q and not is_pad(k)",
        "k <= q and k != 5",
        "k <= q and segment(q) == segment(k)",
        "k <= q and q - k < 4 and not is_pad(k) and segment(q) == segment(k)",
        "not is_pad(k) and (k <= q or k < 3)",
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


def test_a_named_kind_with_a_cell_changed_has_no_expression():
    context = plain_context(24, 24)
    allowed = parse("k <= q").evaluate(context)
    allowed[9, 4] = False
    assert express(allowed, context) == ""


@pytest.mark.parametrize("size", [(0, 3), (3, 0)])
def test_a_mask_without_cells_allows_everything(size):
    assert express(torch.ones(size, dtype=torch.bool), plain_context(*size)) == "True"


@pytest.mark.parametrize("allowed", [torch.ones(3, 3), torch.ones(2, 3, dtype=torch.bool)])
def test_what_is_no_mask_of_these_tokens_is_refused(allowed):
    with pytest.raises(ValueError, match=r"must be boolean and \(Tq, Tk\) = \(3, 3\)"):
        express(allowed, plain_context(3, 3))
