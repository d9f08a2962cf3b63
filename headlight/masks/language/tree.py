"""The one tree of masks and changes of scores: what may stand in it, and of which kind each part is.

It is Python's own tree, of these nodes alone, each with its first and last column in the text that was read:

condition:  Constant True or False, Name same_token, Call of is_pad, Compare, BoolOp, UnaryOp of not
number:     Constant, any other Name or Call, UnaryOp of + and -, BinOp, IfExp
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from headlight.masks.language.spelling import DEEPEST, LARGEST, MaskExpressionError, shortened, too_deep
from model.texts import texts_of

say = texts_of(__name__)

Kind = Literal["condition", "number"]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that may stand in an expression.

    Attributes:
        result: the kind of the whole.
        parameters: those of FlexAttention's function, in order; the last two are the query and the key.
        names: the words for what is given.
        functions: each with the number of values that it takes.
        arithmetic: the operators between numbers.
        constants: the types of written numbers.
        called: the name of such an expression in a sentence.
    """

    result: Kind
    parameters: tuple[str, ...]
    names: frozenset[str]
    functions: Mapping[str, int]
    arithmetic: tuple[type[ast.operator], ...]
    constants: tuple[type, ...]
    called: str


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_POSITIONS = frozenset({"h", "q", "k", "n_queries", "n_keys"})

MASKS = Vocabulary(
    result="condition",
    parameters=("b", "h", "q", "k"),
    names=_POSITIONS | {"b", "same_token"},
    functions={"is_pad": 1, "segment": 1, "token": 1, "abs": 1},
    arithmetic=_ARITHMETIC,
    constants=(int,),
    called=say("mask"),
)
"""Those of a mask, a ``mask_mod`` of FlexAttention."""

SCORES = Vocabulary(
    result="number",
    parameters=("score", "b", "h", "q", "k"),
    names=_POSITIONS | {"score", "n_heads"},
    functions=dict.fromkeys(("abs", "tanh", "sigmoid", "exp", "log", "sqrt", "slope", "bucket", "causal_bucket"), 1)
    | dict.fromkeys(("min", "max", "bias"), 2),
    arithmetic=(*_ARITHMETIC, ast.Div, ast.Pow),
    constants=(int, float),
    called=say("change_of_scores"),
)
"""Those of a change of scores, a ``score_mod`` of FlexAttention."""

_ORDERS: Mapping[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.GtE: ">=", ast.Gt: ">"}
_SIDES = {"q": "query", "k": "key"}
_FACTS = {"is_pad": "is_padding", "token": "token", "segment": "segment"}
"""The functions that ask about a token, each with the last part of the name of its values."""


def check(tree: ast.expr, kind: Kind) -> None:
    """Check that a tree is of a kind, its parts of the kinds that they must be, and none too deep.

    Raises:
        MaskExpressionError: one is not; its place is that of the part.
    """
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise too_deep(*span(node))
        waiting += [(part, depth + 1) for part in parts_of(node)]
    _require(kind, tree)


def refusal(node: ast.expr, what: str) -> MaskExpressionError:
    """A part of a tree, quoted, and what is wrong with it."""
    return MaskExpressionError(f"'{quoted(node)}' {what}", *span(node))


def quoted(node: ast.expr) -> str:
    """A part of a tree as it is quoted in a sentence."""
    return shortened(ast.unparse(node))


def span(node: ast.expr) -> tuple[int, int]:
    """The place of a part of a tree in the text: its first column, and the column after its last."""
    return node.col_offset, node.end_col_offset or node.col_offset


def fact_in(node: ast.expr) -> str:
    """The name of the values that ``segment(k)`` or the like asks for, ``key_segment``; "" for any other part."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=side)]) if name in _FACTS:
            return f"{_SIDES[side]}_{_FACTS[name]}"
    return ""


def names_in(tree: ast.expr) -> Iterator[str]:
    """The names of everything given that a checked tree asks for, as often as it does."""
    if fact := fact_in(tree):
        yield fact
        return
    match tree:
        case ast.Name(id="same_token"):
            yield from ("query_token", "key_token")
        case ast.Name(id=name):
            yield name
    for part in parts_of(tree):
        yield from names_in(part)


def parts_of(node: ast.expr) -> Iterator[ast.expr]:
    """The values that a part of a tree is made of."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr) and not (isinstance(node, ast.Call) and part is node.func):
            yield part


def _require(kind: Kind, *parts: ast.expr) -> None:
    for part in parts:
        if _kind(part) != kind:
            raise _wrong_kind(part, kind)


def _kind(node: ast.expr) -> Kind:
    """The kind of a part, once its own parts are of the kinds that it needs."""
    match node:
        case ast.Constant(value=bool()) | ast.Name(id="same_token"):
            return "condition"
        case ast.Constant(value=int() | float() as value) if not abs(value) <= LARGEST:
            raise refusal(node, say("too_large"))
        case ast.Name(id=name) if name in _FACTS:
            raise refusal(node, say("no_token", name=name))
        case ast.Name(id="abs"):
            raise refusal(node, say("no_value"))
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FACTS:
            match arguments:
                case [ast.Name(id="q" | "k")]:
                    return "condition" if name == "is_pad" else "number"
            raise refusal(node, say("neither_query_nor_key", name=name))
        case ast.Call(func=ast.Name(id=("slope" | "bias") as name), args=[head, *others]):
            if not (isinstance(head, ast.Name) and head.id == "h"):
                raise refusal(node, say("no_head", example=f"{name}(h{', q - k' if others else ''})"))
            _require("number", *others)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _require("condition", operand)
            return "condition"
        case ast.BoolOp(values=parts):
            _require("condition", *parts)
            return "condition"
        case ast.Compare(left=left, comparators=others):
            _check_comparison(node, [left, *others])
            return "condition"
        case ast.IfExp(test=test, body=one, orelse=other):
            _require("condition", test)
            _require("number", one, other)
        case _:
            _require("number", *parts_of(node))
    return "number"


def _check_comparison(node: ast.Compare, operands: list[ast.expr]) -> None:
    """Numbers are compared with numbers; conditions with conditions, but none is smaller than another."""
    kinds = [_kind(operand) for operand in operands]
    if "number" in kinds and "condition" in kinds:
        raise _wrong_kind(operands[kinds.index("condition")], "number")
    for sign in node.ops:
        if "condition" in kinds and type(sign) in _ORDERS:
            raise refusal(node, say("compares_conditions", sign=_ORDERS[type(sign)]))


def _wrong_kind(node: ast.expr, needed: Kind) -> MaskExpressionError:
    return refusal(node, say("is_condition") if needed == "number" else say("is_number", part=quoted(node)))
