"""From text to Python's own tree, which holds nothing but what this language has once it has been checked.

A checked tree is made of these nodes, each with its columns in the text:

condition:  Constant True or False, Name query_is_padding or key_is_padding, Compare, BoolOp, UnaryOp Not
number:     Constant, Name q, k, n_queries, n_keys, h, b, query_token, ..., UnaryOp USub, Call of abs,
            BinOp of + - * // %
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from model.mask_tools.language.spelling import DEEPEST, MaskExpressionError, check_spelling, shortened, too_deep

_SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.GtE: ">=", ast.Gt: ">"}
_CONDITION_NAMES = ("same_token", "is_pad")
_SIDES = {"q": "query", "k": "key"}


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
    return _condition(body)


def check_condition(tree: ast.expr) -> None:
    """Check a tree of this language's own words, whose columns are those of the text; it is changed by that.

    Raises:
        MaskExpressionError: it is no condition of this language.
    """
    _condition(tree)


def names_in(tree: ast.expr) -> Iterator[str]:
    """The names of everything given that a checked tree asks for, as often as it does."""
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id != "abs")


def span(node: ast.expr) -> tuple[int, int]:
    """Where a part of a tree stands in the text: its first column, and the column after its last."""
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


def _condition(node: ast.expr) -> ast.expr:
    match node:
        case ast.Constant(value=bool()):
            return node
        case ast.Name(id="same_token"):
            tokens = [ast.copy_location(ast.Name(f"{side}_token"), node) for side in _SIDES.values()]
            return ast.copy_location(ast.Compare(tokens[0], [ast.Eq()], [tokens[1]]), node)
        case ast.Call(func=ast.Name(id="is_pad")):
            return _of_a_side(node, "is_padding")
        case ast.UnaryOp(op=ast.Not()):
            node.operand = _condition(node.operand)
        case ast.BoolOp():
            node.values = [_condition(part) for part in node.values]
        case ast.Compare():
            operands = [node.left, *node.comparators]
            kind = _condition if all(map(_is_condition, operands)) else _number
            _check_signs(node, compares_conditions=kind is _condition)
            node.left, *node.comparators = map(kind, operands)
        case _:
            what = f"is a number, and a condition is needed here: compare it, as in '{_said(node)} > 0'"
            refusal = _refusal(node, what)
            _number(node)
            raise refusal
    return node


def _number(node: ast.expr) -> ast.expr:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return node
        case ast.Name(id="q" | "k" | "n_queries" | "n_keys" | "h" | "b"):
            return node
        case ast.Call(func=ast.Name(id=("token" | "segment") as name)):
            return _of_a_side(node, name)
        case ast.Call(func=ast.Name(id="abs"), args=[operand]):
            node.args = [_number(operand)]
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _number(operand)
        case ast.UnaryOp(op=ast.USub()):
            node.operand = _number(node.operand)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            node.left, node.right = _number(node.left), _number(node.right)
        case ast.Name(id=("is_pad" | "token" | "segment") as name):
            raise _refusal(node, f"has to know of which token: write {name}(q) or {name}(k)")
        case ast.Name(id="abs"):
            raise _refusal(node, "has to know of what: write abs(q - k), for instance")
        case _:
            raise _refusal(node, "is a condition (true or false), and a number is needed here")
    return node


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, bool)
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            return name in _CONDITION_NAMES
        case ast.UnaryOp(op=operator):
            return isinstance(operator, ast.Not)
    return isinstance(node, ast.BoolOp | ast.Compare)


def _check_signs(node: ast.Compare, compares_conditions: bool) -> None:
    for sign in (_SIGNS[type(sign)] for sign in node.ops if type(sign) in _SIGNS and compares_conditions):
        raise _refusal(node, f"compares conditions by '{sign}', but only numbers are smaller or larger")


def _of_a_side(call: ast.Call, what: str) -> ast.expr:
    """``is_pad(...)``, ``token(...)`` or ``segment(...)``, as the name of that fact of the query or of the key."""
    match call.args:
        case [ast.Name(id=("q" | "k") as name)]:
            return ast.copy_location(ast.Name(f"{_SIDES[name]}_{what}"), call)
    function = ast.unparse(call.func)
    raise _refusal(call, f"asks about neither the query nor the key: write {function}(q) or {function}(k)")


def _said(node: ast.expr) -> str:
    return shortened(ast.unparse(node))


def _refusal(node: ast.expr, what: str) -> MaskExpressionError:
    return MaskExpressionError(f"'{_said(node)}' {what}", *span(node))
