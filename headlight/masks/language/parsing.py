"""From text to Python's own tree, which holds nothing but what this language has once it has been checked.

The tree that is read is made of these nodes, each with its columns in the text:

condition:  Constant True or False, Name query_is_padding or key_is_padding, Compare, BoolOp, UnaryOp Not
number:     Constant, Name q, k, n_queries, n_keys, h, b, query_token, ..., UnaryOp USub, Call of abs,
            BinOp of + - * // %
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from headlight.masks.language.spelling import DEEPEST, MaskExpressionError, check_spelling, shortened, too_deep
from model.texts import texts_of

say = texts_of(__name__)

Kind = Literal["condition", "number"]

_SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.GtE: ">=", ast.Gt: ">"}
_SIDES = {"q": "query", "k": "key"}
_FACTS = {"is_pad": "is_padding", "token": "token", "segment": "segment"}
"""The functions that ask about a token, each with what its value is called in a tree that was read."""


def read(text: str) -> ast.expr:
    """The checked tree of an expression.

    Raises:
        MaskExpressionError: the text is no condition of this language.
    """
    plain = check_spelling(text)
    try:
        # The brackets let it begin with blanks.
        body = ast.parse(f"({plain})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise too_deep(0, len(text)) from None
    _take_places(body)
    require("condition", body)
    named: ast.expr = _Facts().visit(body)
    return named


def require(kind: Kind, *parts: ast.expr) -> None:
    """Check trees of this language's own words, or of a change of scores, whose columns are those of the text.

    Raises:
        MaskExpressionError: one is not of this kind, or a part of it is not of the kind that is needed there.
    """
    for part in parts:
        if _kind(part) != kind:
            raise _wrong_kind(part, kind)


def refusal(node: ast.expr, what: str) -> MaskExpressionError:
    """A part of a tree, quoted, and what is wrong with it."""
    return MaskExpressionError(f"'{shortened(ast.unparse(node))}' {what}", *span(node))


def names_in(tree: ast.expr) -> Iterator[str]:
    """The names of everything given that a checked tree asks for, as often as it does."""
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id != "abs")


def span(node: ast.expr) -> tuple[int, int]:
    """Return the place of a part of a tree in the text: its first column, and the column after its last."""
    return node.col_offset, node.end_col_offset or node.col_offset


def _take_places(body: ast.expr) -> None:
    """Columns become those of the text: the parser counts the bracket before it, and all that is left is ASCII."""
    waiting: list[tuple[ast.AST, int]] = [(body, 1)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, ast.expr):
            node.col_offset, node.end_col_offset = (column - 1 for column in span(node))
            if depth > DEEPEST:
                raise too_deep(*span(node))
            waiting += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


def _kind(node: ast.expr) -> Kind:
    """Return the kind of a part, once its own parts are of the kinds that it needs."""
    match node:
        case ast.Name(id=name) if name in _FACTS:
            raise refusal(node, say("no_token", name=name))
        case ast.Name(id="abs"):
            raise refusal(node, say("no_value"))
        case ast.Constant(value=bool()) | ast.Name(id="same_token"):
            return "condition"
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FACTS:
            match arguments:
                case [ast.Name(id="q" | "k")]:
                    return "condition" if name == "is_pad" else "number"
            raise refusal(node, say("neither_query_nor_key", name=name))
        case ast.Call(args=parts):
            require("number", *parts)
        case ast.BinOp(left=left, right=right):
            require("number", left, right)
        case ast.UnaryOp(op=sign, operand=operand) if not isinstance(sign, ast.Not):
            require("number", operand)
        case ast.IfExp(test=test, body=one, orelse=other):
            require("condition", test)
            require("number", one, other)
        case ast.UnaryOp(operand=operand):
            require("condition", operand)
            return "condition"
        case ast.BoolOp(values=parts):
            require("condition", *parts)
            return "condition"
        case ast.Compare(left=left, comparators=others):
            _check_comparison(node, [left, *others])
            return "condition"
    return "number"


def _check_comparison(node: ast.Compare, operands: list[ast.expr]) -> None:
    """Numbers are compared with numbers; conditions with conditions, but none is smaller than another."""
    kinds = [_kind(operand) for operand in operands]
    if "number" in kinds and "condition" in kinds:
        raise _wrong_kind(operands[kinds.index("condition")], "number")
    for sign in node.ops:
        if "condition" in kinds and type(sign) in _SIGNS:
            what = say("compares_conditions", sign=_SIGNS[type(sign)])
            raise refusal(node, what)


def _wrong_kind(node: ast.expr, needed: Kind) -> MaskExpressionError:
    if needed == "number":
        return refusal(node, say("is_condition"))
    said = shortened(ast.unparse(node))
    return refusal(node, say("is_number", part=said))


class _Facts(ast.NodeTransformer):
    """Puts the names of facts, such as ``key_segment``, in the place of what asks for them, and +k as k."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != "same_token":
            return node
        query, key = (ast.copy_location(ast.Name(f"{side}_token"), node) for side in _SIDES.values())
        return ast.copy_location(ast.Compare(query, [ast.Eq()], [key]), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=side)]) if name in _FACTS:
                return ast.copy_location(ast.Name(f"{_SIDES[side]}_{_FACTS[name]}"), node)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return node.operand if isinstance(node.op, ast.UAdd) else node
