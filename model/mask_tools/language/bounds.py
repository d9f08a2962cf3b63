"""An expression over whole blocks at once: between which numbers each part of it lies (interval arithmetic).

A condition lies between 0 and 1: it is certain in a block where its lower bound is 1, and impossible where its
upper bound is 0. Where a number may leave 64 bits or a divisor may be 0, nothing is said of a block.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import torch
from torch import Tensor

from model.mask_tools.language.context import MaskContext
from model.mask_tools.language.evaluation import facts_of
from model.mask_tools.language.expression import Expression
from model.mask_tools.language.spelling import LARGEST


@dataclass(frozen=True, eq=False)
class _Range:
    """The least and the greatest value in each block, (Tq blocks or 1, Tk blocks or 1) int64 or a scalar."""

    low: Tensor
    high: Tensor


class _UnboundedError(Exception):
    """A number may leave 64 bits."""


@dataclass(frozen=True, eq=False)
class _OverBlocks:
    """What is given of the blocks, and where nothing can be said of them."""

    given: Mapping[str, _Range]
    unclear: Tensor

    def value(self, node: ast.expr, live: Tensor) -> _Range:
        """The bounds of a part; where ``live`` is False, Python would not come to it in any cell of the block."""
        match node:
            case ast.Constant(value=bool() | int() as value):
                return _exactly(int(value))
            case ast.Name(id=name):
                return self.given[name]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                part = self.value(operand, live)
                return _Range(1 - part.high, 1 - part.low)
            case ast.UnaryOp(operand=operand):
                part = self.value(operand, live)
                return _Range(-part.high, -part.low)
            case ast.Call(args=[operand]):
                return _absolute(self.value(operand, live))
            case ast.BinOp():
                return self._arithmetic(node, live)
            case ast.BoolOp(op=word, values=values):
                return self._joined(values, live, is_and=isinstance(word, ast.And))
            case ast.Compare(left=left, ops=signs, comparators=others):
                parts = [self.value(operand, live) for operand in (left, *others)]
                links = [_compared(sign, *pair) for sign, pair in zip(signs, pairwise(parts), strict=True)]
                return reduce(_both, links)
        raise TypeError(f"a {type(node).__name__} is no part of a checked tree")

    def _joined(self, values: list[ast.expr], live: Tensor, *, is_and: bool) -> _Range:
        found: _Range | None = None
        for value in values:
            part = self.value(value, live)
            found = part if found is None else (_both if is_and else _either)(found, part)
            live = live & (part.high > 0 if is_and else part.low < 1)
        return found or _exactly(1)

    def _arithmetic(self, node: ast.BinOp, live: Tensor) -> _Range:
        left, right = self.value(node.left, live), self.value(node.right, live)
        match node.op:
            case ast.Add():
                _check_size(_farthest(left) + _farthest(right))
                return _Range(left.low + right.low, left.high + right.high)
            case ast.Sub():
                _check_size(_farthest(left) + _farthest(right))
                return _Range(left.low - right.high, left.high - right.low)
            case ast.Mult():
                _check_size(_farthest(left) * _farthest(right))
                return _around(operator.mul, left, right)
        has_zero = (right.low <= 0) & (right.high >= 0)
        self.unclear.logical_or_(has_zero & live)
        right = _Range(right.low.masked_fill(has_zero, 1), right.high.masked_fill(has_zero, 1))
        return (
            _around(operator.floordiv, left, right)
            if isinstance(node.op, ast.FloorDiv)
            else _remainder(left, right)
        )


def bounds_over_blocks(expression: Expression, context: MaskContext, size: int) -> tuple[Tensor, Tensor]:
    """Of each block, whether all of its cells are certainly allowed, and whether any may be.

    Args:
        expression: the mask.
        context: the facts about Tq queries and Tk keys.
        size: queries, and keys, of a block.

    Returns:
        Twice (ceil(Tq / size), ceil(Tk / size)) bool.
    """
    shape = (-(-context.n_queries // size), -(-context.n_keys // size))
    unclear = torch.zeros(shape, dtype=torch.bool)
    given = {name: _over_blocks(cells, size) for name, cells in facts_of(context).items()}
    try:
        found = _OverBlocks(given, unclear).value(expression.condition, torch.ones((), dtype=torch.bool))
    except _UnboundedError:
        return torch.zeros_like(unclear), torch.ones_like(unclear)
    certain, possible = found.low.expand(shape) > 0, found.high.expand(shape) > 0
    return certain & ~unclear, possible | unclear


def _over_blocks(cells: Tensor, size: int) -> _Range:
    """The bounds of a fact in each block, over whichever of its axes is longer than one."""
    low = high = cells.long()
    for axis in range(cells.dim()):
        if cells.shape[axis] > 1:
            lows, highs = torch.split(low, size, axis), torch.split(high, size, axis)
            low = torch.cat([part.amin(axis, keepdim=True) for part in lows], axis)
            high = torch.cat([part.amax(axis, keepdim=True) for part in highs], axis)
    return _Range(low, high)


def _exactly(value: int) -> _Range:
    number = torch.tensor(value)
    return _Range(number, number)


def _farthest(part: _Range) -> int:
    return max(int(part.low.abs().max()), int(part.high.abs().max()))


def _check_size(farthest: int) -> None:
    if farthest > LARGEST:
        raise _UnboundedError


def _around(compute: Callable[[Tensor, Tensor], Tensor], left: _Range, right: _Range) -> _Range:
    """What a product or a quotient lies between: it is least, and greatest, at ends of both."""
    corners = [compute(one, other) for one in (left.low, left.high) for other in (right.low, right.high)]
    return _Range(reduce(torch.minimum, corners), reduce(torch.maximum, corners))


def _absolute(part: _Range) -> _Range:
    greatest = torch.maximum(part.low.abs(), part.high.abs())
    has_zero = (part.low <= 0) & (part.high >= 0)
    return _Range(torch.minimum(part.low.abs(), part.high.abs()).masked_fill(has_zero, 0), greatest)


def _remainder(left: _Range, right: _Range) -> _Range:
    """Between 0 and the divisor, or exactly known where one divisor divides all numbers alike."""
    low, high = (right.low + 1).clamp(max=0), (right.high - 1).clamp(min=0)
    alike = (right.low == right.high) & (left.low // right.low == left.high // right.low)
    return _Range(
        torch.where(alike, left.low % right.low, low),
        torch.where(alike, left.high % right.low, high),
    )


def _both(one: _Range, other: _Range) -> _Range:
    return _Range(torch.minimum(one.low, other.low), torch.minimum(one.high, other.high))


def _either(one: _Range, other: _Range) -> _Range:
    return _Range(torch.maximum(one.low, other.low), torch.maximum(one.high, other.high))


def _compared(sign: ast.cmpop, left: _Range, right: _Range) -> _Range:
    match sign:
        case ast.Lt():
            return _truth(left.high < right.low, left.low < right.high)
        case ast.LtE():
            return _truth(left.high <= right.low, left.low <= right.high)
        case ast.Gt() | ast.GtE():
            return _compared(ast.Lt() if isinstance(sign, ast.Gt) else ast.LtE(), right, left)
    equal = (left.low == left.high) & (right.low == right.high) & (left.low == right.low)
    may_be_equal = (left.low <= right.high) & (right.low <= left.high)
    return _truth(equal, may_be_equal) if isinstance(sign, ast.Eq) else _truth(~may_be_equal, ~equal)


def _truth(certain: Tensor, possible: Tensor) -> _Range:
    return _Range(certain.long(), possible.long())
