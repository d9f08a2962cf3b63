"""The cells of an expression against plain Python, cell by cell."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headlight.masks.language import MaskContext, MaskExpressionError, parse
from tests.headlight.masks.language.pieces import conditions, contexts, plain_context
from tests.headlight.masks.language.test_parsing import FRAGMENTS, only_refused_or_read


def by_loops(value, context):
    """The cells by a function of one query, one key and the context; None where it divides by zero."""

    def cell(query, key):
        try:
            return bool(value(query, key, context))
        except ZeroDivisionError:
            return None

    return [[cell(query, key) for key in range(context.n_keys)] for query in range(context.n_queries)]


def check_cells(expression, context, expected):
    """Evaluate, and compare; where Python divides by zero, a refusal that names the first such cell."""
    undefined = [(q, k) for q, row in enumerate(expected) for k, cell in enumerate(row) if cell is None]
    if undefined:
        with pytest.raises(MaskExpressionError, match=r"divides by 0 at query \d+ and key \d+") as caught:
            expression.evaluate(context)
        assert any(f"at query {query} and key {key}:" in str(caught.value) for query, key in undefined)
        assert 0 <= caught.value.start < caught.value.end <= len(expression.text)
    else:
        allowed = expression.evaluate(context)
        assert allowed.dtype is torch.bool
        assert allowed.shape == (context.n_queries, context.n_keys)
        assert allowed.tolist() == expected


@given(conditions, contexts())
def test_cells_are_those_of_plain_python(piece, context):
    check_cells(parse(piece.text), context, by_loops(piece.value, context))


class Query(int):
    """The position of the query, which is_pad(q) tells from that of the key."""


class Key(int):
    """The position of the key."""


def by_python(code):
    """The meaning that Python gives to an expression, as a function of a cell."""

    def value(query, key, context):
        def fact(name):
            return lambda of: getattr(context, f"{'query' if isinstance(of, Query) else 'key'}_{name}")[of]

        names = {
            "q": Query(query),
            "k": Key(key),
            "n_queries": context.n_queries,
            "n_keys": context.n_keys,
            "same_token": context.query_tokens[query] == context.key_tokens[key],
            "is_pad": fact("is_padding"),
            "segment": fact("segments"),
            "token": fact("tokens"),
            "abs": abs,
        }
        return eval(code, {"__builtins__": {}}, names)

    return value


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(" ".join), contexts())
def test_whatever_is_read_means_what_it_means_to_python(text, context):
    expression = only_refused_or_read(text)
    if expression is not None:
        code = compile(f"({text})", "expression", "eval")
        check_cells(expression, context, by_loops(by_python(code), context))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("k <= q", ["#..", "##.", "###"]),
        ("q - k < 2", ["###", "###", ".##"]),
        ("0 <= q - k < 2", ["#..", "##.", ".##"]),
        ("q == k == 1", ["...", ".#.", "..."]),
        ("not is_pad(k)", ["##.", "##.", "##."]),
        ("is_pad(q) == is_pad(k)", ["##.", "##.", "..#"]),
        ("segment(q) == segment(k)", ["##.", "##.", "..#"]),
        ("same_token", ["#..", ".#.", "..#"]),
        ("-k // 2 == -1", [".##", ".##", ".##"]),
        ("-k % 3 == 1", ["..#", "..#", "..#"]),
        ("k % -3 == -2", [".#.", ".#.", ".#."]),
        ("n_queries == n_keys == 3", ["###", "###", "###"]),
        ("False", ["...", "...", "..."]),
    ],
)
def test_cells_by_hand(text, rows):
    allowed = parse(text).evaluate(plain_context(3, 3, n_padding=1, n_segments=2))
    assert ["".join(".#"[cell] for cell in row) for row in allowed.tolist()] == rows


@pytest.mark.parametrize(
    "text",
    [
        "q > 0 and k % q == 0",
        "q == 0 or k % q == 0",
        "not (q == 0 or k % q == 0)",
        "0 < q < 9 // q",
        "False and k // 0 == 1",
        "True or k // (n_keys - 3) == 1",
        "(q > 0 and k // q == 1) == (k > 0 and q // k == 1)",
    ],
)
def test_a_zero_divisor_counts_only_where_python_would_divide(text):
    context = plain_context(3, 3)
    expected = by_loops(by_python(compile(text, "expression", "eval")), context)
    assert parse(text).evaluate(context).tolist() == expected


@pytest.mark.parametrize(
    ("text", "part", "query", "key"),
    [
        ("k // q == 1", "q", 0, 0),
        ("k % (2 - k) == 0", "2 - k", 0, 2),
        ("k < 0 and q // k == 0 or q % (1 - k) == 0", "1 - k", 0, 1),
        ("q > 1 and k // (q - 2) < 3", "q - 2", 2, 0),
        ("q == 0 and k % q == 0", "q", 0, 0),
        ("k // (n_keys - 3) == 1", "n_keys - 3", 0, 0),
        ("q // 0 == 0", "0", 0, 0),
    ],
)
def test_a_zero_divisor_is_pointed_at(text, part, query, key):
    with pytest.raises(MaskExpressionError, match=f"divides by 0 at query {query} and key {key}: ") as caught:
        parse(text).evaluate(plain_context(3, 3))
    assert text[caught.value.start : caught.value.end] == part


LARGE = 2**61


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"q * {LARGE} < 3", f"q * {LARGE}"),
        (f"k < {LARGE} + {LARGE} + 1", f"{LARGE} + {LARGE} + 1"),
        (f"k < -{LARGE} - {LARGE} - k", f"-{LARGE} - {LARGE} - k"),
        (f"3 + {2 * LARGE} < k", f"3 + {2 * LARGE}"),
        (f"-1 % {LARGE} * 3 < k", f"-1 % {LARGE} * 3"),
        (f"False and {LARGE} * 3 < k", f"{LARGE} * 3"),
    ],
)
def test_a_number_that_could_leave_64_bits_is_pointed_at(text, part):
    with pytest.raises(MaskExpressionError, match=r"could go beyond 2\*\*62") as caught:
        parse(text).evaluate(plain_context(4, 4))
    assert text[caught.value.start : caught.value.end] == part


@pytest.mark.parametrize(
    "text",
    [
        f"k * {LARGE} // {LARGE} == k",
        f"q * {LARGE} - {LARGE} < 0",
        f"{LARGE} % 2 * {LARGE} == k",
        f"-{2 * LARGE} // -1 == {2 * LARGE}",
        f"({2 * LARGE - 1} - k) % {LARGE} == {LARGE - 1} - k",
    ],
)
def test_the_largest_numbers_are_computed_right(text):
    context = plain_context(2, 2)
    expected = by_loops(by_python(compile(text, "expression", "eval")), context)
    assert parse(text).evaluate(context).tolist() == expected


@pytest.mark.parametrize("size", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("text", ["k <= q", "same_token or k // q == 1", "True"])
def test_without_queries_or_keys_there_are_no_cells(text, size):
    assert parse(text).evaluate(plain_context(*size)).shape == size


def test_the_cells_are_the_callers_own():
    first, second = (parse("not is_pad(k)").evaluate(plain_context(3, 3, n_padding=1)) for _ in range(2))
    first[0, 0] = False
    assert second[0, 0]
    assert second[1, 0]


def test_facts_that_differ_in_number_are_refused():
    with pytest.raises(ValueError, match=r"key_tokens \(2\), key_is_padding \(1\) and key_segments \(2\)"):
        MaskContext((1,), (1, 2), (False,), (False,), (0,), (0, 0))
