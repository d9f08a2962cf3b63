"""Every rule on a mask that it must find and on masks that it must not; loops and PyTorch as references."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right

from headlight.masks.lint import RULES, SEVERITIES, MaskCase, lint
from model.masks import prefix, sliding_window, strided

FAULTS = ("no_key_left", "visible_padding", "visible_future")
FILL_RULES = ("fill_overflows", "fill_leaks")


def cells(n_queries, n_keys, holds):
    return torch.tensor([[bool(holds(query, key)) for key in range(n_keys)] for query in range(n_queries)])


def flags(marked, size):
    return torch.tensor([position in marked for position in range(size)])


def case(allowed, *, padding=(), padding_queries=None, causal=False, **number):
    """A case whose padding positions are those of the keys, and of the queries too if they are as many."""
    n_queries, n_keys = allowed.shape
    if padding_queries is None:
        padding_queries = padding if n_queries == n_keys else ()
    return MaskCase(allowed, flags(padding_queries, n_queries), flags(padding, n_keys), causal, **number)


def square(holds, size=6, **known):
    return case(cells(size, size, holds), **known)


def rules_of(given_case):
    return [finding.rule for finding in lint(given_case)]


def severities_of(given_case):
    return {finding.severity for finding in lint(given_case)}


def is_causal(query, key):
    return key <= query


# What each rule must find: the case, the cells, all that lint says.

LEFT, RIGHT = (0, 1), (4, 5)
FOUND = {
    "own_key_hidden": (
        square(lambda q, k: k < q, causal=True),
        lambda q, k: k == q,
        {"own_key_hidden": "error"},
    ),
    "inverted": (
        square(lambda q, k: k > q, causal=True),
        lambda q, k: k > q or q == 5,
        {"inverted": "error"},
    ),
    "transposed": (
        square(lambda q, k: k >= q, causal=True),
        lambda q, k: k != q,
        {"transposed": "error"},
    ),
    "padding_on_queries": (
        square(lambda q, k: q not in RIGHT, padding=RIGHT),
        lambda q, k: q in RIGHT or k in RIGHT,
        {"padding_on_queries": "error"},
    ),
    "one_key_too_many": (
        square(lambda q, k: k <= q + 1, causal=True),
        lambda q, k: k == q + 1,
        {"one_key_too_many": "error"},
    ),
    "aligned_top_left": (
        case(cells(2, 5, is_causal), causal=True),
        lambda q, k: q < k <= q + 3,
        {"aligned_top_left": "warning"},
    ),
    "aligned_bottom_right": (
        case(cells(5, 2, lambda q, k: k <= q - 3), causal=True),
        lambda q, k: q - 3 < k <= q,
        {"aligned_bottom_right": "error"},
    ),
    "blocks_everything": (
        square(lambda q, k: False, causal=True),
        lambda q, k: True,
        {"blocks_everything": "error"},
    ),
    "no_key_left": (
        square(lambda q, k: k <= q != 3, causal=True),
        lambda q, k: q == 3,
        {"no_key_left": "error"},
    ),
    "visible_padding": (
        square(is_causal, padding=LEFT, causal=True),
        lambda q, k: q > 1 and k < 2,
        {"visible_padding": "error"},
    ),
    "visible_future": (
        square(lambda q, k: k <= q or (q, k) == (1, 4), causal=True),
        lambda q, k: (q, k) == (1, 4),
        {"visible_future": "error"},
    ),
    "padding_query_without_key": (
        square(lambda q, k: 2 <= k <= q, padding=LEFT, causal=True),
        lambda q, k: q < 2,
        {"padding_query_without_key": "note"},
    ),
    "dead_key": (
        square(lambda q, k: k <= q and (k != 2 or q == 7), causal=True),
        lambda q, k: k == 2 and q >= 2,
        {"dead_key": "note"},
    ),
    "blocks_nothing": (
        square(lambda q, k: True, padding=RIGHT),
        lambda q, k: k in RIGHT and q not in RIGHT,
        {"visible_padding": "error", "blocks_nothing": "note"},
    ),
    "fill_overflows": (
        square(is_causal, causal=True, fill=-1e9, dtype=torch.float16),
        lambda q, k: k > q,
        {"fill_overflows": "warning"},
    ),
    "fill_leaks": (
        square(is_causal, causal=True, fill=-10.0, largest_score=5.0),
        lambda q, k: k > q,
        {"fill_leaks": "error"},
    ),
}


# What looks like it and is something else.

NEAR_MISSES = {
    "own_key_hidden": {
        "the first query keeps its own": square(lambda q, k: k < q or q == k == 0, causal=True),
        "nobody sees their own, but everybody sees others": square(lambda q, k: k != q),
        "one own key is seen": square(lambda q, k: k < q or q == k == 3, causal=True),
        "not one token each": case(cells(5, 6, lambda q, k: k < q), causal=True),
        "everything is blocked": square(lambda q, k: False),
        "hardly anything is left": square(lambda q, k: (q, k) == (5, 0)),
    },
    "inverted": {
        "an encoder's window with a hole around each token": square(lambda q, k: abs(q - k) > 1),
        "each sees itself and what comes later": square(lambda q, k: k >= q, causal=True),
        "one query has no key": square(lambda q, k: k <= q != 3, causal=True),
        "everything but the own key, padding seen": square(lambda q, k: k != q, padding=(5,)),
        "one token without a key": square(lambda q, k: False, size=1),
        "padding and a real key seen across two texts": case(cells(3, 4, lambda q, k: k > 1), padding=(3,)),
        "no mask": square(lambda q, k: True, causal=True),
        "turned over it would look ahead only": square(lambda q, k: k < q, padding=LEFT),
        "turned over it would still show the future": square(
            lambda q, k: k != q and (q, k) != (1, 3), padding=(5,), causal=True
        ),
    },
    "transposed": {
        "looking ahead on purpose": square(lambda q, k: k >= q),
        "no mask": square(lambda q, k: True, causal=True),
        "one key too many": square(lambda q, k: k <= q + 1, causal=True),
        "a blocked query": square(lambda q, k: q != 3),
        "a text read backwards, with padding blocked": square(lambda q, k: k >= q and k < 4, padding=RIGHT),
        "as many cells on either side": square(lambda q, k: abs(q - k) < 2, causal=True),
        "more keys than queries": case(cells(3, 5, lambda q, k: k >= q), causal=True),
    },
    "padding_on_queries": {
        "both axes": square(lambda q, k: q not in RIGHT and k not in RIGHT, padding=RIGHT),
        "columns": square(lambda q, k: k not in RIGHT, padding=RIGHT),
        "neither": square(lambda q, k: True, padding=RIGHT),
        "one padding row left": square(lambda q, k: q != 5, padding=RIGHT),
        "causal hides padding on the right anyway": square(lambda q, k: k <= q < 4, padding=RIGHT, causal=True),
    },
    "one_key_too_many": {
        "two too many": square(lambda q, k: k <= q + 2, causal=True),
        "only one query sees it": square(lambda q, k: k <= q or (q, k) == (2, 3), causal=True),
        "all but one query see it": square(lambda q, k: k <= q + (q != 2), causal=True),
        "an encoder": square(lambda q, k: k <= q + 1),
        "everything, between two tokens": square(lambda q, k: True, size=2, causal=True),
        "causal from the bottom right": case(cells(4, 5, lambda q, k: k <= q + 1), causal=True),
    },
    "aligned_top_left": {
        "bottom right": case(cells(2, 5, lambda q, k: k <= q + 3), causal=True),
        "another text's tokens": case(cells(2, 5, is_causal)),
        "one cell more": case(cells(2, 5, lambda q, k: k <= q or (q, k) == (0, 3)), causal=True),
        "as many queries as keys": square(is_causal, causal=True),
        "all that differs is padding": case(cells(2, 4, is_causal), padding=(1, 2, 3), causal=True),
    },
    "aligned_bottom_right": {
        "top left": case(cells(5, 2, is_causal), causal=True),
        "another text's tokens": case(cells(5, 2, lambda q, k: k <= q - 3)),
        "queries without a key are padding": case(
            cells(5, 2, lambda q, k: k <= q - 3), padding_queries=(0, 1, 2), causal=True
        ),
        "one cell more": case(cells(5, 2, lambda q, k: k <= q - 3 or q == k == 0), causal=True),
    },
    "blocks_everything": {
        "one cell is left": square(lambda q, k: q == k == 0, causal=True),
        "one real query": case(cells(3, 3, lambda q, k: False), padding=(1, 2)),
        "padding queries only": case(cells(3, 3, lambda q, k: False), padding=(0, 1, 2)),
    },
    "no_key_left": {
        "padding queries only": square(lambda q, k: 2 <= k <= q, padding=LEFT, causal=True),
        "one key is left": square(lambda q, k: k == 0),
    },
    "visible_padding": {
        "padding queries see it": square(lambda q, k: k not in RIGHT or q == k, padding=RIGHT),
        "it comes later": square(is_causal, padding=RIGHT, causal=True),
    },
    "visible_future": {
        "an encoder": square(lambda q, k: True),
        "padding queries see it": square(lambda q, k: 2 <= k <= q or q < 2, padding=LEFT, causal=True),
        "a cache": case(cells(2, 5, lambda q, k: k <= q + 3), causal=True),
        "the future is padding": square(lambda q, k: k <= q or k in RIGHT, padding=RIGHT, causal=True),
    },
    "padding_query_without_key": {
        "they see themselves": square(lambda q, k: 2 <= k <= q or q == k, padding=LEFT, causal=True),
        "a real query": square(lambda q, k: k <= q != 3, causal=True),
    },
    "dead_key": {
        "it sees itself": square(lambda q, k: q == k, causal=True),
        "padding": square(lambda q, k: k not in RIGHT, padding=RIGHT),
        "those who could see it see nothing": square(lambda q, k: k <= q != 5, causal=True),
    },
    "blocks_nothing": {
        "there is nothing to block": square(lambda q, k: True),
        "one token": square(lambda q, k: True, size=1, causal=True),
        "one new token and its cache": case(cells(1, 5, lambda q, k: True), causal=True),
        "one cell is blocked": square(lambda q, k: (q, k) != (3, 3), padding=RIGHT),
        "all queries are padding": case(cells(2, 2, lambda q, k: True), padding=(0, 1)),
    },
    "fill_overflows": {
        "bfloat16 reaches further": square(is_causal, fill=-1e9, dtype=torch.bfloat16),
        "-1e4 fits": square(is_causal, fill=-1e4, dtype=torch.float16),
        "the lowest number": square(is_causal, fill=torch.finfo(torch.float16).min, dtype=torch.float16),
        "infinity on purpose": square(is_causal, fill=-math.inf, dtype=torch.float16),
        "no fill given": square(is_causal, dtype=torch.float16),
        "nothing is blocked": square(lambda q, k: True, fill=-1e9, dtype=torch.float16),
    },
    "fill_leaks": {
        "-1e4": square(is_causal, fill=-1e4, dtype=torch.float16),
        "-1e9": square(is_causal, fill=-1e9),
        "small scores in float16": square(is_causal, fill=-40.0, dtype=torch.float16, largest_score=10.0),
        "infinity": square(is_causal, fill=-math.inf),
        "infinity, and scores beyond float16": square(
            is_causal, fill=-math.inf, dtype=torch.float16, largest_score=1e6
        ),
        "nothing is blocked": square(lambda q, k: True, fill=0.0),
    },
}


def test_every_rule_has_its_cases():
    assert set(FOUND) == set(NEAR_MISSES) == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_its_mask_and_nothing_else_is_said(rule):
    given_case, _, said = FOUND[rule]
    assert {finding.rule: finding.severity for finding in lint(given_case)} == said
    assert RULES[rule](given_case).rule == rule


@pytest.mark.parametrize("rule", RULES)
def test_a_finding_has_its_cells(rule):
    given_case, holds, _ = FOUND[rule]
    expected = cells(*given_case.allowed.shape, holds)
    assert torch.equal(RULES[rule](given_case).cells, expected)


@pytest.mark.parametrize(
    ("rule", "name"), [(rule, name) for rule, near_misses in NEAR_MISSES.items() for name in near_misses]
)
def test_a_near_miss_is_none(rule, name):
    near_miss = NEAR_MISSES[rule][name]
    assert RULES[rule](near_miss) is None
    assert rule not in rules_of(near_miss)


# Masks in use. Each says what it is to a real query among real keys; padding is blocked on top.


def window(query, key):
    return abs(query - key) < 3


def same_document(query, key):
    return query // 3 == key // 3


def global_token(query, key):
    return key == 0 or query == 0 or abs(query - key) < 2


USED_IN_DECODERS = {
    "causal": is_causal,
    "causal window": lambda q, k: is_causal(q, k) and window(q, k),
    "causal, strided": lambda q, k: is_causal(q, k) and (q - k) % 3 == 0,
    "causal, dilated window": lambda q, k: 0 <= q - k < 6 and (q - k) % 2 == 0,
    "causal packed documents": lambda q, k: is_causal(q, k) and same_document(q, k),
    "causal window with first tokens kept": lambda q, k: is_causal(q, k) and (k < 2 or window(q, k)),
    "causal blocks": lambda q, k: is_causal(q, k) and q // 2 - k // 2 < 2,
}
USED_IN_ENCODERS = {
    **USED_IN_DECODERS,
    "nothing but padding": lambda q, k: True,
    "window": window,
    "prefix": lambda q, k: k < 3 or k <= q,
    "strided": lambda q, k: (q - k) % 3 == 0,
    "documents": same_document,
    "global token": global_token,
    "all but the own": lambda q, k: q != k,
    "looking ahead only": lambda q, k: k >= q,
}
IN_USE = [(name, holds, True) for name, holds in USED_IN_DECODERS.items()] + [
    (name, holds, False) for name, holds in USED_IN_ENCODERS.items()
]
PADDINGS = {"no padding": (), "right": (8, 9), "left": (0, 1), "both": (0, 9), "one": (9,), "much": range(4, 10)}


def in_use(holds, padding, causal, size=10):
    return square(lambda q, k: holds(q, k) and k not in padding, size, padding=padding, causal=causal)


@pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS)
@pytest.mark.parametrize(
    ("name", "holds", "causal"), IN_USE, ids=[f"{name} {causal}" for name, _, causal in IN_USE]
)
def test_masks_in_use_are_at_most_noted(name, holds, causal, padding):
    if name == "all but the own" and len(padding) == 6:
        padding = range(5, 10)
    assert severities_of(in_use(holds, padding, causal)) <= {"note"}


@pytest.mark.parametrize(
    ("name", "holds", "causal"), IN_USE, ids=[f"{name} {causal}" for name, _, causal in IN_USE]
)
def test_without_padding_nothing_at_all_is_said_of_masks_in_use(name, holds, causal):
    assert rules_of(in_use(holds, (), causal)) == []


sizes = st.integers(1, 12)


@st.composite
def paddings(draw, size):
    """Padding on the left, the right or both, with at least one real token."""
    left = draw(st.integers(0, size - 1))
    right = draw(st.integers(0, size - 1 - left))
    return (*range(left), *range(size - right, size))


@given(st.data(), sizes, st.integers(1, 5), st.booleans())
def test_the_masks_of_the_list_are_at_most_noted(data, size, number, causal):
    patterns = [
        torch.ones(size, size, dtype=torch.bool),
        sliding_window(size, size, number),
        strided(size, size, number),
        cells(size, size, lambda q, k: q // number == k // number),
        cells(size, size, lambda q, k: min(q, k) < number or abs(q - k) < 2),
    ]
    if not causal:
        patterns.append(prefix(size, size, number))
    padding = data.draw(paddings(size))
    allowed = data.draw(st.sampled_from(patterns)) & ~flags(padding, size)
    if causal:
        allowed = allowed.tril()
    assert severities_of(case(allowed, padding=padding, causal=causal)) <= {"note"}


@given(st.data(), sizes, st.integers(1, 12), st.booleans())
def test_masks_between_two_texts_or_with_a_cache_are_at_most_noted(data, n_queries, n_keys, causal):
    padding = data.draw(paddings(n_keys))
    allowed = ~flags(padding, n_keys).expand(n_queries, n_keys)
    if causal:
        padding, last = (), max(0, n_keys - n_queries)
        allowed = cells(n_queries, n_keys, lambda q, k: k <= q + last)
    assert severities_of(case(allowed, padding=padding, causal=causal)) <= {"note"}


@given(sizes, sizes, st.integers(0, 1000))
def test_of_random_masks_that_leave_every_query_a_key_only_dead_keys_are_noted(n_queries, n_keys, seed):
    allowed = torch.rand(n_queries, n_keys, generator=torch.Generator().manual_seed(seed)) < 0.3
    allowed = allowed | cells(n_queries, n_keys, lambda q, k: k == q * 7 % n_keys)
    assert set(rules_of(case(allowed))) <= {"dead_key"}


# Any mask at all.


@st.composite
def cases(draw, most=6):
    n_queries, n_keys = draw(st.integers(1, most)), draw(st.integers(1, most))
    n_keys = draw(st.sampled_from([n_queries, n_keys]))
    bits = draw(st.integers(0, 2 ** (n_queries * n_keys) - 1))
    allowed = cells(n_queries, n_keys, lambda q, k: bits >> (q * n_keys + k) & 1)
    padding = draw(st.sets(st.integers(0, n_keys - 1)))
    padding_queries = draw(st.sampled_from([None, draw(st.sets(st.integers(0, n_queries - 1)))]))
    causal = draw(st.booleans())
    if causal and draw(st.booleans()):
        allowed = allowed.tril(n_keys - n_queries)
    return case(allowed, padding=padding, padding_queries=padding_queries, causal=causal)


def by_loops(given_case, rule):
    """The cells of a rule that names what it sees, one by one."""
    allowed, shape = given_case.allowed.tolist(), given_case.allowed.shape
    padding_query, padding_key = given_case.query_is_padding.tolist(), given_case.key_is_padding.tolist()

    def future(query, key):
        return given_case.causal and key > query and key > query + shape[1] - shape[0]

    def dead(key):
        seen = any(allowed[query][key] for query in range(shape[0]) if not padding_query[query])
        return not seen and any(could_see(query, key) and any(allowed[query]) for query in range(shape[0]))

    def could_see(query, key):
        return not (padding_query[query] or padding_key[key] or future(query, key))

    holds = {
        "no_key_left": lambda q, k: not padding_query[q] and not any(allowed[q]),
        "padding_query_without_key": lambda q, k: padding_query[q] and not any(allowed[q]),
        "visible_padding": lambda q, k: allowed[q][k] and padding_key[k] and not padding_query[q],
        "visible_future": lambda q, k: (
            allowed[q][k] and future(q, k) and not padding_key[k] and not padding_query[q]
        ),
        "dead_key": lambda q, k: could_see(q, k) and dead(k),
    }
    return cells(*shape, holds[rule])


@given(cases())
def test_what_is_seen_cell_by_cell_is_what_loops_see(given_case):
    for rule in (*FAULTS, "padding_query_without_key", "dead_key"):
        finding, expected = RULES[rule](given_case), by_loops(given_case, rule)
        assert (finding is not None) == bool(expected.any())
        assert finding is None or torch.equal(finding.cells, expected)


@given(cases())
def test_errors_are_said_exactly_where_there_is_a_fault(given_case):
    has_fault = any(RULES[rule](given_case) for rule in FAULTS)
    assert ("error" in severities_of(given_case)) == has_fault
    if not has_fault:
        assert set(rules_of(given_case)) <= {*("aligned_top_left", "padding_query_without_key", "dead_key")}


@given(cases())
def test_a_misread_mask_is_called_that_and_nothing_else(given_case):
    found = rules_of(given_case)
    for rule in ("inverted", "transposed"):
        assert rule not in found or found == [rule]


def check_form(finding, given_case):
    assert finding.cells.dtype is torch.bool
    assert finding.cells.shape == given_case.allowed.shape
    assert finding.cells.any()
    assert finding.why[0].isupper()
    assert finding.why.endswith(".")
    assert ". " not in finding.why
    assert "\n" not in finding.why + finding.mend + finding.title


@pytest.mark.parametrize("rule", RULES)
def test_a_finding_is_well_formed(rule):
    check_form(RULES[rule](FOUND[rule][0]), FOUND[rule][0])


@given(cases())
def test_findings_are_well_formed_and_most_severe_first(given_case):
    untouched = given_case.allowed.clone()
    found = lint(given_case)
    assert torch.equal(given_case.allowed, untouched)
    ranks = [SEVERITIES.index(finding.severity) for finding in found]
    assert ranks == sorted(ranks)
    assert len({finding.rule for finding in found}) == len(found) <= 5
    for finding in found:
        check_form(finding, given_case)


@pytest.mark.parametrize("visible", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [(), (0,)])
def test_one_token(visible, causal, padding):
    found = rules_of(case(torch.tensor([[visible]]), padding=padding, causal=causal))
    if visible:
        assert found == []
    else:
        assert found == ["padding_query_without_key" if padding else "no_key_left"]


@pytest.mark.parametrize("size", [128, 512])
def test_long_texts(size):
    padding = range(size - 9, size)
    causal_mask = torch.ones(size, size, dtype=torch.bool).tril()
    assert rules_of(case(causal_mask, padding=padding, causal=True)) == []
    assert rules_of(case(~causal_mask, padding=padding, causal=True)) == ["inverted"]
    assert rules_of(case(causal_mask.T, padding=padding, causal=True)) == ["transposed"]


# One cause is said once.


@pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS)
@pytest.mark.parametrize("holds", USED_IN_DECODERS.values(), ids=USED_IN_DECODERS)
def test_an_inverted_decoder_mask_is_only_called_inverted(holds, padding):
    meant = in_use(holds, padding, causal=True)
    (finding,) = lint(meant.with_allowed(~meant.allowed))
    assert finding.rule == "inverted"


@pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS)
@pytest.mark.parametrize("holds", USED_IN_DECODERS.values(), ids=USED_IN_DECODERS)
def test_a_transposed_decoder_mask_is_only_called_transposed(holds, padding):
    meant = in_use(holds, padding, causal=True)
    (finding,) = lint(meant.with_allowed(meant.allowed.T))
    assert finding.rule == "transposed"


@pytest.mark.parametrize("padding", [(8, 9), (0, 1), (0, 9)])
@pytest.mark.parametrize("name", ["nothing but padding", "window", "strided", "global token", "prefix"])
def test_an_inverted_encoder_mask_is_only_called_inverted(name, padding):
    meant = in_use(USED_IN_ENCODERS[name], padding, causal=False)
    (finding,) = lint(meant.with_allowed(~meant.allowed))
    assert finding.rule == "inverted"


def test_an_inverted_padding_mask_of_a_batch_without_padding_blocks_everything():
    assert rules_of(square(lambda q, k: False)) == ["inverted"]


def test_a_strictly_causal_mask_of_an_encoder_is_not_called_inverted():
    assert rules_of(square(lambda q, k: k < q)) == ["own_key_hidden"]


def test_a_mask_that_can_be_taken_for_two_is_called_one():
    either = case(cells(3, 3, lambda q, k: (q, k) in ((0, 1), (1, 0))), padding=(1, 2), padding_queries=())
    assert RULES["inverted"](either)
    assert rules_of(either) == ["own_key_hidden", "visible_padding"]


def test_of_a_mask_that_blocks_everything_padding_is_not_noted_too():
    assert rules_of(square(lambda q, k: False, padding=RIGHT)) == ["blocks_everything"]


def test_an_inverted_padding_mask_between_two_texts():
    given_case = case(cells(3, 5, lambda q, k: k > 2), padding=(3, 4))
    (finding,) = lint(given_case)
    assert finding.rule == "inverted"


@pytest.mark.parametrize("padding", [(8, 9), (0, 1), (0, 9)])
@pytest.mark.parametrize("name", ["nothing but padding", "window", "strided", "global token"])
def test_padding_on_the_wrong_axis_is_only_called_that(name, padding):
    holds = USED_IN_ENCODERS[name]
    (finding,) = lint(
        square(lambda q, k: holds(q, k) and q not in padding, size=10, padding=padding),
    )
    assert finding.rule == "padding_on_queries"


def test_padding_on_the_wrong_axis_of_a_left_padded_decoder():
    (finding,) = lint(square(lambda q, k: is_causal(q, k) and q > 1, padding=LEFT, causal=True))
    assert finding.rule == "padding_on_queries"


@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, 5), (3, 6), (6, 4)])
def test_one_key_too_many_counts_from_the_last_keys(n_queries, n_keys):
    last = max(0, n_keys - n_queries)
    (finding,) = lint(case(cells(n_queries, n_keys, lambda q, k: k <= q + last + 1), causal=True))
    assert finding.rule == "one_key_too_many"
    assert f"tril({last}) in place of tril({last + 1})" in finding.mend


# What is said.


def said(given_case, rule):
    (finding,) = (finding for finding in lint(given_case) if finding.rule == rule)
    return finding.why


def test_positions_are_named():
    assert "query 3" in said(FOUND["no_key_left"][0], "no_key_left")
    assert "padding keys 0 and 1" in said(FOUND["visible_padding"][0], "visible_padding")
    assert "queries 0, 1, 2 and 2 more" in said(square(lambda q, k: True, causal=True), "visible_future")
    assert "no key for query 0" in said(FOUND["own_key_hidden"][0], "own_key_hidden")
    assert "no key for queries 0, 1 and 2" in said(FOUND["aligned_bottom_right"][0], "aligned_bottom_right")


def test_a_query_with_only_padding_to_see_cannot_be_mended():
    given_case = case(cells(2, 3, lambda q, k: False), padding=(0, 1, 2), padding_queries=(1,))
    (finding,) = (finding for finding in lint(given_case) if finding.severity == "error")
    assert finding.rule == "no_key_left"
    assert finding.mend.startswith("Every key there is padding")


def test_a_row_without_a_key_is_said_to_be_nan_or_to_leak():
    blocked_row = FOUND["no_key_left"][0]
    assert "NaN" in said(blocked_row, "no_key_left")
    assert "NaN" in said(replace(blocked_row, fill=-1e9, dtype=torch.float16), "no_key_left")
    assert "a fill of -10000 lets" in said(replace(blocked_row, fill=-1e4), "no_key_left")


def test_overflowing_is_an_error_where_it_makes_nan():
    (finding,) = (
        f for f in lint(replace(FOUND["no_key_left"][0], fill=-1e9, dtype=torch.float16)) if "fill" in f.rule
    )
    assert (finding.rule, finding.severity) == ("fill_overflows", "error")
    left_padded = replace(FOUND["padding_query_without_key"][0], fill=-1e9, dtype=torch.float16)
    assert (lint(left_padded)[0].rule, lint(left_padded)[0].severity) == ("fill_overflows", "error")


# What is said of PyTorch.


def test_a_row_without_a_key_is_nan_and_spreads_to_all_tokens():
    blocked = torch.ones(4, 4, dtype=torch.bool).triu(1)
    blocked[2] = True
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        first, _ = attention(x, x, x, attn_mask=blocked)
        second, _ = attention(first, first, first, attn_mask=blocked)
    assert first.isnan().any(-1).tolist() == [[False, False, True, False]]
    assert second.isnan().any(-1).all()


def test_pytorchs_own_attention_gives_such_a_row_zeros():
    q = torch.randn(1, 1, 3, 8, generator=torch.Generator().manual_seed(0))
    allowed = cells(3, 3, lambda q, k: q != 1)
    assert F.scaled_dot_product_attention(q, q, q, attn_mask=allowed)[0, 0, 1].tolist() == [0.0] * 8


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 5), (2, 5), (5, 2)])
def test_the_flag_of_pytorch_aligns_top_left(n_queries, n_keys):
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 1, n_queries, 4, generator=generator), torch.randn(1, 1, n_keys, 4, generator=generator)
    weights = F.scaled_dot_product_attention(q, k, torch.eye(n_keys)[None, None], is_causal=True)[0, 0]
    assert torch.equal(weights > 0, cells(n_queries, n_keys, is_causal))


def test_the_mask_that_is_recommended_aligns_bottom_right():
    mask = FOUND["aligned_top_left"][0]
    assert "causal_lower_right(2, 5)" in RULES["aligned_top_left"](mask).mend
    q, k = torch.ones(1, 1, 2, 4), torch.ones(1, 1, 5, 4)
    weights = F.scaled_dot_product_attention(q, k, torch.eye(5)[None, None], attn_mask=causal_lower_right(2, 5))
    assert torch.equal(weights[0, 0] > 0, cells(2, 5, lambda q, k: k <= q + 3))


def test_pytorch_refuses_a_fill_that_overflows_or_makes_it_infinite():
    scores, blocked = torch.zeros(1, 2, dtype=torch.float16), torch.tensor([[False, True]])
    with pytest.raises(RuntimeError, match="overflow"):
        scores.masked_fill(blocked, -1e9)
    assert (scores + torch.full((1, 2), -1e9).half()).isinf().all()


# The fill, against softmaxes over scores that are drawn, not chosen.


def weights_of_blocked(scores, allowed, fill):
    """The weights that blocked keys keep, with the fill added to their scores and put in their place."""
    value = torch.tensor(fill, dtype=scores.dtype)
    added = scores + torch.where(allowed, torch.zeros_like(value), value)
    filled = torch.where(allowed, scores, value)
    return [row.softmax(-1)[~allowed] for row in (added, filled)]


number_types = st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16])
fills = st.sampled_from([-1e9, -65504.0, -1e4, -1e3, -300.0, -104.0, -60.0, -18.0, -5.0, 0.0])
reaches = st.sampled_from([0.0, 1.0, 5.0, 20.0, 100.0, 5000.0])


@given(number_types, fills, reaches, st.integers(0, 1000))
def test_a_fill_that_is_passed_leaves_blocked_keys_exactly_nothing(dtype, fill, reach, seed):
    given_case = square(is_causal, size=5, causal=True, fill=fill, dtype=dtype, largest_score=reach)
    if set(rules_of(given_case)) & set(FILL_RULES):
        return
    uniform = torch.rand(5, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    scores = ((2 * uniform - 1) * reach).to(dtype)
    for weights in weights_of_blocked(scores, given_case.allowed, fill):
        assert not weights.any()


@given(number_types, fills, reaches)
def test_a_fill_that_is_found_to_leak_does_leak(dtype, fill, reach):
    finding = RULES["fill_leaks"](square(is_causal, size=2, fill=fill, dtype=dtype, largest_score=reach))
    scores = torch.tensor([[-reach, reach], [0.0, 0.0]], dtype=dtype)
    added, _ = weights_of_blocked(scores, torch.ones(2, 2, dtype=torch.bool).tril(), fill)
    assert (finding is not None) == bool(added.any())
    if finding is not None:
        assert finding.severity == ("error" if added.item() >= torch.finfo(dtype).eps else "warning")
        assert f"{added.item():.2g}" in finding.why


@pytest.mark.parametrize(
    ("fill", "dtype", "reach", "found"),
    [
        (-1e9, torch.float16, 10.0, ["fill_overflows"]),
        (-1e9, torch.bfloat16, 10.0, []),
        (-1e9, torch.float32, 10.0, []),
        (-1e4, torch.float16, 10.0, []),
        (-1e4, torch.float16, 4000.0, []),
        (-1e4, torch.float16, 5000.0, ["fill_leaks"]),
        (-100.0, torch.float32, 0.0, ["fill_leaks"]),  # exp(-100) is 3.8e-44, which float32 still holds
        (-104.0, torch.float32, 0.0, []),
        (-100.0, torch.float16, 0.0, []),
        (-700.0, torch.float64, 0.0, ["fill_leaks"]),
        (0.0, None, 10.0, ["fill_leaks"]),
        (1e9, torch.float16, 10.0, ["fill_leaks"]),
        (-math.inf, torch.float16, 10.0, []),
    ],
)
def test_fills_in_use(fill, dtype, reach, found):
    assert rules_of(square(is_causal, causal=True, fill=fill, dtype=dtype, largest_score=reach)) == found


def test_a_fill_that_is_too_large_to_hold_gives_blocked_keys_everything():
    (finding,) = lint(square(is_causal, causal=True, fill=1e9, dtype=torch.float16))
    assert finding.severity == "error"
    assert "a weight of 1 in float16" in finding.why


def test_a_small_leak_is_a_warning():
    assert severities_of(square(is_causal, causal=True, fill=-60.0, largest_score=0.0)) == {"warning"}
