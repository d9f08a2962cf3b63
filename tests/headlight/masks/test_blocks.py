"""The blocks of an expression against PyTorch's own block masks, and against the dense mask."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from headlight.masks.blocks import (
    EMPTY,
    FULL,
    PARTIAL,
    blocks_of_cells,
    blocks_of_expression,
    stretched,
)
from headlight.masks.language import READY, MaskExpressionError, parse
from tests.headlight.masks.language.pieces import conditions, contexts, plain_context


def kinds_of(blocks: BlockMask) -> torch.Tensor:
    """Return the kind of each block in PyTorch's block mask: empty, partial or full."""
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


def test_how_far_it_is_rises_to_the_end():
    fractions: list[float] = []
    blocks_of_expression(parse("k <= q"), plain_context(500, 500), 64, fractions.append)
    assert len(fractions) == 8
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


def test_an_error_of_who_listens_ends_the_work():
    def refuse(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        blocks_of_expression(parse("(q * k) % 7 == 3"), plain_context(64, 64), 8, refuse)


def test_a_stretched_text_keeps_the_shares_of_its_documents_and_padding():
    context = stretched(plain_context(6, 6, n_padding=2, n_segments=3), 600)
    assert [context.key_segments.count(segment) for segment in range(3)] == [200, 200, 200]
    assert context.query_is_padding == (False,) * 400 + (True,) * 200
