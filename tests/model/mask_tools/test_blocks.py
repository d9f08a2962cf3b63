"""The blocks of an expression against PyTorch's own block masks, and against the dense mask."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from model.mask_tools.blocks import (
    EMPTY,
    FULL,
    PARTIAL,
    blocks_of_cells,
    blocks_of_expression,
    most_cells,
    stretched,
)
from model.mask_tools.language import READY, MaskExpressionError, parse
from tests.model.mask_tools.language.pieces import conditions, contexts, plain_context


def kinds_of(blocks: BlockMask) -> torch.Tensor:
    """What PyTorch's block mask says of each block."""
    kinds = torch.full(blocks.kv_indices.shape[-2:], EMPTY, dtype=torch.uint8)
    pairs = ((PARTIAL, blocks.kv_num_blocks, blocks.kv_indices),)
    pairs += ((FULL, blocks.full_kv_num_blocks, blocks.full_kv_indices),)
    for kind, counts, indices in pairs:
        for row, count in enumerate(counts[0, 0].tolist()):
            kinds[row, indices[0, 0, row, :count].long()] = kind
    return kinds


EXPRESSIONS = [ready.text for ready in READY] + [
    "q > 0 and k % q == 0",
    "(q * 7 + k * 13) % 5 == 0",
    "q * k - -k // -3 < 40 or abs(k - 20) * 2 > 39",
    "q // 8 != k // 8 or q % 8 == 3 and is_pad(k) == same_token",
    "k <= q + n_keys - n_queries and h == 0",
]


@pytest.mark.parametrize(("n_queries", "n_keys", "size"), [(48, 48, 8), (40, 56, 16), (21, 9, 4)])
def test_the_blocks_are_those_of_create_block_mask(n_queries, n_keys, size):
    context = plain_context(n_queries, n_keys, n_padding=9, n_segments=3)
    for text in EXPRESSIONS:
        allowed = parse(text).evaluate(context)
        theirs = create_block_mask(
            lambda b, h, q, k, allowed=allowed: allowed[q, k], None, None, n_queries, n_keys, "cpu", size
        )
        for blocks in (blocks_of_expression(parse(text), context, size), blocks_of_cells(allowed, size)):
            assert torch.equal(blocks.kinds, kinds_of(theirs)), text
            if n_queries % size == n_keys % size == 0:
                assert 100 * blocks.share_skipped == pytest.approx(theirs.sparsity())


@given(conditions, contexts(largest=13), st.integers(1, 5))
def test_random_expressions_have_the_blocks_of_their_cells(piece, context, size):
    expression = parse(piece.text)
    try:
        cells = expression.evaluate(context)
    except MaskExpressionError as error:
        if "divides by 0" in str(error):
            with pytest.raises(MaskExpressionError, match="divides by 0 at query"):
                blocks_of_expression(expression, context, size)
        return
    assert torch.equal(blocks_of_expression(expression, context, size).kinds, blocks_of_cells(cells, size).kinds)


def test_a_zero_divisor_is_named_by_its_own_query_and_key():
    with pytest.raises(MaskExpressionError, match="divides by 0 at query 0 and key 37: "):
        blocks_of_expression(parse("q % (k - 37) == 1"), plain_context(64, 64), 8)


def test_a_number_that_leaves_64_bits_decides_no_block():
    with pytest.raises(MaskExpressionError, match="could go beyond"):
        blocks_of_expression(parse(f"{2**62} + {2**62} < k"), plain_context(16, 16), 8)


@pytest.mark.parametrize(
    ("text", "skipped", "full"),
    [
        ("k <= q", 32640, 32640),
        ("k <= q and q - k < 4096", 32640 + 223 * 224 // 2, 31 * 225 + sum(range(31))),
        ("k <= q and segment(q) == segment(k)", None, None),
        ("(q - k) % 4 == 0", 0, 0),
    ],
)
def test_long_sequences_are_decided_without_their_cells(text, skipped, full):
    context = plain_context(32768, 32768, n_segments=64)
    blocks = blocks_of_expression(parse(text), context, 128)
    assert blocks.kinds.shape == (256, 256)
    if skipped is None:
        assert blocks.count(EMPTY) == 256 * 256 - 64 * 4 * 5 // 2
        assert blocks.count(PARTIAL) == 256
    else:
        assert (blocks.count(EMPTY), blocks.count(FULL)) == (skipped, full)


@pytest.mark.parametrize(
    "text", ["(q * 31 + k * 17) % 101 == 5", "k % (q + 1) == 0", "q * 7 % 5 == k * k % 3", "k <= q"]
)
def test_how_far_it_is_never_goes_back_and_ends_where_all_is_done(text):
    context, fractions = plain_context(512, 512), []
    blocks = blocks_of_expression(parse(text), context, 64, fractions.append)
    assert torch.equal(blocks.kinds, blocks_of_cells(parse(text).evaluate(context), 64).kinds)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert blocks.n_looked_into * 64 * 64 <= most_cells(parse(text), context, 64)


def test_an_error_of_who_listens_ends_the_work():
    def refuse(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        blocks_of_expression(parse("(q * k) % 7 == 3"), plain_context(64, 64), 8, refuse)


def test_a_stretched_text_keeps_the_shares_of_its_documents_and_padding():
    context = stretched(plain_context(6, 6, n_padding=2, n_segments=3), 600)
    assert [context.key_segments.count(segment) for segment in range(3)] == [200, 200, 200]
    assert context.query_is_padding == (False,) * 400 + (True,) * 200
