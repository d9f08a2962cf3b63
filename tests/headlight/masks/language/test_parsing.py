"""Expressions that are read, those that are refused, and the place that a refusal points to."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headlight.masks.language import MaskExpressionError, parse
from headlight.masks.language.spelling import DEEPEST, LONGEST

GOOD = [
    "True",
    "k <= q",
    "k<=q",
    "  k <= q  ",
    "k <=\n\tq",
    "(((k <= q)))",
    "q - k < 4",
    "0 <= q - k < 4",
    "abs(q - k) % 2 == 0",
    "-3 < q - k",
    "k - -q == +3",
    "not not is_pad(k)",
    "not q == k",
    "is_pad(q) == is_pad(k) != same_token",
    "segment(q) == segment(k) and token(q) != 0",
    "(k < q) == (q < n_queries)",
    "k // (n_keys - 3) == 1 % 2",
    "k < 4611686018427387904",
    f"q < {'(' * (DEEPEST - 1)}k{')' * (DEEPEST - 1)}",
    f"{'q < k or ' * 200}False",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_is_read(text):
    assert parse(text).text == text


# The text, the part that is pointed at, and words that the sentence has.
BAD = [
    ("", "", "empty"),
    (" \n ", " \n ", "empty"),
    ("same_tokens", "same_tokens", "did you mean same_token?"),
    ("k <= query", "query", "did you mean q?"),
    ("k <= q AND k > 3", "AND", "did you mean and?"),
    ("row < 3", "row", "did you mean q?"),
    ("zebra < 3", "zebra", "the names are q, k, n_queries"),
    ("größe < q", "größe", "not known"),
    ("\uff4b < q", "\uff4b", "not known"),
    ("lambda: q", "lambda", "not known"),
    ("q if q else k", "if", "not known"),
    ("k in q", "in", "not known"),
    ("k is q", "is", "not known"),
    ("__import__('os')", "__import__", "not known"),
    ("f(q) < 3", "f", "not known"),
    ("k = q", "=", "write =="),
    ("k === q", "===", "write =="),
    ("k => q", "=>", "write >="),
    ("k =< q", "=<", "write <="),
    ("k <> q", "<>", "write !="),
    ("k ≤ q", "≤", "write <="),
    ("k < q && q < 3", "&&", "write and"),
    ("k < q & q < 3", "&", "write and"),
    ("k < q || q < 3", "||", "write or"),
    ("k < q | q < 3", "|", "write or"),
    ("!is_pad(k)", "!", "write not"),
    ("~is_pad(k)", "~", "write not"),
    ("is_pad(k) ^ is_pad(q)", "^", "write !="),
    ("q ** 2 < k", "**", "no powers"),
    ("q / 2 < k", "/", "write //"),
    ("q.real < k", ".", "whole numbers"),
    ("1.5 < q", "1.5", "not a whole number"),
    ("1e5 < q", "1e5", "not a whole number"),
    ("0x10 < q", "0x10", "not a whole number"),
    ("1_000 < q", "1_000", "not a whole number"),
    ("2k < q", "2k", "not a whole number"),
    ("1or 2", "1or", "not a whole number"),
    ("007 < q", "007", "starts with 0"),
    ("q < 4611686018427387905", "4611686018427387905", "too large"),
    ("'a' == token(q)", "'", "no strings"),
    ('"', '"', "no strings"),
    ("q[0] < k", "[", "round brackets"),
    ("{q} < k", "{", "round brackets"),
    ("k <= q # causal", "#", "cannot be used"),
    ("k <= q; k", ";", "cannot be used"),
    ("(q := k) < 3", ":", "cannot be used"),
    ("q\0 < k", "\0", "U+0000"),
    ("\u200bk <= q", "\u200b", "U+200B"),
    ("\ud800", "\ud800", "U+D800"),
    ("is_pad(q, k)", ",", "one value each"),
    ("same_token(q, k)", ",", "stands alone"),
    ("k <= q)", ")", "closes nothing"),
    ("(k <= q", "(", "never closed"),
    ("k <= q and (k > (q - 3)", "(", "never closed"),
    ("()", "()", "value is missing"),
    ("is_pad()", "()", "value is missing"),
    ("k <=", "<=", "missing after '<='"),
    ("k <= q and", "and", "missing after 'and'"),
    ("<= q", "<=", "missing before '<='"),
    ("or k < q", "or", "missing before 'or'"),
    ("k < * q", "< *", "missing between '<' and '*'"),
    ("k < and q", "< and", "missing between '<' and 'and'"),
    ("(k <) q", "<)", "missing between '<' and ')'"),
    ("abs(*q) < 3", "(*", "missing between '(' and '*'"),
    ("k q", "k q", "operator, such as 'and' or '<=', is missing"),
    ("k <= q not is_pad(k)", "q not", "is missing between 'q' and 'not'"),
    ("2(q) < k", "2(", "is missing between '2' and '('"),
    ("(q)(k) < 3", ")(", "is missing between ')' and '('"),
    ("q(k) < 3", "q(", "is missing between 'q' and '('"),
    ("q == not k", "not", "need brackets"),
    ("- not q", "not", "need brackets"),
    ("q", "q", "'q' is a number"),
    ("q + 1", "q + 1", "'q + 1' is a number"),
    ("+segment(q) - 1", "+segment(q) - 1", "'+segment(q) - 1' is a number"),
    ("not q", "q", "is a number"),
    ("k and 3", "k", "is a number"),
    ("k < q and 3", "3", "is a number"),
    ("abs(q - k) or k < q", "abs(q - k)", "is a number"),
    ("1 + True", "True", "is a condition"),
    ("-same_token", "same_token", "is a condition"),
    ("k < (q < 3)", "q < 3", "is a condition"),
    ("(q < k) + 1 < 3", "q < k", "is a condition"),
    ("q < k == True", "True", "is a condition"),
    ("abs(is_pad(q)) < 1", "is_pad(q)", "is a condition"),
    ("True == 1", "True", "is a condition"),
    ("is_pad(q) < is_pad(k)", "is_pad(q) < is_pad(k)", "compares conditions by '<'"),
    ("is_pad", "is_pad", "write is_pad(q) or is_pad(k)"),
    ("segment == 3", "segment", "write segment(q) or segment(k)"),
    ("abs < 3", "abs", "write abs(q - k)"),
    ("is_pad(q + 1)", "is_pad(q + 1)", "write is_pad(q) or is_pad(k)"),
    ("token(3) == 3", "token(3)", "write token(q) or token(k)"),
    ("segment(segment(q)) == 3", "segment(segment(q))", "write segment(q) or segment(k)"),
]


@pytest.mark.parametrize(("text", "part", "words"), BAD)
def test_what_is_refused_and_where(text, part, words):
    with pytest.raises(MaskExpressionError, match=re.escape(words)) as caught:
        parse(text)
    assert text[caught.value.start : caught.value.end] == part


HOSTILE = [
    ")" * 100_000,
    "(" * 5_000,
    "(" * 1_500,
    "not " * 5_000,
    f"{'not ' * 490}True",
    f"{'-' * 1_900}q < 3",
    f"{'1+' * 900}q < 3",
    f"{'abs(' * 300}q{')' * 300} < 3",
    f"{'(-' * 300}q{')' * 300} < 3",
    "1" * 1_900,
    "1" * 100_000,
    "\0" * 1_000,
    "q" * 1_999,
    " " * 100_000 + "q",
    "q < k" + " " * LONGEST,
    "q<" * 900,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: f"{text[:8]!r} {len(text)}")
def test_hostile_text_is_refused_like_any_other(text):
    with pytest.raises(MaskExpressionError):
        parse(text)


def test_an_expression_can_be_as_long_and_as_deep_as_is_said():
    longest = "k <= q".ljust(LONGEST)
    parse(longest)
    with pytest.raises(MaskExpressionError, match="2,001 characters: at most 2,000"):
        parse(longest + " ")
    parse("(" * DEEPEST + "True" + ")" * DEEPEST)
    with pytest.raises(MaskExpressionError, match=f"more than {DEEPEST} deep") as caught:
        parse("(" * (DEEPEST + 1) + "True" + ")" * (DEEPEST + 1))
    assert caught.value.start == DEEPEST
    parse("not " * (DEEPEST - 1) + "True")
    with pytest.raises(MaskExpressionError, match=f"more than {DEEPEST} deep"):
        parse("not " * DEEPEST + "True")


def only_refused_or_read(text):
    """The expression, or None if it was refused in one sentence that points into the text."""
    try:
        return parse(text)
    except MaskExpressionError as error:
        refusal = error
    assert 0 <= refusal.start <= refusal.end <= len(text)
    assert str(refusal)
    assert "\n" not in str(refusal)
    return None


@given(st.text(max_size=60))
def test_nothing_but_the_one_error_escapes(text):
    only_refused_or_read(text)


FRAGMENTS = [
    *("q", "k", "n_queries", "n_keys", "token(k)", "segment(q)", "abs(", "0", "1", "7", "12"),
    *("same_token", "is_pad(k)", "is_pad(", "True", "False", "k <= q", "q - k"),
    *("+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">=", ">"),
    *("and", "or", "not", "(", ")", ")", "=", "\n"),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(" ".join))
def test_what_looks_like_an_expression_is_read_or_refused(text):
    only_refused_or_read(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("True", set()),
        ("k <= q", {"k", "q"}),
        ("same_token", {"query_token", "key_token"}),
        ("not is_pad(k) or abs(q - 3) < -n_keys", {"key_is_padding", "q", "n_keys"}),
        ("segment(q) == segment(k) != n_queries", {"query_segment", "key_segment", "n_queries"}),
    ],
)
def test_an_expression_says_what_it_asks_for(text, names):
    assert parse(text).names == names
