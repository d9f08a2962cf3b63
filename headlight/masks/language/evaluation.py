"""The values of a tree: every operation on all queries and keys at once, with Python's own meaning."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from math import prod

import torch
from torch import Tensor

from headlight.masks.language.scores import call
from headlight.masks.language.spelling import LARGEST, MaskExpressionError
from headlight.masks.language.tree import fact_in, names_in, parts_of, quoted, refusal, span
from model.texts import texts_of

say = texts_of(__name__)

Given = Mapping[str, Tensor]

_OPERATORS: Mapping[type[ast.AST], Callable[..., Tensor]] = {
    ast.Not: operator.invert,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}


def evaluate(tree: ast.expr, facts: Given, live: Tensor) -> Tensor:
    """The value of each cell: bool for a condition, else a number of the type of those given.

    Args:
        tree: a checked tree.
        facts: the values of its names, of shapes that broadcast.
        live: False = Python would not have asked there, and any answer will do.

    Raises:
        MaskExpressionError: an integer is divided by zero where Python would have divided.
    """
    if fact := fact_in(tree):
        return facts[fact]
    match tree:
        case ast.Constant(value=bool() as truth):
            return live.new_tensor(truth)
        case ast.Constant(value=int() | float() as number):
            return facts["q"].new_tensor(number)
        case ast.Name(id="same_token"):
            return facts["query_token"] == facts["key_token"]
        case ast.Name(id=name):
            return facts[name]
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return call(name, [evaluate(argument, facts, live) for argument in arguments])
        case ast.UnaryOp(op=sign, operand=operand):
            return _OPERATORS[type(sign)](evaluate(operand, facts, live))
        case ast.BinOp(left=left, op=sign, right=right):
            one, other = evaluate(left, facts, live), evaluate(right, facts, live)
            if isinstance(sign, ast.FloorDiv | ast.Mod) and not other.is_floating_point():
                other = _divisor(tree, other, facts, live)
            return _OPERATORS[type(sign)](one, other)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, one, other = (evaluate(part, facts, live) for part in (test, body, orelse))
            return torch.where(asked, one, other)
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                live = live & evaluate(part, facts, live)
            return live
        case ast.BoolOp(values=parts):
            undecided = live
            for part in parts:
                undecided = undecided & ~evaluate(part, facts, undecided)
            return live & ~undecided
        case ast.Compare(left=left, ops=signs, comparators=others):
            one = evaluate(left, facts, live)
            for comparison, operand in zip(signs, others, strict=True):
                other = evaluate(operand, facts, live)
                live = live & _OPERATORS[type(comparison)](one, other)
                one = other
            return live
    raise TypeError(f"a {type(tree).__name__} is no part of a checked tree")


def check_64_bits(tree: ast.expr, facts: Given) -> int:
    """Return how far from zero a number, or those in a condition, can be at most.

    Raises:
        MaskExpressionError: one could leave 64 bits.
    """
    if fact_in(tree) or isinstance(tree, ast.Name):
        cells = [facts[name] for name in names_in(tree)]
        return max((int(one.long().abs().max()) for one in cells if one.numel()), default=0)
    bounds = [check_64_bits(part, facts) for part in parts_of(tree)]
    match tree:
        case ast.Constant(value=int() as number):
            return number
        case ast.BinOp(op=ast.FloorDiv()):
            return bounds[0]
        case ast.BinOp(op=ast.Mod()):
            return bounds[1]
        case ast.BinOp(op=sign):
            bound = prod(bounds) if isinstance(sign, ast.Mult) else sum(bounds)
            if bound > LARGEST:
                raise refusal(tree, say("too_large"))
            return bound
    return max(bounds)


def _divisor(node: ast.BinOp, cells: Tensor, facts: Given, live: Tensor) -> Tensor:
    """The divisor, with 1 for a 0 where Python would not have divided."""
    size = (facts["q"] + facts["k"]).shape
    is_zero = cells == 0
    refused = (is_zero & live).expand(size).nonzero()
    if len(refused):
        query, key = (int(facts[name].expand(size)[tuple(refused[0])]) for name in "qk")
        what = say("divides_by_zero", query=query, key=key, divisor=quoted(node.right))
        raise MaskExpressionError(f"'{quoted(node)}' {what}", *span(node.right))
    return cells.masked_fill(is_zero, 1)
