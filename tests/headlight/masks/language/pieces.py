"""Random expressions, each with what it means: a plain Python function of one query and one key."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from headlight.masks.language import MaskContext


@dataclass(frozen=True)
class Piece:
    """A part of an expression: how it is written, how tightly that binds, and its value at a query and a key."""

    text: str
    binds: int
    value: Callable[[int, int, MaskContext], int | bool]

    def within(self, binds: int) -> str:
        return self.text if self.binds >= binds else f"({self.text})"


OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(8)

ARITHMETIC = {
    "+": (SUM, operator.add),
    "-": (SUM, operator.sub),
    "*": (PRODUCT, operator.mul),
    "//": (PRODUCT, operator.floordiv),
    "%": (PRODUCT, operator.mod),
}
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
NUMBER_ATOMS = [
    Piece("q", ATOM, lambda q, k, given: q),
    Piece("k", ATOM, lambda q, k, given: k),
    Piece("n_queries", ATOM, lambda q, k, given: len(given.query_tokens)),
    Piece("n_keys", ATOM, lambda q, k, given: len(given.key_tokens)),
    Piece("token(q)", ATOM, lambda q, k, given: given.query_tokens[q]),
    Piece("token(k)", ATOM, lambda q, k, given: given.key_tokens[k]),
    Piece("segment(q)", ATOM, lambda q, k, given: given.query_segments[q]),
    Piece("segment(k)", ATOM, lambda q, k, given: given.key_segments[k]),
]
CONDITION_ATOMS = [
    Piece("True", ATOM, lambda q, k, given: True),
    Piece("False", ATOM, lambda q, k, given: False),
    Piece("same_token", ATOM, lambda q, k, given: given.query_tokens[q] == given.key_tokens[k]),
    Piece("is_pad(q)", ATOM, lambda q, k, given: given.query_is_padding[q]),
    Piece("is_pad(k)", ATOM, lambda q, k, given: given.key_is_padding[k]),
]


def integer(value: int) -> Piece:
    return Piece(str(value), ATOM, lambda q, k, given: value)


def arithmetic(left: Piece, sign: str, right: Piece) -> Piece:
    binds, compute = ARITHMETIC[sign]
    text = f"{left.within(binds)} {sign} {right.within(binds + 1)}"
    return Piece(text, binds, lambda *cell: compute(left.value(*cell), right.value(*cell)))


def negative(number: Piece) -> Piece:
    return Piece(f"-{number.within(SIGN)}", SIGN, lambda *cell: -number.value(*cell))


def absolute(number: Piece) -> Piece:
    return Piece(f"abs({number.text})", ATOM, lambda *cell: abs(number.value(*cell)))


def chain(operands: list[Piece], signs: list[str]) -> Piece:
    text = operands[0].within(SUM)
    for sign, operand in zip(signs, operands[1:], strict=True):
        text += f" {sign} {operand.within(SUM)}"

    def value(*cell):
        left = operands[0].value(*cell)
        for sign, operand in zip(signs, operands[1:], strict=True):
            right = operand.value(*cell)
            if not COMPARISONS[sign](left, right):
                return False
            left = right
        return True

    return Piece(text, COMPARISON, value)


def conjunction(parts: list[Piece]) -> Piece:
    text = " and ".join(part.within(NOT) for part in parts)
    return Piece(text, AND, lambda *cell: all(part.value(*cell) for part in parts))


def disjunction(parts: list[Piece]) -> Piece:
    text = " or ".join(part.within(AND) for part in parts)
    return Piece(text, OR, lambda *cell: any(part.value(*cell) for part in parts))


def negation(part: Piece) -> Piece:
    return Piece(f"not {part.within(NOT)}", NOT, lambda *cell: not part.value(*cell))


numbers = st.recursive(
    st.sampled_from(NUMBER_ATOMS) | st.integers(0, 12).map(integer),
    lambda inner: (
        st.builds(arithmetic, inner, st.sampled_from(list(ARITHMETIC)), inner)
        | inner.map(negative)
        | inner.map(absolute)
    ),
    max_leaves=5,
)


sums_of_sums = st.builds(
    arithmetic,
    numbers,
    st.sampled_from(list(ARITHMETIC)),
    st.builds(arithmetic, numbers, st.sampled_from(list(ARITHMETIC)), numbers),
)


@st.composite
def chains(draw, operands, signs):
    drawn = draw(st.lists(st.sampled_from(signs), min_size=1, max_size=3))
    return chain([draw(operands) for _ in range(len(drawn) + 1)], drawn)


def _larger_conditions(inner):
    several = st.lists(inner, min_size=2, max_size=3)
    return several.map(conjunction) | several.map(disjunction) | inner.map(negation) | chains(inner, ["==", "!="])


conditions = st.recursive(
    chains(numbers | sums_of_sums, list(COMPARISONS)) | st.sampled_from(CONDITION_ATOMS),
    _larger_conditions,
    max_leaves=5,
)


@st.composite
def contexts(draw, smallest=1, largest=6):
    def facts():
        size = draw(st.integers(smallest, largest))
        values = st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 2))
        drawn = draw(st.lists(values, min_size=size, max_size=size))
        return tuple(tuple(column) for column in zip(*drawn, strict=True)) or ((), (), ())

    (query_tokens, query_is_padding, query_segments), (key_tokens, key_is_padding, key_segments) = facts(), facts()
    return MaskContext(query_tokens, key_tokens, query_is_padding, key_is_padding, query_segments, key_segments)


def plain_context(n_queries: int, n_keys: int, n_padding: int = 0, n_segments: int = 1) -> MaskContext:
    """Padding at the end, segments of about equal length, and tokens that come back after seven."""

    def facts(size):
        return (
            tuple(i % 7 for i in range(size)),
            tuple(i >= size - n_padding for i in range(size)),
            tuple(i * n_segments // size for i in range(size)),
        )

    (query_tokens, query_is_padding, query_segments), (key_tokens, key_is_padding, key_segments) = (
        facts(n_queries),
        facts(n_keys),
    )
    return MaskContext(query_tokens, key_tokens, query_is_padding, key_is_padding, query_segments, key_segments)
