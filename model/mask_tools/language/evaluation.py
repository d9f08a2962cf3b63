"""The cells of an expression: every operation on all queries and keys at once, with Python's own meaning."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

import torch
from torch import Tensor

from model.mask_tools.language.context import MaskContext
from model.mask_tools.language.spelling import LARGEST, MaskExpressionError, shortened
from model.mask_tools.language.tree import (
    Absolute,
    Arithmetic,
    Comparison,
    Condition,
    Fact,
    Integer,
    Junction,
    Negation,
    Negative,
    Number,
    Quantity,
    Span,
    Truth,
)

_COMPARE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True, eq=False)
class _Number:
    """A number of each cell, (Tq or 1, Tk or 1) int64 or a scalar, and how far from zero it can be at most."""

    cells: Tensor
    bound: int


@dataclass(frozen=True, eq=False)
class _Grid:
    """What the expression is worked out on; ``text`` is for what has to be said of a part of it."""

    text: str
    size: tuple[int, int]
    given: Mapping[str, Tensor]

    def said(self, span: Span) -> str:
        return shortened(" ".join(self.text[slice(*span)].split()))


def evaluate(condition: Condition, text: str, context: MaskContext) -> Tensor:
    """The cells, (Tq, Tk) bool, True = may attend.

    Raises:
        MaskExpressionError: a cell divides by zero, or a number can leave 64 bits.
    """
    size = (context.n_queries, context.n_keys)
    everywhere = torch.ones((), dtype=torch.bool)
    cells = _condition(condition, _Grid(text, size, _given(context)), everywhere)
    return cells.expand(size).clone()


def _given(context: MaskContext) -> dict[str, Tensor]:
    return {
        "q": torch.arange(context.n_queries)[:, None],
        "k": torch.arange(context.n_keys)[None, :],
        "n_queries": torch.tensor(context.n_queries),
        "n_keys": torch.tensor(context.n_keys),
        "query_token": torch.tensor(context.query_tokens, dtype=torch.int64)[:, None],
        "key_token": torch.tensor(context.key_tokens, dtype=torch.int64)[None, :],
        "query_segment": torch.tensor(context.query_segments, dtype=torch.int64)[:, None],
        "key_segment": torch.tensor(context.key_segments, dtype=torch.int64)[None, :],
        "query_is_padding": torch.tensor(context.query_is_padding, dtype=torch.bool)[:, None],
        "key_is_padding": torch.tensor(context.key_is_padding, dtype=torch.bool)[None, :],
    }


def _condition(node: Condition, grid: _Grid, live: Tensor) -> Tensor:
    """The truth of each cell; where ``live`` is False, Python would not have asked, and any answer will do."""
    match node:
        case Truth(value):
            return torch.tensor(value)
        case Fact(name):
            return grid.given[name]
        case Negation(operand):
            return ~_condition(operand, grid, live)
        case Junction("and", parts):
            for part in parts:
                live = live & _condition(part, grid, live)
            return live
        case Junction(_, parts):
            undecided = live
            for part in parts:
                undecided = undecided & ~_condition(part, grid, undecided)
            return live & ~undecided
        case Comparison():
            return _comparison(node, grid, live)
        case _:
            assert_never(node)


def _comparison(node: Comparison, grid: _Grid, live: Tensor) -> Tensor:
    left = _operand(node.operands[0], grid, live)
    for sign, operand in zip(node.operators, node.operands[1:], strict=True):
        right = _operand(operand, grid, live)
        live = live & _COMPARE[sign](left, right)
        left = right
    return live


def _operand(node: Number | Condition, grid: _Grid, live: Tensor) -> Tensor:
    if isinstance(node, Condition):
        return _condition(node, grid, live)
    return _number(node, grid, live).cells


def _number(node: Number, grid: _Grid, live: Tensor) -> _Number:
    match node:
        case Integer(value):
            return _Number(torch.tensor(value), value)
        case Quantity(name):
            cells = grid.given[name]
            return _Number(cells, int(cells.abs().max()) if cells.numel() else 0)
        case Negative(operand):
            number = _number(operand, grid, live)
            return _Number(-number.cells, number.bound)
        case Absolute(operand):
            number = _number(operand, grid, live)
            return _Number(number.cells.abs(), number.bound)
        case Arithmetic():
            left, right = _number(node.left, grid, live), _number(node.right, grid, live)
            return _arithmetic(node, left, right, grid, live)
        case _:
            assert_never(node)


def _arithmetic(node: Arithmetic, left: _Number, right: _Number, grid: _Grid, live: Tensor) -> _Number:
    match node.operator:
        case "//":
            return _Number(left.cells // _divisor(node, right.cells, grid, live), left.bound)
        case "%":
            return _Number(left.cells % _divisor(node, right.cells, grid, live), right.bound)
        case "*":
            _check_bound(node, left.bound * right.bound, grid)
            return _Number(left.cells * right.cells, left.bound * right.bound)
    _check_bound(node, left.bound + right.bound, grid)
    cells = left.cells + right.cells if node.operator == "+" else left.cells - right.cells
    return _Number(cells, left.bound + right.bound)


def _divisor(node: Arithmetic, cells: Tensor, grid: _Grid, live: Tensor) -> Tensor:
    """The divisor, with 1 for a 0 where Python would not have divided.

    Raises:
        MaskExpressionError: it is 0 where Python would have.
    """
    is_zero = cells == 0
    refused = (is_zero & live).expand(grid.size).nonzero()
    if len(refused):
        query, key = refused[0].tolist()
        divisor = grid.said(node.right.span)
        raise MaskExpressionError(
            f"'{grid.said(node.span)}' divides by 0 at query {query} and key {key}: "
            f"put a condition before it, as in '{divisor} != 0 and ...'",
            *node.right.span,
        )
    return cells.masked_fill(is_zero, 1)


def _check_bound(node: Arithmetic, bound: int, grid: _Grid) -> None:
    if bound > LARGEST:
        raise MaskExpressionError(
            f"'{grid.said(node.span)}' could go beyond 2**62, further than numbers are worked with here", *node.span
        )
