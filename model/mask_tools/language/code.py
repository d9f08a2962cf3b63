"""An expression as code over integer tensors or arrays: & | ~ for and, or, not, with the brackets they need."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

from model.mask_tools.language.parsing import names_in

_FIXED = frozenset({"n_queries", "n_keys"})
_SIGNS: dict[type[ast.boolop], ast.operator] = {ast.And: ast.BitAnd(), ast.Or: ast.BitOr()}


def code_of(condition: ast.expr, where: str) -> str:
    """The condition as one line of code, whose value broadcasts to (Tq, Tk).

    Args:
        condition: what to write: a checked tree.
        where: the name of the function that chooses between two values by a third, such as ``torch.where``.
    """
    code = _written(condition, where)
    if _is_fixed(condition):
        code = ast.BinOp(ast.parse("k >= 0", mode="eval").body, ast.BitAnd(), code)
    return ast.unparse(code)


def _is_fixed(node: ast.expr) -> bool:
    """Whether a value is the same for every cell, so that Python computes it and no tensor does."""
    return _FIXED.issuperset(names_in(node))


def _written(node: ast.expr, where: str) -> ast.expr:
    match node:
        case ast.Name(id=name) if name.startswith(("query_", "key_")):
            return ast.Subscript(node, ast.Name(name[0]))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            # In Python ~True is -2.
            return ast.UnaryOp(ast.Not() if _is_fixed(operand) else ast.Invert(), _written(operand, where))
        case ast.UnaryOp(op=sign, operand=operand):
            return ast.UnaryOp(sign, _written(operand, where))
        case ast.Call(func=function, args=[operand]):
            return ast.Call(function, [_written(operand, where)], [])
        case ast.BoolOp(op=word, values=parts):
            return joined([_written(part, where) for part in parts], _SIGNS[type(word)])
        case ast.Compare(left=left, ops=signs, comparators=others):
            pairs = pairwise(_bracketed(_written(operand, where)) for operand in (left, *others))
            links = [ast.Compare(one, [sign], [other]) for (one, other), sign in zip(pairs, signs, strict=True)]
            return joined(links, _SIGNS[ast.And])
        case ast.BinOp(left=left, op=sign, right=right):
            divides = isinstance(sign, ast.FloorDiv | ast.Mod)
            return ast.BinOp(_written(left, where), sign, (_divisor if divides else _written)(right, where))
    return node


def joined(parts: Sequence[ast.expr], sign: ast.operator) -> ast.expr:
    """Parts with one sign between them."""
    return reduce(lambda one, other: ast.BinOp(one, sign, other), map(_bracketed, parts)) if parts[1:] else parts[0]


def _bracketed(part: ast.expr) -> ast.expr:
    """& and | within another have brackets for the reader, where Python needs none."""
    match part:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return ast.Name(f"({ast.unparse(part)})")
    return part


def _divisor(node: ast.expr, where: str) -> ast.expr:
    """A number with 1 for 0: tensors divide everywhere, at the cells too that Python would not have come to."""
    code = _written(node, where)
    if isinstance(node, ast.Constant) and node.value != 0:
        return code
    if _is_fixed(node):
        return ast.BoolOp(ast.Or(), [code, ast.Constant(1)])
    is_zero = ast.Compare(code, [ast.Eq()], [ast.Constant(0)])
    return ast.Call(ast.Name(where), [is_zero, ast.Constant(1), code], [])
