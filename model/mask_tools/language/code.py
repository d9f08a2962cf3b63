"""An expression as code over integer tensors or arrays: & | ~ for and, or, not, with the brackets they need."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

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
    Truth,
)

_GIVEN = {
    "q": "q",
    "k": "k",
    "n_queries": "n_queries",
    "n_keys": "n_keys",
    "query_token": "query_token[q]",
    "key_token": "key_token[k]",
    "query_segment": "query_segment[q]",
    "key_segment": "key_segment[k]",
    "query_is_padding": "query_is_padding[q]",
    "key_is_padding": "key_is_padding[k]",
}
_FIXED = ("n_queries", "n_keys")


class _Binds(IntEnum):
    """How tightly Python binds what a piece of code is made of: the loosest first."""

    NOT = 0
    COMPARISON = 1
    OR = 2
    AND = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    ATOM = 7


@dataclass(frozen=True)
class _Code:
    """A piece of code; ``fixed`` = the same for every cell, so that Python computes it and no tensor does."""

    text: str
    binds: _Binds
    fixed: bool

    def within(self, binds: _Binds) -> str:
        """The text, in brackets if it binds less tightly than its surroundings ask for."""
        return self.text if self.binds >= binds else f"({self.text})"


def code_of(condition: Condition, where: str) -> str:
    """The condition as one line of code, whose value broadcasts to (Tq, Tk).

    Args:
        condition: what to write.
        where: the name of the function that chooses between two values by a third, such as ``torch.where``.
    """
    code = _condition(condition, where)
    return f"(k >= 0) & {code.within(_Binds.SUM)}" if code.fixed else code.text


def _condition(node: Condition, where: str) -> _Code:
    match node:
        case Truth(value):
            return _Code(str(value), _Binds.ATOM, fixed=True)
        case Fact(name):
            return _Code(_GIVEN[name], _Binds.ATOM, fixed=False)
        case Negation(operand):
            return _negation(_condition(operand, where))
        case Junction(word, parts):
            return _joined([_condition(part, where) for part in parts], "&" if word == "and" else "|")
        case Comparison(operands, signs):
            codes = [_operand(operand, where) for operand in operands]
            links = [
                _comparison(left, sign, right) for left, sign, right in zip(codes, signs, codes[1:], strict=False)
            ]
            return _joined(links, "&") if len(links) > 1 else links[0]
        case _:
            assert_never(node)


def _negation(operand: _Code) -> _Code:
    if operand.fixed:
        # In Python ~True is -2.
        return _Code(f"not {operand.within(_Binds.COMPARISON)}", _Binds.NOT, fixed=True)
    return _Code(f"~{operand.within(_Binds.SIGN)}", _Binds.SIGN, fixed=False)


def _joined(parts: list[_Code], sign: str) -> _Code:
    text = f" {sign} ".join(part.within(_Binds.SIGN) for part in parts)
    return _Code(text, _Binds.AND if sign == "&" else _Binds.OR, all(part.fixed for part in parts))


def _comparison(left: _Code, sign: str, right: _Code) -> _Code:
    text = f"{left.within(_Binds.SUM)} {sign} {right.within(_Binds.SUM)}"
    return _Code(text, _Binds.COMPARISON, left.fixed and right.fixed)


def _operand(node: Number | Condition, where: str) -> _Code:
    return _condition(node, where) if isinstance(node, Condition) else _number(node, where)


def _number(node: Number, where: str) -> _Code:
    match node:
        case Integer(value):
            return _Code(str(value), _Binds.ATOM, fixed=True)
        case Quantity(name):
            return _Code(_GIVEN[name], _Binds.ATOM, fixed=name in _FIXED)
        case Negative(operand):
            code = _number(operand, where)
            return _Code(f"-{code.within(_Binds.SIGN)}", _Binds.SIGN, code.fixed)
        case Absolute(operand):
            code = _number(operand, where)
            return _Code(f"abs({code.text})", _Binds.ATOM, code.fixed)
        case Arithmetic(sign, left, right):
            divides = sign in ("//", "%")
            return _arithmetic(_number(left, where), sign, (_divisor if divides else _number)(right, where))
        case _:
            assert_never(node)


def _arithmetic(left: _Code, sign: str, right: _Code) -> _Code:
    binds = _Binds.SUM if sign in "+-" else _Binds.PRODUCT
    tighter = _Binds(binds + 1)
    return _Code(f"{left.within(binds)} {sign} {right.within(tighter)}", binds, left.fixed and right.fixed)


def _divisor(node: Number, where: str) -> _Code:
    """A number with 1 for 0: tensors divide everywhere, at the cells too that Python would not have come to."""
    code = _number(node, where)
    if isinstance(node, Integer) and node.value != 0:
        return code
    if code.fixed:
        return _Code(f"({code.text} or 1)", _Binds.ATOM, fixed=True)
    return _Code(f"{where}({code.text} == 0, 1, {code.text})", _Binds.ATOM, fixed=False)
