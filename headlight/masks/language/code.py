"""A tree as code over tensors or arrays: & | ~ for and, or, not, with the brackets they need."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise

from headlight.masks.language.scores import N_BUCKETS
from headlight.masks.language.tree import fact_in

_FIXED = frozenset({"n_queries", "n_keys", "n_heads", "abs"})
_JOINS: Mapping[type[ast.boolop], ast.operator] = {ast.And: ast.BitAnd(), ast.Or: ast.BitOr()}
_BUCKETS = ("bucket", "causal_bucket")


def mask_code(tree: ast.expr) -> str:
    """A checked condition as one line of PyTorch, whose value broadcasts to (Tq, Tk)."""
    code = Writer("torch").translate(tree)
    if _is_fixed(tree):
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

    def translate(self, node: ast.expr) -> ast.expr:
        """The code of a checked tree, as a tree that ``ast.unparse`` takes."""
        if fact := fact_in(node):
            return _at_position(fact)
        match node:
            case ast.Name(id="same_token"):
                return ast.Compare(_at_position("query_token"), [ast.Eq()], [_at_position("key_token")])
            case ast.Name(id=name) if name in self.sizes:
                return ast.Constant(self.sizes[name])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                # In Python ~True is -2.
                return ast.UnaryOp(ast.Not() if _is_fixed(operand) else ast.Invert(), self.translate(operand))
            case ast.UnaryOp(op=sign, operand=operand):
                return ast.UnaryOp(sign, self.translate(operand))
            case ast.BoolOp(op=word, values=parts):
                return _joined([self.translate(part) for part in parts], _JOINS[type(word)])
            case ast.Compare(left=left, ops=signs, comparators=others):
                pairs = pairwise(_bracketed(self.translate(operand)) for operand in (left, *others))
                links = [ast.Compare(one, [sign], [other]) for (one, other), sign in zip(pairs, signs, strict=True)]
                return _joined(links, ast.BitAnd())
            case ast.BinOp(left=left, op=ast.Pow() as sign, right=right):
                # Whole numbers have no negative powers.
                base = ast.BinOp(self.translate(left), ast.Mult(), ast.Constant(1.0))
                return ast.BinOp(base, sign, self.translate(right))
            case ast.BinOp(left=left, op=sign, right=right):
                divides = isinstance(sign, ast.FloorDiv | ast.Mod)
                return ast.BinOp(self.translate(left), sign, (self._divisor if divides else self.translate)(right))
            case ast.IfExp(test=test, body=one, orelse=other):
                return self._call("where", *(self._tensor(self.translate(part)) for part in (test, one, other)))
            case ast.Call(func=ast.Name(id="abs"), args=[number]):
                return ast.Call(ast.Name("abs"), [self.translate(number)], [])
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._function(name, [self._tensor(self.translate(argument)) for argument in arguments])
        return node

    def _call(self, name: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(f"{self.library}.{name}"), [*arguments], [])

    def _divisor(self, node: ast.expr) -> ast.expr:
        """A number with 1 for 0: tensors divide everywhere, at the cells too that Python would not have come to."""
        code = self.translate(node)
        if isinstance(node, ast.Constant) and node.value != 0:
            return code
        if _is_fixed(node):
            return ast.BoolOp(ast.Or(), [code, ast.Constant(1)])
        return self._call("where", ast.Compare(code, [ast.Eq()], [ast.Constant(0)]), ast.Constant(1), code)

    def _function(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        match name, arguments:
            case "slope", [head]:
                return ast.Subscript(ast.Name("slope"), head)
            case "bias", [head, place]:
                return ast.Subscript(ast.Name("bias"), ast.Tuple([head, self._index(place)]))
            case (("min" | "max"), _):
                return self._call(f"{name}imum", *arguments)
            case "sigmoid", [one] if self.library == "np":
                return ast.parse(f"1 / (1 + np.exp(-({ast.unparse(one)})))", mode="eval").body
            case (("bucket" | "causal_bucket"), _):
                return ast.Call(ast.Name(name), arguments, [])
        return self._call(name, *arguments)

    def _index(self, place: ast.expr) -> ast.expr:
        """A number as the number of a bucket."""
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Name) and place.func.id in _BUCKETS:
            return place
        within = self._call("clip", place, ast.Constant(0), ast.Constant(N_BUCKETS - 1))
        whole, arguments = ("long", []) if self.library == "torch" else ("astype", [ast.Name("int")])
        return ast.Call(ast.Attribute(within, whole), [*arguments], [])

    def _tensor(self, code: ast.expr) -> ast.expr:
        """A value as PyTorch's functions take it: numbers alone as a tensor."""
        asked = any(isinstance(part, ast.Name) and part.id != "abs" for part in ast.walk(code))
        return code if asked or self.library == "np" else self._call("tensor", code)


def _at_position(fact: str) -> ast.expr:
    """``key_segment[k]``."""
    return ast.Subscript(ast.Name(fact), ast.Name(fact[0]))


def _is_fixed(node: ast.expr) -> bool:
    """True if a value is the same for every cell, so that Python computes it and no tensor does."""
    return _FIXED.issuperset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _joined(parts: Sequence[ast.expr], sign: ast.operator) -> ast.expr:
    """Parts with one sign between them."""
    return reduce(lambda one, other: ast.BinOp(one, sign, other), map(_bracketed, parts)) if parts[1:] else parts[0]


def _bracketed(part: ast.expr) -> ast.expr:
    """& and | within another have brackets for the reader, where Python needs none."""
    match part:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return ast.Name(f"({ast.unparse(part)})")
    return part
