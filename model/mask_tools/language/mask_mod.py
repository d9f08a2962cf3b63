"""FlexAttention's way to write a mask, as an expression of this language.

A ``mask_mod`` says ``q_idx`` and ``kv_idx`` for the positions, and ``&``, ``|`` and ``~`` for and, or and not.
"""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from model.mask_tools.language.spelling import LONGEST, MaskExpressionError

_SIGNS_OF_IT = re.compile(r"[&|~]|\b(q_idx|kv_idx|return|lambda|def)\b")
_NAMES = {"q_idx": "q", "kv_idx": "k"}
_CONNECTIVES: dict[type[ast.operator], type[ast.boolop]] = {ast.BitAnd: ast.And, ast.BitOr: ast.Or}


def from_mask_mod(text: str) -> str:
    """The expression that the body of a ``mask_mod`` is, or a whole one that only returns something.

    A text without anything of FlexAttention's comes back as it is, and so does one that Python cannot read: this
    language says where it is wrong.

    Raises:
        MaskExpressionError: it asks for the head or the batch item, or a comparison beside ``&`` or ``|`` has no
            brackets, so that Python reads something else than was meant.
    """
    if not _SIGNS_OF_IT.search(text) or len(text) > LONGEST:
        return text
    body = _body(text.strip())
    if body is None:
        return text
    _refuse_heads(body, text)
    return ast.unparse(_Rewriter(text).visit(body))


def _body(text: str) -> ast.expr | None:
    """What is returned; None where Python cannot read it, or more is done than to return."""
    try:
        (statement,) = ast.parse(re.sub(r"^return\b", "", text).strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match statement:
        case ast.Expr(value=ast.Lambda(body=body)):
            return body
        case ast.Expr(value=value):
            return value
        case ast.Assign(value=ast.Lambda(body=body)):
            return body
        case ast.FunctionDef(body=[ast.Return(value=ast.expr() as value)]):
            return value
    return None


def _refuse_heads(body: ast.expr, text: str) -> None:
    names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
    for name, what in (("h", "the head"), ("b", "the sequence of the batch")):
        if name in names:
            found = re.search(rf"\b{name}\b", text)
            start = found.start() if found else 0
            raise MaskExpressionError(
                f"'{name}', {what}, is not known here: write the mask of one head, and paint it for that head",
                start,
                start + 1,
            )


class _Rewriter(ast.NodeTransformer):
    """Puts this language's words in the place of FlexAttention's."""

    def __init__(self, text: str) -> None:
        self._text = text

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(ast.Name(_NAMES.get(node.id, node.id), node.ctx), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        parts = [self.visit(node.left), self.visit(node.right)]
        for sign, connective in _CONNECTIVES.items():
            if isinstance(node.op, sign):
                return ast.copy_location(ast.BoolOp(connective(), parts), node)
        return ast.copy_location(ast.BinOp(parts[0], node.op, parts[1]), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operator = ast.Not() if isinstance(node.op, ast.Invert) else node.op
        return ast.copy_location(ast.UnaryOp(operator, self.visit(node.operand)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if any(_is_bitwise(operand) for operand in (node.left, *node.comparators)):
            raise MaskExpressionError(
                "& and | bind more tightly than comparisons: put each comparison in brackets, as in "
                "(q_idx >= kv_idx) & (q_idx - kv_idx < 4)",
                0,
                len(self._text),
            )
        return self.generic_visit(node)  # type: ignore[return-value]  # it is the comparison itself


def _is_bitwise(node: ast.expr) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and type(node.op) in _CONNECTIVES
