"""From text to a tree: Python's own parser, and then only what this language has."""

from __future__ import annotations

import ast

from model.mask_tools.language.spelling import DEEPEST, MaskExpressionError, check_spelling, shortened, too_deep
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

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.GtE: ">=",
    ast.Gt: ">",
}
_CONDITION_NAMES = ("same_token", "is_pad")
_SIDES = {"q": "query", "k": "key"}


def read(text: str) -> Condition:
    """The tree of an expression.

    Raises:
        MaskExpressionError: the text is no condition of this language.
    """
    plain = check_spelling(text)
    try:
        # The brackets let it begin with blanks.
        body = ast.parse(f"({plain})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise too_deep(0, len(text)) from None
    _check_depth(body)
    return _condition(body)


def _check_depth(body: ast.expr) -> None:
    waiting: list[tuple[ast.AST, int]] = [(body, 1)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, ast.expr):
            if depth > DEEPEST:
                raise too_deep(*_span(node))
            waiting += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


def _condition(node: ast.expr) -> Condition:
    span = _span(node)
    match node:
        case ast.Constant(value=bool(value)):
            return Truth(value, span)
        case ast.Name(id="same_token"):
            tokens = (Quantity("query_token", span), Quantity("key_token", span))
            return Comparison(tokens, ("==",), span)
        case ast.Call(func=ast.Name(id="is_pad")):
            return Fact(f"{_side(node)}_is_padding", span)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Negation(_condition(operand), span)
        case ast.BoolOp(op=word, values=parts):
            return Junction("and" if isinstance(word, ast.And) else "or", tuple(map(_condition, parts)), span)
        case ast.Compare():
            return _comparison(node)
    _number(node)
    raise _refusal(node, f"is a number, and a condition is needed here: compare it, as in '{_said(node)} > 0'")


def _comparison(node: ast.Compare) -> Comparison:
    operators = tuple(_COMPARISONS[type(operator)] for operator in node.ops)
    operands = [node.left, *node.comparators]
    if not all(map(_is_condition, operands)):
        return Comparison(tuple(map(_number, operands)), operators, _span(node))
    for operator in operators:
        if operator not in ("==", "!="):
            raise _refusal(node, f"compares conditions by '{operator}', but only numbers are smaller or larger")
    return Comparison(tuple(map(_condition, operands)), operators, _span(node))


def _number(node: ast.expr) -> Number:
    span = _span(node)
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return Integer(value, span)
        case ast.Name(id=("q" | "k" | "n_queries" | "n_keys") as name):
            return Quantity(name, span)
        case ast.Call(func=ast.Name(id=("token" | "segment") as name)):
            return Quantity(f"{_side(node)}_{name}", span)
        case ast.Call(func=ast.Name(id="abs"), args=[operand]):
            return Absolute(_number(operand), span)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Negative(_number(operand), span)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _number(operand)
        case ast.BinOp(left=left, op=operator, right=right):
            return Arithmetic(_ARITHMETIC[type(operator)], _number(left), _number(right), span)
    _check_name(node)
    raise _refusal(node, "is a condition (true or false), and a number is needed here")


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, bool)
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            return name in _CONDITION_NAMES
        case ast.UnaryOp(op=operator):
            return isinstance(operator, ast.Not)
    return isinstance(node, ast.BoolOp | ast.Compare)


def _side(call: ast.Call) -> str:
    """Whether ``is_pad(...)``, ``token(...)`` or ``segment(...)`` asks about the query or about the key."""
    match call.args:
        case [ast.Name(id=("q" | "k") as name)]:
            return _SIDES[name]
    function = ast.unparse(call.func)
    raise _refusal(call, f"asks about neither the query nor the key: write {function}(q) or {function}(k)")


def _check_name(node: ast.expr) -> None:
    """A function's name alone is neither a number nor a condition."""
    match node:
        case ast.Name(id=("is_pad" | "token" | "segment") as name):
            raise _refusal(node, f"has to know of which token: write {name}(q) or {name}(k)")
        case ast.Name(id="abs"):
            raise _refusal(node, "has to know of what: write abs(q - k), for instance")


def _said(node: ast.expr) -> str:
    return shortened(ast.unparse(node))


def _refusal(node: ast.expr, what: str) -> MaskExpressionError:
    return MaskExpressionError(f"'{_said(node)}' {what}", *_span(node))


def _span(node: ast.expr) -> Span:
    """Columns in the text: those of the parser count the bracket before it, and all that is left is ASCII."""
    return node.col_offset - 1, (node.end_col_offset or node.col_offset) - 1
