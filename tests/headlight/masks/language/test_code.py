"""The code of an expression, run over tensors and single cells, against its cells."""

import pytest
import torch
from hypothesis import assume, given, settings
from torch.nn.attention.flex_attention import create_mask

from headlight.masks.language import READY, MaskExpressionError, parse
from tests.headlight.masks.language.pieces import conditions, contexts, plain_context


def facts_of(context, array):
    """Return the values that the code takes as given, its vectors made by ``array``."""
    return {
        "n_queries": context.n_queries,
        "n_keys": context.n_keys,
        "query_token": array(context.query_tokens),
        "key_token": array(context.key_tokens),
        "query_is_padding": array(context.query_is_padding),
        "key_is_padding": array(context.key_is_padding),
        "query_segment": array(context.query_segments),
        "key_segment": array(context.key_segments),
    }


def function_of(code, **names):
    """The code as a function of q and k."""
    return eval(f"lambda q, k: {code}", names)


def cells_of(piece, context):
    try:
        return parse(piece.text).evaluate(context)
    except MaskExpressionError:
        assume(False)


@given(conditions, contexts())
def test_torch_code_over_all_cells_at_once(piece, context):
    allowed = cells_of(piece, context)
    run = function_of(parse(piece.text).torch_code(), torch=torch, **facts_of(context, torch.tensor))
    cells = run(torch.arange(context.n_queries)[:, None], torch.arange(context.n_keys)[None, :])
    assert cells.dtype is torch.bool
    assert torch.equal(cells.expand(allowed.shape), allowed)


@settings(max_examples=40)  # the same expressions over all cells at once are above: new is one cell alone
@given(conditions, contexts(largest=3))
def test_torch_code_cell_by_cell(piece, context):
    allowed = cells_of(piece, context)
    run = function_of(parse(piece.text).torch_code(), torch=torch, **facts_of(context, torch.tensor))
    for query in range(context.n_queries):
        for key in range(context.n_keys):
            cell = run(torch.tensor(query), torch.tensor(key))
            assert cell.shape == ()
            assert bool(cell) == bool(allowed[query, key])


@pytest.mark.parametrize(
    "text",
    [ready.text for ready in READY]
    + [
        "q > 0 and k % q == 0",
        "not n_keys > 3 or k < q",
        "(n_keys > 3) == is_pad(k)",
        "is_pad(q) != same_token",
        "k // (n_keys // 4) == q // (n_queries // 4)",
    ],
)
def test_torch_code_is_a_mask_mod_of_flex_attention(text):
    context = plain_context(8, 8, n_padding=2, n_segments=3)
    run = function_of(parse(text).torch_code(), torch=torch, **facts_of(context, torch.tensor))
    mask = create_mask(lambda batch, head, q, k: run(q, k), None, None, 8, 8, device="cpu")
    assert torch.equal(mask[0, 0], parse(text).evaluate(context))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("k <= q", "k <= q"),
        ("0 <= q - k < 4", "(0 <= q - k) & (q - k < 4)"),
        ("k <= q and not is_pad(k)", "(k <= q) & ~key_is_padding[k]"),
        ("not (k <= q or k < 3)", "~((k <= q) | (k < 3))"),
        ("k <= q and k < 3 or same_token", "((k <= q) & (k < 3)) | (query_token[q] == key_token[k])"),
        ("segment(q) == segment(k)", "query_segment[q] == key_segment[k]"),
        ("(q - k) % 2 == 0", "(q - k) % 2 == 0"),
        ("q - (k - 2) * 3 > -(q // 2)", "q - (k - 2) * 3 > -(q // 2)"),
        ("q - (k - (3 - 2)) > (q - k) - 2", "q - (k - (3 - 2)) > q - k - 2"),
        ("q % (k * 2 // 3 + 1) == -(-k)", "q % torch.where(k * 2 // 3 + 1 == 0, 1, k * 2 // 3 + 1) == --k"),
        ("abs(7 - 3) < q", "abs(7 - 3) < q"),
        ("True", "(k >= 0) & True"),
        ("not n_keys > 3", "(k >= 0) & (not n_keys > 3)"),
        ("q > 0 and k % q == 0", "(q > 0) & (k % torch.where(q == 0, 1, q) == 0)"),
        ("k % (n_keys - 3) == 0", "k % (n_keys - 3 or 1) == 0"),
    ],
)
def test_torch_code_as_it_is_read(text, code):
    assert parse(text).torch_code() == code
