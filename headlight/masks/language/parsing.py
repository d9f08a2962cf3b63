"""From text to the tree: the one walk over what a person writes or pastes.

What is read is a condition or a change of scores in this language's words, the body of a function of FlexAttention,
or whole functions of one with constants, names and functions of their own. Names are looked up and functions are
written out, so that nothing but this language's words is left.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headlight.masks.language.pasted_text import PastedText
from headlight.masks.language.spelling import LONGEST, MaskExpressionError, meant_by, shortened, too_deep
from headlight.masks.language.tree import MASKS, Vocabulary, check, quoted
from model.texts import texts_of

say = texts_of(__name__)

_MOST_PARTS = 2 * LONGEST
"""The most parts of a tree: substituted names can double it with every line."""

_FLEX_ATTENTION = re.compile(r"[&|~^#\[.]|\b(q_idx|kv_idx|return|lambda|def|and_masks|or_masks)\b")
_POSITIONS = {"q_idx": "q", "kv_idx": "k"}
_OTHER_NAMES = {"absolute": "abs", "minimum": "min", "maximum": "max"}
_UNCHANGED = ("float", "bool", "to", "create_block_mask", "create_mask")
"""Functions that leave the mask what it is."""

_SIGNS: Mapping[type[ast.unaryop], ast.unaryop] = {ast.Invert: ast.Not()}
_JOINED: Mapping[type[ast.operator], ast.boolop] = {ast.BitAnd: ast.And(), ast.BitOr: ast.Or()}
_JOINS: Mapping[str, ast.boolop] = {
    "and_masks": ast.And(),
    "or_masks": ast.Or(),
    "logical_and": ast.And(),
    "logical_or": ast.Or(),
}
_COMPARISONS: Mapping[str, ast.cmpop] = {
    **{"eq": ast.Eq(), "ne": ast.NotEq(), "logical_xor": ast.NotEq()},
    **{"le": ast.LtE(), "lt": ast.Lt(), "ge": ast.GtE(), "gt": ast.Gt()},
}
_COMPARES = (ast.Lt, ast.LtE, ast.Eq, ast.NotEq, ast.GtE, ast.Gt)
_FACTS = {
    "is_pad": re.compile(r"^(is_)?pad(ding|ded)?$|^is_pad", re.I),
    "segment": re.compile(r"doc|seg|seq(uence)?_ids?$|sample", re.I),
    "token": re.compile(r"token|ids?$", re.I),
}
"""The functions that ask about a token, each with the names of the tensors that say the same."""

_UNKNOWN_TABLES = {
    say("length"): re.compile(r"^(seq|kv|q|context|actual|input)?_?len(gth)?s?$", re.I),
    say("padding"): re.compile(r"mask|pad|valid|keep", re.I),
}
_HINTS: Mapping[type[ast.AST], str] = {
    ast.Div: say("divide"),
    ast.Pow: say("power"),
    ast.In: say("in"),
    ast.NotIn: say("not_in"),
    ast.Is: say("is"),
    ast.IsNot: say("is"),
    ast.If: say("if"),
    ast.For: say("for"),
}


def uses_flex_attention(text: str) -> bool:
    """True if a text has a sign or a word of FlexAttention's functions, and is not too long to be one."""
    return bool(_FLEX_ATTENTION.search(text)) and len(text) <= 4 * LONGEST


def read(text: str, vocabulary: Vocabulary) -> ast.expr:
    """The checked tree of what the last function or expression of a text says of a query and a key.

    Raises:
        MaskExpressionError: it cannot be read, or asks for what is not known here; its place is one in ``text``.
    """
    try:
        tree = _Reader(PastedText(text), vocabulary).read()
        check(tree, vocabulary.result)
    except (RecursionError, MemoryError):
        raise too_deep(0, len(text)) from None
    return tree


@dataclass(frozen=True, eq=False)
class _Bound:
    """A value or a function, and the names that it may use: it is read when it is asked for."""

    node: ast.expr | ast.FunctionDef
    scope: Scope


Scope = Mapping[str, "str | _Bound"]
"""The meanings of names: a word of the language, or what a line above says."""

_Function = ast.FunctionDef | ast.Lambda


class _Reader:
    """Reads one text."""

    def __init__(self, text: PastedText, vocabulary: Vocabulary) -> None:
        self._text = text
        self._vocabulary = vocabulary
        self._n_parts = 0

    def read(self) -> ast.expr:
        """The tree, each part with its place in the text."""
        names = self._vocabulary.names
        returned = self._returned(self._text.statements(), {name: name for name in names} | _POSITIONS)
        if returned is None:
            raise MaskExpressionError(say("empty"), 0, 1)
        return self._value(returned.node, returned.scope)

    def _returned(self, statements: Sequence[ast.stmt], scope: Scope) -> _Bound | None:
        """Find what statements return, or else the last that they name or say."""
        last: _Bound | None = None
        for statement in statements:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return _Bound(value, scope)
                case ast.FunctionDef(name=name):
                    last = _Bound(statement, scope)
                    scope = {**scope, name: last}
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    named = _Bound(value, scope)
                    scope = {**scope, name: named}
                    last = named if last is None or not isinstance(value, ast.Constant) else last
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                    parts = {
                        one.id: _Bound(ast.copy_location(ast.Subscript(value, ast.Constant(index)), value), scope)
                        for index, one in enumerate(names)
                        if isinstance(one, ast.Name)
                    }
                    scope = {**scope, **parts}
                case ast.AugAssign(target=ast.Name(id=name) as before, op=sign, value=value):
                    last = _Bound(ast.copy_location(ast.BinOp(before, sign, value), statement), scope)
                    scope = {**scope, name: last}
                case (
                    ast.Assign(targets=[ast.Attribute()])
                    | ast.Expr(value=ast.Constant(value=str()))
                    | ast.Import()
                    | ast.ImportFrom()
                    | ast.Pass()
                ):
                    continue
                case ast.Expr(value=value):
                    last = _Bound(value, scope)
                case _:
                    unknown = say("unknown_statement", called=self._vocabulary.called)
                    raise self._refusal(statement, _HINTS.get(type(statement), unknown))
        return last

    def _value(self, node: ast.expr | ast.FunctionDef, scope: Scope) -> ast.expr:
        """The tree of a value; that of a function's result for the query and the key."""
        self._n_parts += 1
        if self._n_parts > _MOST_PARTS:
            raise self._refusal(node, say("too_long"))
        made = self._made(node, scope)
        self._place(made, node)
        return made

    def _made(self, node: ast.expr | ast.FunctionDef, scope: Scope) -> ast.expr:
        vocabulary = self._vocabulary
        match node:
            case ast.Lambda() | ast.FunctionDef():
                returned = self._returned_by(node, scope, node, scope)
                return self._value(returned.node, returned.scope)
            case ast.Constant(value=bool() | int() | float() as value) if isinstance(value, vocabulary.constants):
                return ast.Constant(value)
            case ast.Constant(value="inf" | "-inf"):
                raise self._refusal(node, say("infinite"))
            case ast.Name(id=name):
                return self._named(node, name, scope)
            case ast.UnaryOp(op=sign, operand=operand):
                return ast.UnaryOp(_SIGNS.get(type(sign), sign), self._value(operand, scope))
            case ast.BinOp(left=left, op=sign, right=right):
                return self._binary(node, sign, self._value(left, scope), self._value(right, scope))
            case ast.BoolOp(op=word, values=values):
                return ast.BoolOp(word, [self._value(value, scope) for value in values])
            case ast.Compare(left=left, ops=signs, comparators=others):
                self._check_comparison(node)
                operands = [self._value(operand, scope) for operand in (left, *others)]
                return ast.Compare(operands[0], signs, operands[1:])
            case ast.IfExp(test=test, body=one, orelse=other):
                return self._either(node, test, one, other, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Subscript(value=ast.Call() | ast.Tuple() as whole, slice=ast.Constant(value=int() as index)):
                return self._component(whole, index, scope)
            case ast.Subscript():
                return self._looked_up(node, scope)
            case ast.Attribute():
                raise self._refusal(node, say("not_defined", part=quoted(node)))
        raise self._refusal(node, say("not_known_in", part=quoted(node), called=vocabulary.called))

    def _named(self, node: ast.Name, name: str, scope: Scope) -> ast.expr:
        match scope.get(name):
            case str(word):
                return ast.Name(word)
            case _Bound() as bound:
                return self._value(bound.node, bound.scope)
        if name in self._vocabulary.functions:
            return ast.Name(name)
        meant = next(iter(difflib.get_close_matches(name, scope, n=1)), None) or meant_by(name)
        known = say("meant", meant=meant) if meant else say("undefined", name=name)
        known = say("paste_definition") if "mask" in name else known
        raise self._refusal(node, say("unknown_name", name=shortened(name), known=known))

    def _returned_by(
        self, function: _Function, own_scope: Scope, node: ast.expr | ast.stmt, scope: Scope
    ) -> _Bound:
        """Find what a function returns where it is called, or else for the query and the key."""
        names, defaults = _parameters(function.args)
        bindings: dict[str, str | _Bound] = {name: _Bound(value, own_scope) for name, value in defaults.items()}
        if isinstance(node, ast.Call) and (node.args or node.keywords):
            bindings |= {name: _Bound(value, scope) for name, value in zip(names, node.args, strict=False)}
            bindings |= {one.arg: _Bound(one.value, scope) for one in node.keywords if one.arg}
        else:
            bindings |= self._positions(node, [name for name in names if name not in defaults])
        outside = {name: value for name, value in own_scope.items() if name not in names}
        body = [ast.Return(function.body)] if isinstance(function, ast.Lambda) else function.body
        returned = self._returned(body, {**outside, **bindings})
        if returned is None:
            raise self._refusal(node, say("returns_nothing"))
        return returned

    def _positions(self, node: ast.expr | ast.stmt, needed: Sequence[str]) -> Scope:
        """The parameters of FlexAttention's function, or its query and key, under the function's own names."""
        parameters = self._vocabulary.parameters
        if len(needed) in (2, len(parameters)):
            return dict(zip(needed, parameters[-len(needed) :], strict=True))
        if needed and "score" in needed[0]:
            raise self._refusal(node, say("changes_scores"))
        if len(needed) == len(MASKS.parameters):
            raise self._refusal(node, say("masks"))
        if len(needed) > len(MASKS.parameters):
            raise self._refusal(node, say("no_value", last=shortened(needed[-1])))
        return {}

    def _component(self, whole: ast.Call | ast.Tuple, index: int, scope: Scope) -> ast.expr:
        """One of several values that are written side by side, or that a function returns."""
        bound = _Bound(whole, scope)
        if isinstance(whole, ast.Call):
            bound = self._result(whole, scope) or bound
        if not isinstance(bound.node, ast.Tuple) or index >= len(bound.node.elts):
            raise self._refusal(whole, say("too_many_values", part=quoted(whole)))
        return self._value(bound.node.elts[index], bound.scope)

    def _binary(self, node: ast.BinOp, sign: ast.operator, one: ast.expr, other: ast.expr) -> ast.expr:
        if type(sign) in _JOINED:
            return ast.BoolOp(_JOINED[type(sign)], [one, other])
        if isinstance(sign, ast.BitXor):
            return ast.Compare(one, [ast.NotEq()], [other])
        if not isinstance(sign, self._vocabulary.arithmetic):
            hint = _HINTS.get(type(sign), say("unknown_sign"))
            raise self._refusal(node, say("sign", part=quoted(node), hint=hint))
        return ast.BinOp(one, sign, other)

    def _either(self, node: ast.expr, test: ast.expr, one: ast.expr, other: ast.expr, scope: Scope) -> ast.expr:
        """``one if test else other``: in a mask ``test and one or not test and other``."""
        asked, *ways = (self._value(part, scope) for part in (test, one, other))
        if self._vocabulary is not MASKS:
            return ast.IfExp(asked, *ways)
        denied = ast.UnaryOp(ast.Not(), self._value(test, scope))
        open_ways = [ast.BoolOp(ast.And(), [*pair]) for pair in zip((asked, denied), ways, strict=True)]
        return ast.BoolOp(ast.Or(), [*open_ways])

    def _result(self, node: ast.Call, scope: Scope) -> _Bound | None:
        """Find what a function of the text returns; None for a function that the text does not define."""
        match scope.get(node.func.id) if isinstance(node.func, ast.Name) else None:
            case _Bound(ast.FunctionDef() | ast.Lambda() as function, own_scope):
                return self._returned_by(function, own_scope, node, scope)
        return None

    def _call(self, node: ast.Call, scope: Scope) -> ast.expr:
        if returned := self._result(node, scope):
            return self._value(returned.node, returned.scope)
        match node.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="torch" | "np" | "numpy" | "math"), attr=name):
                arguments = node.args
            case ast.Attribute(value=value, attr=name):
                arguments = [value, *node.args]
            case _:
                raise self._refusal(node, say("unknown_call", part=quoted(node)))
        match name, arguments:
            case "where", [test, one, other]:
                return self._either(node, test, one, other, scope)
            case _, [argument, *_] if name in _UNCHANGED:
                return self._value(argument, scope)
        parts = [self._value(argument, scope) for argument in arguments]
        limits = {one.arg or "": self._value(one.value, scope) for one in node.keywords}
        made = self._written_out(_OTHER_NAMES.get(name, name), parts, limits)
        if made is None:
            close = difflib.get_close_matches(name, self._vocabulary.functions, n=1)
            meant = say("meant", meant=close[0]) if close else say("paste_definition")
            raise self._refusal(node, say("unknown_function", name=shortened(name), meant=meant))
        if sum(1 for _ in ast.walk(made)) > _MOST_PARTS:
            raise self._refusal(node, say("too_long"))
        return made

    def _written_out(self, name: str, parts: list[ast.expr], limits: Mapping[str, ast.expr]) -> ast.expr | None:
        """A function of values in this language; None for one that is unknown."""
        if self._vocabulary.functions.get(name) == len(parts):
            return ast.Call(ast.Name(name), parts, [])
        match name, parts:
            case (("clamp" | "clip"), [number, *ends]):
                low, high, *_ = [*ends, None, None]
                low, high = limits.get("min", low), limits.get("max", high)
                number = self._nearer("max", number, low) if low else number
                return self._nearer("min", number, high) if high else number
            case (("max" | "min"), [one, other]):
                return self._nearer(name, one, other)
            case (("logical_not" | "bitwise_not"), [part]):
                return ast.UnaryOp(ast.Not(), part)
            case _, [_, _, *_] if name in _JOINS:
                return ast.BoolOp(_JOINS[name], parts)
            case _, [one, other] if name in _COMPARISONS:
                return ast.Compare(one, [_COMPARISONS[name]], [other])
        return None

    def _nearer(self, name: str, one: ast.expr, other: ast.expr) -> ast.expr:
        """``max`` or ``min``: in a mask ``(one + other + abs(one - other)) // 2``, with ``-`` for the smaller."""
        if name in self._vocabulary.functions:
            return ast.Call(ast.Name(name), [one, other], [])
        apart = ast.Call(ast.Name("abs"), [ast.BinOp(one, ast.Sub(), other)], [])
        sign = ast.Add() if name == "max" else ast.Sub()
        return ast.BinOp(ast.BinOp(ast.BinOp(one, ast.Add(), other), sign, apart), ast.FloorDiv(), ast.Constant(2))

    def _looked_up(self, node: ast.Subscript, scope: Scope) -> ast.expr:
        """``document_id[b, q_idx]`` and the like: what is known here of the token at a position."""
        indices: list[ast.expr] = []
        table: ast.expr = node
        while isinstance(table, ast.Subscript):
            parts = table.slice.elts if isinstance(table.slice, ast.Tuple) else [table.slice]
            indices, table = [*(self._value(part, scope) for part in parts), *indices], table.value
        name = table.attr if isinstance(table, ast.Attribute) else getattr(table, "id", "")
        words = [index.id for index in indices if isinstance(index, ast.Name)]
        sides = [word for word in words if word in "qk"]
        functions = self._vocabulary.functions
        known = [fact for fact, tables in _FACTS.items() if tables.search(name) and fact in functions]
        if "slope" in functions and words == ["h"] and len(indices) == 1:
            return ast.Call(ast.Name("slope"), [ast.Name("h")], [])
        if len(sides) == 1 and known and len(words) == len(indices):
            return ast.Call(ast.Name(known[0]), [ast.Name(sides[0])], [])
        if self._vocabulary is not MASKS:
            raise self._refusal(node, say("not_in_scores", part=quoted(node)))
        plain = say("facts") if sides else say("number")
        hint = next((hint for hint, tables in _UNKNOWN_TABLES.items() if tables.search(name)), plain)
        raise self._refusal(node, say("unknown_table", part=quoted(node), known=hint))

    def _check_comparison(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        if any(isinstance(operand, ast.BinOp) and type(operand.op) in _JOINED for operand in operands):
            start, end = self._text.place(node)
            raise self._refusal(node, say("precedence", example=_as_meant(self._text.text[start:end])))
        for sign in node.ops:
            if not isinstance(sign, _COMPARES):
                raise self._refusal(node, _HINTS[type(sign)])

    def _place(self, made: ast.expr, node: ast.expr | ast.stmt) -> None:
        """Give a new part of the tree, and all within it that has none, the place of what it was made from."""
        if not hasattr(made, "col_offset"):
            made.col_offset, made.end_col_offset = self._text.place(node)
            for part in ast.iter_child_nodes(made):
                if isinstance(part, ast.expr):
                    self._place(part, node)

    def _refusal(self, node: ast.stmt | ast.expr, what: str) -> MaskExpressionError:
        return MaskExpressionError(what, *self._text.place(node))


def _parameters(arguments: ast.arguments) -> tuple[list[str], Mapping[str, ast.expr]]:
    """The names of a function's parameters, and the values that some have by default."""
    placed = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    keywords = [one.arg for one in arguments.kwonlyargs]
    defaults = dict(zip(reversed(placed), reversed(arguments.defaults), strict=False))
    of_keywords = zip(keywords, arguments.kw_defaults, strict=True)
    return [*placed, *keywords], defaults | {name: value for name, value in of_keywords if value is not None}


def _as_meant(comparison: str) -> str:
    """A comparison beside & or |, with brackets where they were meant."""
    if re.search(r"\([^()]*[&|]", comparison):
        return "(q_idx >= kv_idx) & (q_idx - kv_idx < 4)"
    return " ".join(part if part in "&|" else f"({part})" for part in re.split(r"\s*([&|])\s*", comparison))
