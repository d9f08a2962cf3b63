"""The ready expressions against loops over what their notes say."""

import pytest
import torch

from headlight.masks.language import READY, parse
from model import masks
from tests.headlight.masks.language.pieces import plain_context

READY_BY_NAME = {ready.name: ready for ready in READY}
SIZES = [(1, 1), (7, 7), (12, 12), (5, 9), (9, 5)]


def cells(name, context):
    return parse(READY_BY_NAME[name].text).evaluate(context)


def test_each_has_a_name_and_words_of_its_own():
    for attribute in ("name", "title", "text", "note"):
        assert len({getattr(ready, attribute) for ready in READY}) == len(READY)
    assert all(ready.name.isidentifier() for ready in READY)
    assert all("\n" not in ready.note and ready.note.endswith(".") for ready in READY)


@pytest.mark.parametrize("ready", READY, ids=lambda ready: ready.name)
@pytest.mark.parametrize("size", SIZES)
def test_each_can_be_worked_out_at_any_size(ready, size):
    assert parse(ready.text).evaluate(plain_context(*size, n_padding=1, n_segments=2)).shape == size


@pytest.mark.parametrize("size", SIZES)
def test_those_that_are_masks_of_the_model(size):
    context = plain_context(*size, n_padding=1)
    assert torch.equal(cells("causal", context), masks.causal(*size))
    assert torch.equal(cells("sliding_window", context), masks.sliding_window(*size, 4))
    assert torch.equal(cells("prefix_lm", context), masks.prefix(*size, 3))
    hidden = masks.padding(torch.tensor([context.key_is_padding]))[0, 0]
    assert torch.equal(cells("padding", context), hidden.expand(size))
    assert torch.equal(cells("causal_padding", context), masks.causal(*size) & hidden)


def loops(name, query, key, size):
    """Return the value of one cell by the meaning that the mask's note gives."""
    n_queries, n_keys = size
    own_block = range(query - query % 4, query - query % 4 + 4)
    return {
        "strictly_before": key in range(query),
        "causal_bottom_right": n_keys - 1 - key >= n_queries - 1 - query,
        "causal_window": key in range(query - 3, query + 1),
        "dilated_window": key in range(query - 6, query + 8, 2),
        "strided": key in range(query - 3, query + 1) or key in range(query % 4, query + 1, 4),
        "fixed": key <= query and (key in own_block or key in range(3, n_keys, 4)),
        "blocks": key in own_block,
        "block_causal": key <= max(own_block),
        "global_token": query == 0 or key == 0 or query - 2 <= key <= query + 2,
        "attention_sink": key in (0, *range(max(0, query - 3), query + 1)),
        "block_sparse": min(query, key) < 4 or abs(min(own_block) - (key - key % 4)) in (0, 4),
        "not_itself": key < query or key > query,
    }[name]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "name",
    [
        "strictly_before",
        "causal_bottom_right",
        "causal_window",
        "dilated_window",
        "strided",
        "fixed",
        "blocks",
        "block_causal",
        "global_token",
        "attention_sink",
        "block_sparse",
        "not_itself",
    ],
)
def test_those_that_go_by_positions(name, size):
    expected = [[loops(name, query, key, size) for key in range(size[1])] for query in range(size[0])]
    assert cells(name, plain_context(*size)).tolist() == expected


def test_those_that_go_by_tokens():
    context = plain_context(9, 9, n_segments=3)
    for query in range(9):
        for key in range(9):
            assert cells("packing", context)[query, key] == (query // 3 == key // 3)
            assert cells("causal_packing", context)[query, key] == (query // 3 == key // 3 and key <= query)
            assert cells("same_token", context)[query, key] == (query % 7 == key % 7)
