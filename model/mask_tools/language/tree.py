"""What an expression is once it is read: a tree in which numbers and conditions cannot be confused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int]
"""Where a part stands in the text: its first column, and the column after its last."""


@dataclass(frozen=True)
class Integer:
    """A whole number that is written out."""

    value: int
    span: Span


@dataclass(frozen=True)
class Quantity:
    """A number that is given: q, k, n_queries, n_keys, query_token, key_token, query_segment or key_segment."""

    name: str
    span: Span


@dataclass(frozen=True)
class Negative:
    """-x."""

    operand: Number
    span: Span


@dataclass(frozen=True)
class Absolute:
    """abs(x)."""

    operand: Number
    span: Span


@dataclass(frozen=True)
class Arithmetic:
    """Two numbers and one of + - * // %."""

    operator: str
    left: Number
    right: Number
    span: Span


@dataclass(frozen=True)
class Truth:
    """True or False."""

    value: bool
    span: Span


@dataclass(frozen=True)
class Fact:
    """A condition that is given: query_is_padding or key_is_padding."""

    name: str
    span: Span


@dataclass(frozen=True)
class Comparison:
    """A chain such as 0 <= q - k < 4; numbers, or conditions under == and != alone."""

    operands: tuple[Number, ...] | tuple[Condition, ...]
    operators: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Junction:
    """Conditions joined by ``and`` or by ``or``."""

    word: str
    parts: tuple[Condition, ...]
    span: Span


@dataclass(frozen=True)
class Negation:
    """not x."""

    operand: Condition
    span: Span


Number = Integer | Quantity | Negative | Absolute | Arithmetic
Condition = Truth | Fact | Comparison | Junction | Negation


def names_in(node: Number | Condition) -> Iterator[str]:
    """The names of everything given that a tree asks for, as often as it does."""
    match node:
        case Quantity(name) | Fact(name):
            yield name
        case Negative(operand) | Absolute(operand) | Negation(operand):
            yield from names_in(operand)
        case Arithmetic(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Comparison(parts) | Junction(_, parts):
            for part in parts:
                yield from names_in(part)
