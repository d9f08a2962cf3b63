"""Names of masks: every name against the cells that it was made of."""

from __future__ import annotations

import pytest
import torch

from headlight.masks.intents import plain_context
from headlight.masks.language import parse
from headlight.masks.naming import name_of
from tests.headlight.masks.test_intents import tokens

SQUARE, AFTER, FEWER = (8, 8), (3, 8), (5, 2)
NAMES = {
    "causal": (SQUARE, "k <= q", "causal"),
    "one too many": (SQUARE, "k <= q + 1", "causal, plus 1 key: k <= q + 1"),
    "its own hidden": (SQUARE, "k < q", "causal, minus 1 key: k <= q - 1"),
    "inverted is said as it is": (SQUARE, "k > q", "open where k > q"),
    "transposed is said as it is": (SQUARE, "q <= k", "open where k >= q"),
    "bottom right": (AFTER, "k <= q + 5", "causal, bottom-right aligned"),
    "top left": (AFTER, "k <= q", "causal, top-left aligned"),
    "in between": (AFTER, "k <= q + 3", "causal, past length 3"),
    "off by one": (AFTER, "k <= q + 6", "causal, bottom-right aligned, plus 1 key: k <= q + 6"),
    "window": (AFTER, "0 <= q + 5 - k < 5", "causal, bottom-right aligned, window 5 (itself and 4 before)"),
    "fewer keys, top left": (FEWER, "k <= q", "causal, top-left aligned"),
    "fewer keys, bottom right": (FEWER, "k <= q - 3", "causal, bottom-right aligned"),
    "prefix": (SQUARE, "k <= q or k < 3", "a prefix of 3, then causal"),
    "blocks of keys": ((16, 4), "4 * k + 3 <= q", "causal, each key a block of 4"),
    "one new query": ((1, 8), "k < 6", "open where k < 6"),
    "everything": (SQUARE, "True", "open everywhere: every query sees every key"),
    "nothing": (SQUARE, "False", "blocked everywhere: no query sees any key"),
}


@pytest.mark.parametrize(("size", "source", "name"), NAMES.values(), ids=NAMES)
def test_a_mask_is_called_what_it_is(size, source, name):
    context = plain_context(*size)
    assert name_of(parse(source).evaluate(context), context) == name


def test_padding_that_is_known_is_in_the_name():
    padded = tokens(padding=(0, 1))
    allowed = parse("k <= q and not is_pad(k)").evaluate(padded)
    assert name_of(allowed, padded) == "causal, padding ignored"


def test_rows_that_nobody_reads_are_in_the_name():
    assert name_of(parse("q < 6").evaluate(tokens()), tokens(padding=(6, 7))) == "open where q < 6"


def test_what_has_no_name_is_counted():
    allowed = torch.rand(12, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    assert name_of(allowed, plain_context(12, 12)) == f"irregular: {int(allowed.sum())} of 144 cells are open"
