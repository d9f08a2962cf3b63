"""The result of a pasted function as an expression: its names are looked up, its functions are written out."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headlight.masks.language.pasted_text import PastedText
from headlight.masks.language.spelling import LONGEST, MaskExpressionError, meant_by, shortened
from model.texts import texts_of

say = texts_of(__name__)

_Made = TypeVar("_Made", bound=ast.expr)


@dataclass(frozen=True, eq=False)
class _Named:
    """A value that has a name, and the names that it may use: it is read when it is asked for."""

    value: ast.expr
    scope: Scope


@dataclass(frozen=True, eq=False)
class _Function:
    """A function, and the names that it may use."""

    parameters: tuple[str, ...]
    defaults: Mapping[str, ast.expr]
    body: Sequence[ast.stmt]
    scope: Scope


Scope = Mapping[str, "ast.expr | _Named | _Function"]


@dataclass(frozen=True, eq=False)
class Dialect:
    """The language of the functions that are pasted.

    Attributes:
        parameters: what they are given, in order; the last two are the query and the key.
        names: the words for what is given, each with that of this language.
        arithmetic: the signs between numbers.
        constants: the kinds of numbers.
        functions: this language's own, each with how many values it takes.
        chooses: whether a choice between two values is one of numbers; else it is one of conditions.
        called: what it is called in a sentence.
    """

    parameters: tuple[str, ...]
    names: Mapping[str, str]
    arithmetic: tuple[type[ast.operator], ...]
    constants: tuple[type, ...]
    functions: Mapping[str, int]
    chooses: bool
    called: str


_NAMES = {name: name for name in ("b", "h", "q", "k", "n_queries", "n_keys")} | {"q_idx": "q", "kv_idx": "k"}

MASKS = Dialect(
    parameters=("b", "h", "q", "k"),
    names=_NAMES | {"same_token": "same_token"},
    arithmetic=(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod),
    constants=(bool, int),
    functions={"is_pad": 1, "segment": 1, "token": 1, "abs": 1},
    chooses=False,
    called=say("mask"),
)
"""A ``mask_mod`` of FlexAttention."""

_SIGNS: dict[type[ast.operator], ast.boolop] = {ast.BitAnd: ast.And(), ast.BitOr: ast.Or()}
_JOINING: dict[str, ast.boolop] = {
    "and_masks": ast.And(),
    "or_masks": ast.Or(),
    "logical_and": ast.And(),
    "logical_or": ast.Or(),
}
_COMPARING: dict[str, ast.cmpop] = {
    **{"eq": ast.Eq(), "ne": ast.NotEq(), "logical_xor": ast.NotEq()},
    **{"le": ast.LtE(), "lt": ast.Lt(), "ge": ast.GtE(), "gt": ast.Gt()},
}
_OTHER_NAMES = {"absolute": "abs", "minimum": "min", "maximum": "max"}
_SAME = ("float", "bool", "to", "create_block_mask", "create_mask")
"""Functions that leave the mask what it is."""

_FACTS = {
    "is_pad": re.compile(r"^(is_)?pad(ding|ded)?$|^is_pad", re.I),
    "segment": re.compile(r"doc|seg|seq(uence)?_ids?$|sample", re.I),
    "token": re.compile(r"token|ids?$", re.I),
}
_ORDER = (ast.Lt, ast.LtE, ast.Eq, ast.NotEq, ast.GtE, ast.Gt)
_HINTS: dict[type[ast.AST], str] = {
    ast.Div: say("divide"),
    ast.Pow: say("power"),
    ast.In: say("in"),
    ast.NotIn: say("not_in"),
    ast.Is: say("is"),
    ast.If: say("if"),
    ast.For: say("for"),
}


class Reader:
    """Reads one text; the expression has the language's own words, and places in the text."""

    def __init__(self, text: PastedText, dialect: Dialect = MASKS) -> None:
        self._text = text
        self._dialect = dialect
        self._known: Scope = {name: ast.Name(own) for name, own in dialect.names.items()}
        self._n_parts = 0

    def read(self) -> ast.expr:
        """Read what the last function or expression of the text says of a query and a key.

        Raises:
            MaskExpressionError: it cannot be read, or asks for what is not known here.
        """
        statements = self._text.statements()
        returned = self._returned(statements, self._known)
        if returned is None:
            raise MaskExpressionError(say("empty"), 0, 1)
        return self._expression(returned.value, returned.scope)

    def _returned(self, statements: Sequence[ast.stmt], scope: Scope) -> _Named | None:
        """Find the value that statements return, or else the last that they name or say."""
        last: _Named | None = None
        for statement in statements:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return _Named(value, scope)
                case ast.FunctionDef(name=name, args=arguments, body=body):
                    scope = {**scope, name: _function(arguments, body, scope)}
                    last = _Named(ast.copy_location(ast.Name(name), statement), scope)
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    named = _Named(value, scope)
                    scope = {**scope, name: named}
                    last = named if last is None or not isinstance(value, ast.Constant) else last
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                    parts = {
                        one.id: _Named(ast.copy_location(ast.Subscript(value, ast.Constant(index)), value), scope)
                        for index, one in enumerate(names)
                        if isinstance(one, ast.Name)
                    }
                    scope = {**scope, **parts}
                case ast.Assign(targets=[ast.Attribute()]):
                    continue
                case ast.AugAssign(target=ast.Name(id=name) as before, op=sign, value=value):
                    changed = ast.copy_location(ast.BinOp(before, sign, value), statement)
                    last = _Named(changed, scope)
                    scope = {**scope, name: last}
                case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom() | ast.Pass():
                    continue
                case ast.Expr(value=value):
                    last = _Named(value, scope)
                case _:
                    unknown = say("unknown_statement", called=self._dialect.called)
                    raise self._refusal(statement, _HINTS.get(type(statement), unknown))
        return last

    def _expression(self, node: ast.expr, scope: Scope) -> ast.expr:
        self._n_parts += 1
        if self._n_parts > 2 * LONGEST:
            raise self._refusal(node, say("too_long"))
        match node:
            case ast.Constant(value=bool() | int() | float() as value) if type(value) in self._dialect.constants:
                return self._at(node, ast.Constant(value))
            case ast.Constant(value="inf" | "-inf"):
                raise self._refusal(node, say("infinite"))
            case ast.Name(id=name):
                return self._looked_up(node, name, scope)
            case ast.Lambda():
                return self._applied(node, _lambda(node, scope), (), scope)
            case ast.UnaryOp(op=sign, operand=operand):
                sign = ast.Not() if isinstance(sign, ast.Invert) else sign
                return self._at(node, ast.UnaryOp(sign, self._expression(operand, scope)))
            case ast.BinOp(left=left, op=sign, right=right):
                parts = [self._expression(left, scope), self._expression(right, scope)]
                return self._joined(node, sign, parts)
            case ast.BoolOp(op=word, values=values):
                return self._at(node, ast.BoolOp(word, [self._expression(value, scope) for value in values]))
            case ast.Compare(left=left, ops=signs, comparators=others):
                self._check_comparison(node)
                operands = [self._expression(operand, scope) for operand in (left, *others)]
                return self._at(node, ast.Compare(operands[0], signs, operands[1:]))
            case ast.IfExp(test=test, body=one, orelse=other):
                return self._either(node, test, one, other, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Subscript(value=ast.Call() | ast.Tuple() as whole, slice=ast.Constant(value=int() as index)):
                return self._part(whole, index, scope)
            case ast.Subscript():
                return self._fact(node, scope)
            case ast.Attribute():
                raise self._refusal(node, say("not_defined", part=self._said(node)))
        raise self._refusal(node, say("not_known_in", part=self._said(node), called=self._dialect.called))

    def _looked_up(self, node: ast.Name, name: str, scope: Scope) -> ast.expr:
        match scope.get(name):
            case ast.Name(id=known):
                return self._at(node, ast.Name(known))
            case _Named(value, own_scope):
                return self._expression(value, own_scope)
            case _Function() as function:
                return self._applied(node, function, (), scope)
        meant = next(iter(difflib.get_close_matches(name, scope, n=1)), None) or meant_by(name)
        known = say("meant", meant=meant) if meant else say("undefined", name=name)
        known = say("paste_definition") if "mask" in name else known
        raise self._refusal(node, say("unknown_name", name=shortened(name), known=known))

    def _applied(self, node: ast.expr, function: _Function, given: Sequence[ast.expr], scope: Scope) -> ast.expr:
        """Return a function's result as an expression, for the query and the key where no arguments are given."""
        returned = self._bound(node, function, given, scope)
        return self._expression(returned.value, returned.scope)

    def _part(self, whole: ast.Call | ast.Tuple, index: int, scope: Scope) -> ast.expr:
        """One of several values that are written side by side, or that a function returns."""
        named = _Named(whole, scope)
        if isinstance(whole, ast.Call) and isinstance(whole.func, ast.Name):
            function = scope.get(whole.func.id)
            if isinstance(function, _Function):
                named = self._bound(whole, function, whole.args, scope)
        if not isinstance(named.value, ast.Tuple) or index >= len(named.value.elts):
            raise self._refusal(whole, say("too_many_values", part=self._said(whole)))
        return self._expression(named.value.elts[index], named.scope)

    def _bound(self, node: ast.expr, function: _Function, given: Sequence[ast.expr], scope: Scope) -> _Named:
        """Find the value that a function returns, with the names that it may use."""
        names = function.parameters
        needed = [name for name in names if name not in function.defaults]
        own: dict[str, ast.expr | _Named | _Function] = {
            name: _Named(value, function.scope) for name, value in function.defaults.items()
        }
        if given:
            own |= {name: _Named(value, scope) for name, value in zip(names, given, strict=False)}
        elif len(needed) in (2, len(self._dialect.parameters)):
            positions = self._dialect.parameters[-len(needed) :]
            own |= {name: ast.Name(position) for name, position in zip(needed, positions, strict=True)}
        elif needed and "score" in needed[0]:
            raise self._refusal(node, say("changes_scores"))
        elif len(needed) == len(MASKS.parameters):
            raise self._refusal(node, say("masks"))
        elif len(needed) > len(MASKS.parameters):
            last = shortened(needed[-1])
            raise self._refusal(node, say("no_value", last=last))
        outside = {name: value for name, value in function.scope.items() if name not in names}
        returned = self._returned(function.body, {**outside, **own})
        if returned is None:
            raise self._refusal(node, say("returns_nothing"))
        return returned

    def _joined(self, node: ast.BinOp, sign: ast.operator, parts: list[ast.expr]) -> ast.expr:
        if type(sign) in _SIGNS:
            return self._at(node, ast.BoolOp(_SIGNS[type(sign)], parts))
        if isinstance(sign, ast.BitXor):
            return self._at(node, ast.Compare(parts[0], [ast.NotEq()], [parts[1]]))
        if not isinstance(sign, self._dialect.arithmetic):
            hint = _HINTS.get(type(sign), say("unknown_sign"))
            raise self._refusal(node, say("sign", part=self._said(node), hint=hint))
        return self._at(node, ast.BinOp(parts[0], sign, parts[1]))

    def _either(self, node: ast.expr, test: ast.expr, one: ast.expr, other: ast.expr, scope: Scope) -> ast.expr:
        """Python's ``one if test else other``, and ``torch.where``."""
        if self._dialect.chooses:
            asked, *ways = (self._expression(part, scope) for part in (test, one, other))
            return self._at(node, ast.IfExp(asked, *ways))
        asked, denied = (self._expression(test, scope) for _ in range(2))
        negation = self._at(test, ast.UnaryOp(ast.Not(), denied))
        ways = [
            self._at(node, ast.BoolOp(ast.And(), [asked, self._expression(one, scope)])),
            self._at(node, ast.BoolOp(ast.And(), [negation, self._expression(other, scope)])),
        ]
        return self._at(node, ast.BoolOp(ast.Or(), [*ways]))

    def _call(self, node: ast.Call, scope: Scope) -> ast.expr:
        match node.func:
            case ast.Name(id=name):
                arguments = node.args
            case ast.Attribute(value=ast.Name(id="torch" | "np" | "numpy" | "math"), attr=name):
                arguments = node.args
            case ast.Attribute(value=value, attr=name):
                arguments = [value, *node.args]
            case _:
                raise self._refusal(node, say("unknown_call", part=self._said(node)))
        match scope.get(name), name, arguments:
            case _Function() as function, _, _:
                return self._applied(node, function, arguments, scope)
            case _Named(ast.Lambda() as value, own_scope), _, _:
                return self._applied(node, _lambda(value, own_scope), arguments, scope)
            case _, "where", [test, one, other]:
                return self._either(node, test, one, other, scope)
            case _, _, [argument, *_] if name in _SAME:
                return self._expression(argument, scope)
        parts = [self._expression(argument, scope) for argument in arguments]
        own = _OTHER_NAMES.get(name, name)
        if self._dialect.functions.get(own) == len(parts):
            return self._at(node, ast.Call(ast.Name(own), parts, []))
        limits = {one.arg: self._expression(one.value, scope) for one in node.keywords}
        match name, parts:
            case "clamp" | "clip", [number, *ends]:
                low, high, *_ = [*ends, None, None]
                number = self._nearer(node, ast.Add(), number, limits.get("min", low))
                return self._nearer(node, ast.Sub(), number, limits.get("max", high))
            case "max" | "maximum" | "min" | "minimum", [one, other]:
                return self._nearer(node, ast.Add() if name.startswith("max") else ast.Sub(), one, other)
            case "logical_not" | "bitwise_not", [part]:
                return self._at(node, ast.UnaryOp(ast.Not(), part))
            case _, [_, _, *_] if name in _JOINING:
                return self._at(node, ast.BoolOp(_JOINING[name], parts))
            case _, [one, other] if name in _COMPARING:
                return self._at(node, ast.Compare(one, [_COMPARING[name]], [other]))
        close = difflib.get_close_matches(name, self._dialect.functions, n=1)
        meant = say("meant", meant=close[0]) if close else say("paste_definition")
        raise self._refusal(node, say("unknown_function", name=shortened(name), meant=meant))

    def _nearer(self, node: ast.expr, sign: ast.operator, one: ast.expr, other: ast.expr | None) -> ast.expr:
        """The greater of two whole numbers, or with - the smaller: (one + other + abs(one - other)) // 2."""
        if other is None:
            return one
        if "min" in self._dialect.functions:
            return self._at(
                node, ast.Call(ast.Name("max" if isinstance(sign, ast.Add) else "min"), [one, other], [])
            )
        apart = ast.Call(ast.Name("abs"), [ast.BinOp(one, ast.Sub(), other)], [])
        twice = ast.BinOp(ast.BinOp(one, ast.Add(), other), sign, apart)
        made = self._at(node, ast.BinOp(twice, ast.FloorDiv(), ast.Constant(2)))
        for part in ast.walk(made):
            if isinstance(part, ast.expr) and not hasattr(part, "col_offset"):
                part.col_offset, part.end_col_offset = made.col_offset, made.end_col_offset
        return made

    def _fact(self, node: ast.Subscript, scope: Scope) -> ast.expr:
        """``document_id[b, q_idx]`` and the like: what is known here of the token at a position."""
        indices: list[ast.expr] = []
        table: ast.expr = node
        while isinstance(table, ast.Subscript):
            parts = table.slice.elts if isinstance(table.slice, ast.Tuple) else [table.slice]
            indices, table = [*(self._expression(part, scope) for part in parts), *indices], table.value
        sides = [index.id for index in indices if isinstance(index, ast.Name) and index.id in "qk"]
        name = table.attr if isinstance(table, ast.Attribute) else getattr(table, "id", "")
        known = [fact for fact, spelling in _FACTS.items() if spelling.search(name)]
        if "slope" in self._dialect.functions and [ast.unparse(index) for index in indices] == ["h"]:
            return self._at(node, ast.Call(ast.Name("slope"), [ast.Name("h")], []))
        known = [fact for fact in known if fact in self._dialect.functions]
        if len(sides) == 1 and known and all(isinstance(index, ast.Name) for index in indices):
            return self._at(node, ast.Call(ast.Name(known[0]), [ast.Name(sides[0])], []))
        if self._dialect is not MASKS:
            raise self._refusal(node, say("not_in_scores", part=self._said(node)))
        raise self._refusal(node, say("unknown_table", part=self._said(node), known=_known_of(sides, name)))

    def _check_comparison(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        if any(isinstance(operand, ast.BinOp) and type(operand.op) in _SIGNS for operand in operands):
            start, end = self._text.place(node)
            raise self._refusal(node, say("precedence", example=_as_meant(self._text.text[start:end])))
        for sign in node.ops:
            if not isinstance(sign, _ORDER):
                raise self._refusal(node, _HINTS.get(type(sign), _HINTS[ast.Is]))

    def _said(self, node: ast.expr) -> str:
        return f"'{shortened(ast.unparse(node))}'"

    def _at(self, node: ast.expr, made: _Made) -> _Made:
        made.col_offset, made.end_col_offset = self._text.place(node)
        return made

    def _refusal(self, node: ast.stmt | ast.expr, what: str) -> MaskExpressionError:
        return MaskExpressionError(what, *self._text.place(node))


def _lambda(node: ast.Lambda, scope: Scope) -> _Function:
    return _function(node.args, [ast.copy_location(ast.Return(node.body), node.body)], scope)


def _function(arguments: ast.arguments, body: Sequence[ast.stmt], scope: Scope) -> _Function:
    names = tuple(one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
    placed = names[: len(names) - len(arguments.kwonlyargs)]
    defaults = dict(zip(placed[len(placed) - len(arguments.defaults) :], arguments.defaults, strict=True))
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[one.arg] = default
    return _Function(names, defaults, body, scope)


def _known_of(sides: Sequence[str], name: str) -> str:
    if re.search("^(seq|kv|q|context|actual|input)?_?len(gth)?s?$", name, re.I):
        return say("length")
    if re.search("mask|pad|valid|keep", name, re.I):
        return say("padding")
    if not sides:
        return say("number")
    return say("facts")


def _as_meant(comparison: str) -> str:
    """A comparison beside & or |, with brackets where they were meant."""
    try:
        read = ast.parse(f"({comparison.replace('&', ' and ').replace('|', ' or ')})", mode="eval").body
    except SyntaxError:
        return "(q_idx >= kv_idx) & (q_idx - kv_idx < 4)"
    return _bracketed(read)


def _bracketed(node: ast.expr) -> str:
    match node:
        case ast.BoolOp(op=word, values=values):
            return (" & " if isinstance(word, ast.And) else " | ").join(
                f"({_bracketed(value)})" for value in values
            )
    return ast.unparse(node)
