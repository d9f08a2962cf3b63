"""An expression as code over tensors or arrays: & | ~ for and, or, not, with the brackets they need."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise

from headlight.masks.language.parsing import names_in

_FIXED = frozenset({"n_queries", "n_keys", "n_heads"})
_SIGNS: dict[type[ast.boolop], ast.operator] = {ast.And: ast.BitAnd(), ast.Or: ast.BitOr()}


def code_of(condition: ast.expr) -> str:
    """A condition, as a checked tree, as one line of PyTorch, whose value broadcasts to (Tq, Tk)."""
    code = Writer("torch").written(condition)
    if _is_fixed(condition):
        code = ast.BinOp(ast.parse("k >= 0", mode="eval").body, ast.BitAnd(), code)
    return ast.unparse(code)


@dataclass(frozen=True)
class Writer:
    """Writes a tree.

    Attributes:
        library: ``torch`` or ``np``.
        sizes: names that are written as numbers.
    """

    library: str
    sizes: Mapping[str, int] = field(default_factory=dict)

    def written(self, node: ast.expr) -> ast.expr:
        """The code of a checked tree, as a tree that ``ast.unparse`` takes."""
        match node:
            case ast.Name(id=name) if name in self.sizes:
                return ast.Constant(self.sizes[name])
            case ast.Name(id=name) if name.startswith(("query_", "key_")):
                return ast.Subscript(node, ast.Name(name[0]))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                # In Python ~True is -2.
                return ast.UnaryOp(ast.Not() if _is_fixed(operand) else ast.Invert(), self.written(operand))
            case ast.UnaryOp(op=sign, operand=operand):
                return ast.UnaryOp(sign, self.written(operand))
            case ast.BoolOp(op=word, values=parts):
                return _joined([self.written(part) for part in parts], _SIGNS[type(word)])
            case ast.Compare(left=left, ops=signs, comparators=others):
                pairs = pairwise(_bracketed(self.written(operand)) for operand in (left, *others))
                links = [ast.Compare(one, [sign], [other]) for (one, other), sign in zip(pairs, signs, strict=True)]
                return _joined(links, ast.BitAnd())
            case ast.BinOp(left=left, op=ast.Pow() as sign, right=right):
                # Whole numbers have no negative powers.
                base = ast.BinOp(self.written(left), ast.Mult(), ast.Constant(1.0))
                return ast.BinOp(base, sign, self.written(right))
            case ast.BinOp(left=left, op=sign, right=right):
                divides = isinstance(sign, ast.FloorDiv | ast.Mod)
                return ast.BinOp(self.written(left), sign, (self._divisor if divides else self.written)(right))
            case ast.IfExp(test=test, body=one, orelse=other):
                return self.call("where", [self.written(part) for part in (test, one, other)])
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.call(name, [self.written(argument) for argument in arguments])
        return node

    def call(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        """A function of what was written."""
        return ast.Call(ast.Name(name if name == "abs" else f"{self.library}.{name}"), arguments, [])

    def _divisor(self, node: ast.expr) -> ast.expr:
        """A number with 1 for 0: tensors divide everywhere, at the cells too that Python would not have come to."""
        code = self.written(node)
        if isinstance(node, ast.Constant) and node.value != 0:
            return code
        if _is_fixed(node):
            return ast.BoolOp(ast.Or(), [code, ast.Constant(1)])
        return self.call("where", [ast.Compare(code, [ast.Eq()], [ast.Constant(0)]), ast.Constant(1), code])


def _is_fixed(node: ast.expr) -> bool:
    """True if a value is the same for every cell, so that Python computes it and no tensor does."""
    return _FIXED.issuperset(names_in(node))


def _joined(parts: Sequence[ast.expr], sign: ast.operator) -> ast.expr:
    """Parts with one sign between them."""
    return reduce(lambda one, other: ast.BinOp(one, sign, other), map(_bracketed, parts)) if parts[1:] else parts[0]


def _bracketed(part: ast.expr) -> ast.expr:
    """& and | within another have brackets for the reader, where Python needs none."""
    match part:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return ast.Name(f"({ast.unparse(part)})")
    return part
