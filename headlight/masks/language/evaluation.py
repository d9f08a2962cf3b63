"""The cells of an expression: every operation on all queries and keys at once, with Python's own meaning."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from headlight.masks.language.context import MaskContext
from headlight.masks.language.parsing import span
from headlight.masks.language.spelling import LARGEST, MaskExpressionError, shortened
from model.texts import texts_of

say = texts_of(__name__)

COMPARE: dict[type[ast.cmpop], Callable[[Tensor, Tensor], Tensor]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}
"""The function of each comparison operator."""


@dataclass(frozen=True, eq=False)
class _Value:
    """A number or a truth of each cell, (Tq or 1, Tk or 1) or a scalar.

    Attributes:
        cells: int64 or bool.
        bound: how far from zero a number can be at most.
    """

    cells: Tensor
    bound: int = 1


@dataclass(frozen=True, eq=False)
class _Grid:
    """The tensors that the expression is evaluated on; ``text`` is for what has to be said of a part of it."""

    text: str
    size: tuple[int, ...]
    given: Mapping[str, Tensor]

    def said(self, node: ast.expr) -> str:
        return shortened(" ".join(self.text[slice(*span(node))].split()))


def evaluate(condition: ast.expr, text: str, context: MaskContext) -> Tensor:
    """The cells, (Tq, Tk) bool, True = may attend.

    Args:
        condition: a checked tree.
        text: what it was read from.
        context: the facts about the queries and the keys.

    Raises:
        MaskExpressionError: a cell divides by zero, or a number can leave 64 bits.
    """
    queries, keys = torch.arange(context.n_queries)[:, None], torch.arange(context.n_keys)[None, :]
    return evaluate_at(condition, text, context, queries, keys).clone()


def evaluate_at(condition: ast.expr, text: str, context: MaskContext, queries: Tensor, keys: Tensor) -> Tensor:
    """The same at some cells alone: their queries and keys, int64 of shapes that broadcast to that of the result.

    Raises:
        MaskExpressionError: as ``evaluate``, at one of these cells.
    """
    given = {
        name: cells
        if cells.dim() == 0
        else cells.flatten()[keys if name == "k" or name.startswith("key_") else queries]
        for name, cells in facts_of(context).items()
    }
    size = tuple((queries + keys).shape)
    everywhere = torch.ones((), dtype=torch.bool)
    return _value(condition, _Grid(text, size, given), everywhere).cells.expand(size)


def facts_of(context: MaskContext) -> dict[str, Tensor]:
    """Everything that is given, by the names of a checked tree: (Tq, 1), (1, Tk) or a scalar."""
    return {
        "q": torch.arange(context.n_queries)[:, None],
        "k": torch.arange(context.n_keys)[None, :],
        "n_queries": torch.tensor(context.n_queries),
        "n_keys": torch.tensor(context.n_keys),
        "h": torch.tensor(context.head),
        "b": torch.tensor(context.sequence),
        "query_token": torch.tensor(context.query_tokens, dtype=torch.int64)[:, None],
        "key_token": torch.tensor(context.key_tokens, dtype=torch.int64)[None, :],
        "query_segment": torch.tensor(context.query_segments, dtype=torch.int64)[:, None],
        "key_segment": torch.tensor(context.key_segments, dtype=torch.int64)[None, :],
        "query_is_padding": torch.tensor(context.query_is_padding, dtype=torch.bool)[:, None],
        "key_is_padding": torch.tensor(context.key_is_padding, dtype=torch.bool)[None, :],
    }


def _value(node: ast.expr, grid: _Grid, live: Tensor) -> _Value:
    """The value of each cell; where ``live`` is False, Python would not have asked, and any answer will do."""
    match node:
        case ast.Constant(value=bool() | int() as value):
            return _Value(torch.tensor(value), int(value))
        case ast.Name(id=name):
            cells = grid.given[name]
            return _Value(cells, int(cells.abs().max()) if cells.dtype is torch.int64 and cells.numel() else 0)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _Value(~_value(operand, grid, live).cells)
        case ast.UnaryOp(operand=operand):
            number = _value(operand, grid, live)
            return _Value(-number.cells, number.bound)
        case ast.Call(args=[operand]):
            number = _value(operand, grid, live)
            return _Value(number.cells.abs(), number.bound)
        case ast.BinOp():
            return _arithmetic(node, grid, live)
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                live = live & _value(part, grid, live).cells
            return _Value(live)
        case ast.BoolOp(values=parts):
            undecided = live
            for part in parts:
                undecided = undecided & ~_value(part, grid, undecided).cells
            return _Value(live & ~undecided)
        case ast.Compare(left=left, ops=signs, comparators=others):
            one = _value(left, grid, live)
            for sign, operand in zip(signs, others, strict=True):
                other = _value(operand, grid, live)
                live = live & COMPARE[type(sign)](one.cells, other.cells)
                one = other
            return _Value(live)
    raise TypeError(f"a {type(node).__name__} is no part of a checked tree")


def _arithmetic(node: ast.BinOp, grid: _Grid, live: Tensor) -> _Value:
    left, right = _value(node.left, grid, live), _value(node.right, grid, live)
    match node.op:
        case ast.FloorDiv():
            return _Value(left.cells // _divisor(node, right.cells, grid, live), left.bound)
        case ast.Mod():
            return _Value(left.cells % _divisor(node, right.cells, grid, live), right.bound)
        case ast.Mult():
            bound, compute = left.bound * right.bound, operator.mul
        case _:
            bound = left.bound + right.bound
            compute = operator.add if isinstance(node.op, ast.Add) else operator.sub
    if bound > LARGEST:
        raise MaskExpressionError(say("too_large", part=grid.said(node)), *span(node))
    return _Value(compute(left.cells, right.cells), bound)


def _divisor(node: ast.BinOp, cells: Tensor, grid: _Grid, live: Tensor) -> Tensor:
    """The divisor, with 1 for a 0 where Python would not have divided.

    Raises:
        MaskExpressionError: it is 0 where Python would have.
    """
    is_zero = cells == 0
    refused = (is_zero & live).expand(grid.size).nonzero()
    if len(refused):
        query, key = (int(grid.given[name].expand(grid.size)[tuple(refused[0])]) for name in "qk")
        divisor = grid.said(node.right)
        raise MaskExpressionError(
            say("divides_by_zero", part=grid.said(node), query=query, key=key, divisor=divisor),
            *span(node.right),
        )
    return cells.masked_fill(is_zero, 1)
