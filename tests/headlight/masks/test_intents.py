"""Intentions: each one against its definition, and masks that are another one, by name."""

from __future__ import annotations

import pytest
import torch

from headlight.masks.intent_kinds import CELLS_OF_THEIR_OWN, INTENT_KINDS
from headlight.masks.intents import Intent, as_finding, compare, recognise
from headlight.masks.language import MaskContext, parse

T = 8


def tokens(n_queries=T, n_keys=T, padding=(), segments=None):
    """Tokens with padding at these positions, and the document of each key."""
    segments = segments or (0,) * n_keys
    return MaskContext(
        query_tokens=(0,) * n_queries,
        key_tokens=(0,) * n_keys,
        query_is_padding=tuple(q in padding for q in range(n_queries)),
        key_is_padding=tuple(k in padding for k in range(n_keys)),
        query_segments=tuple((*segments, *(0,) * n_queries)[:n_queries]),
        key_segments=tuple(segments),
    )


PLAIN = tokens()
PACKED = tokens(segments=(0, 0, 0, 1, 1, 1, 2, 2))
PADDED = tokens(padding=(6, 7))

DEFINITIONS = {
    Intent("causal"): lambda q, k: k <= q,
    Intent("bidirectional"): lambda q, k: True,
    Intent("window", 3): lambda q, k: q - 3 < k <= q,
    Intent("window_both", 3): lambda q, k: -3 < q - k < 3,
    Intent("prefix", 4): lambda q, k: k < 4 or k <= q,
    Intent("block_causal", 3): lambda q, k: k < 3 * (q // 3 + 1),
    Intent("cached", 2): lambda q, k: k <= q + 2,
}


@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("intent", DEFINITIONS, ids=lambda intent: intent.kind)
def test_what_is_expected_is_the_definition_cell_by_cell(intent, documents, padding):
    context = tokens(padding=(6, 7), segments=(0, 0, 0, 1, 1, 1, 2, 2))
    chosen = Intent(intent.kind, intent.number, documents, padding)
    expected = chosen.expected(context)
    for q in range(T):
        for k in range(T):
            is_open = DEFINITIONS[intent](q, k)
            is_open &= not documents or context.query_segments[q] == context.key_segments[k]
            is_open &= not padding or not context.key_is_padding[k]
            assert expected[q, k] == is_open, (q, k)


def test_every_kind_is_defined_here():
    of_its_own = {"expression", *CELLS_OF_THEIR_OWN}
    assert {intent.kind for intent in DEFINITIONS} | of_its_own == set(INTENT_KINDS)


@pytest.mark.parametrize("cache", [None, 0, 2])
@pytest.mark.parametrize("intent", DEFINITIONS, ids=lambda intent: intent.kind)
def test_queries_stand_after_what_is_in_the_cache(intent, cache):
    chosen = Intent(intent.kind, intent.number, cache=cache)
    before = {None: 5, 0: 0, 2: 2}[cache] if intent.kind not in ("bidirectional", "cached") else 0
    expected = chosen.expected(tokens(n_queries=3))
    for query in range(3):
        for key in range(T):
            assert bool(expected[query, key]) == DEFINITIONS[intent](query + before, key)


@pytest.mark.parametrize("intent", DEFINITIONS, ids=lambda intent: intent.kind)
def test_a_mask_is_recognised(intent):
    expected = intent.expected(PLAIN)
    assert recognise(expected, PLAIN) == intent
    assert compare(intent, expected, PLAIN).agrees


FOUND = {
    "one key too many": (
        Intent("causal"),
        "k <= q + 1",
        PLAIN,
        "7 cells open that should be blocked: query 0 sees key 1.",
        "off by one",
    ),
    "one key too few": (
        Intent("causal"),
        "k < q",
        PLAIN,
        "8 cells blocked that should be open: query 0 does not see key 0.",
        "own key is hidden",
    ),
    "window too wide": (Intent("window", 3), "0 <= q - k <= 3", PLAIN, "5 cells open", "not 3: off by one"),
    "window too narrow": (Intent("window", 3), "0 <= q - k < 2", PLAIN, "6 cells blocked", "not 3: off by one"),
    "wrong prefix": (
        Intent("prefix", 3),
        "k < 5 or k <= q",
        PLAIN,
        "7 cells open that should be blocked: query 0 sees key 3",
        "off by 2",
    ),
    "a prefix in a causal model": (
        Intent("causal"),
        "k < 3 or k <= q",
        PLAIN,
        "3 cells open",
        "first 3 tokens see",
    ),
    "packed leak": (Intent("causal", documents=True), "k <= q", PACKED, "query 3 sees key 0", "not isolated"),
    "padding seen": (
        Intent("bidirectional", padding=True),
        "k >= 0",
        PADDED,
        "12 cells open",
        "Padding is not ignored",
    ),
    "two keys too few": (Intent("causal"), "k < q - 1", PLAIN, "15 cells blocked", "2 keys too few, k <= q - 2"),
    "aligned top left": (
        Intent("causal"),
        "k <= q",
        tokens(n_queries=3),
        "15 cells blocked",
        "from the other corner, top-left aligned: k <= q.",
    ),
    "a cache too short": (
        Intent("causal", cache=4),
        "k <= q + 3",
        tokens(n_queries=3),
        "3 cells blocked",
        "own key is hidden, k <= q + 3: off by one",
    ),
    "too many and too few": (
        Intent("causal"),
        "k <= q and k != 2 or k == 7",
        PLAIN,
        "7 cells open that should be blocked: query 0 sees key 7. 6 cells blocked that should be open: query 2 "
        "does not see key 2.",
        "",
    ),
    "inverted": (Intent("causal"), "k > q", PLAIN, "36 cells blocked", "inverted"),
    "transposed": (Intent("causal"), "q <= k", PLAIN, "28 cells blocked", "swapped"),
    "causal encoder": (
        Intent("bidirectional"),
        "k <= q",
        PLAIN,
        "28 cells blocked that should be open: query 0 does not see key 1.",
        "It is causal",
    ),
    "a window with its own key hidden": (
        Intent("window", 3),
        "0 < q - k < 3",
        PLAIN,
        "8 cells blocked that should be open: query 0 does not see key 0.",
        "own key is hidden, k <= q - 1: off by one",
    ),
    "a block that is not yet past": (
        Intent("causal"),
        "k <= q // 4",
        tokens(n_queries=16, n_keys=4),
        "12 cells open that should be blocked: query 0 sees key 0.",
        "every key that the block holds",
    ),
    "the other corner": (
        Intent("causal", cache=0),
        "k <= q + 5",
        tokens(n_queries=3),
        "15 cells open",
        "bottom-right",
    ),
    "fewer keys": (
        Intent("causal"),
        "k <= q - 3",
        tokens(5, 2),
        "6 cells blocked",
        "bottom-right aligned: k <= q - 3",
    ),
    "nothing open": (Intent("causal"), "q > 99", PLAIN, "36 cells blocked", "It blocks everything."),
    "an expression": (
        Intent("expression", condition="k <= q and q - k < 3"),
        "k <= q",
        PLAIN,
        "15 cells open that should be blocked: query 3 sees key 0.",
        "It is causal.",
    ),
    "no mask at all": (Intent("causal"), "k >= 0", PLAIN, "28 cells open", "It is bidirectional"),
}


@pytest.mark.parametrize(("intent", "source", "context", "sentence", "cause"), FOUND.values(), ids=FOUND)
def test_what_differs_is_counted_and_named(intent, source, context, sentence, cause):
    allowed = parse(source).evaluate(context)
    comparison = compare(intent, allowed, context)
    assert sentence in comparison.sentence
    assert cause in comparison.cause
    finding = as_finding(comparison, allowed)
    assert compare(intent, finding.mended, context).agrees
    assert int(finding.cells.sum()) == int((comparison.more ^ comparison.less).sum()) > 0


def test_rows_of_padding_do_not_count():
    intent = Intent("causal", padding=True)
    allowed = intent.expected(PADDED)
    allowed[6:] = False
    assert compare(intent, allowed, PADDED).agrees


def test_whatever_is_painted_is_as_painted():
    allowed = torch.rand(T, T, generator=torch.Generator().manual_seed(0)) < 0.5
    comparison = compare(Intent("painted"), allowed, PLAIN)
    assert comparison.agrees
    assert as_finding(comparison, allowed) is None


@pytest.mark.parametrize(("kind", "number"), [("windows", 3), ("window", 0), ("block_causal", 0), ("prefix", -1)])
def test_what_is_no_intention_is_refused(kind, number):
    with pytest.raises(ValueError, match="must be"):
        Intent(kind, number)


def test_a_mask_is_compared_with_given_cells_and_an_axis_of_one_is_for_all():
    allowed, cells = parse("k <= q").evaluate(PLAIN), parse("k < 4").evaluate(PLAIN)
    for given in (cells, cells[:1]):
        comparison = compare(Intent("array"), allowed, PLAIN, given)
        assert torch.equal(comparison.more, allowed & ~cells)
        assert torch.equal(comparison.less, cells & ~allowed)
    with pytest.raises(ValueError, match="8 queries by 8 keys, and what it should be has 2 queries by 8 keys"):
        compare(Intent("array"), allowed, PLAIN, cells[:2])


WORDS = {
    "causal": (Intent("causal"), PLAIN, "causal"),
    "after a cache": (Intent("causal"), tokens(n_queries=3), "causal, bottom-right aligned"),
    "from the first key": (Intent("causal", cache=0), tokens(n_queries=3), "causal, top-left aligned"),
    "in between": (Intent("causal", cache=4), tokens(n_queries=3), "causal, past length 4"),
    "fewer keys": (Intent("causal"), tokens(5, 3), "causal, top-left aligned"),
    "a window": (
        Intent("window", 5, padding=True),
        tokens(n_queries=3),
        "causal, bottom-right aligned, window 5 (itself and 4 before), padding ignored",
    ),
    "an expression": (Intent("expression", condition="k < 3"), tokens(n_queries=3), "open where k < 3"),
}


@pytest.mark.parametrize(("intent", "context", "words"), WORDS.values(), ids=WORDS)
def test_words_say_the_corner(intent, context, words):
    assert intent.words_over(context) == words


def test_a_condition_that_cannot_be_read_is_no_intention():
    with pytest.raises(ValueError, match="a value is missing after"):
        Intent("expression", condition="k <=")
