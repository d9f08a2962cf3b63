"""Scores that an expression has changed: the formula, the line of NumPy, and the derivation of a number."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from headlight.masks.language import ScoreExpression
from headlight.masks.language.score_code import numpy_lines
from visualizer.components.derivation.element import Step
from visualizer.stages.checks import Check, again
from visualizer.stages.derivations import Cell
from visualizer.stages.entry import StageInRun
from visualizer.stages.numpy_lines import NumpyLine

_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mod: r"\bmod",
    ast.Lt: "<",
    ast.LtE: r"\le",
    ast.Eq: "=",
    ast.NotEq: r"\ne",
    ast.GtE: r"\ge",
    ast.Gt: ">",
    ast.And: r"\land",
    ast.Or: r"\lor",
}
_NAMES = {"score": r"\hat S_{qk}", "h": r"\operatorname{head}", "n_queries": "T_q", "n_keys": "T_k", "n_heads": "H"}
_WIDE = (ast.Add, ast.Sub, ast.Mod)


def change_of(stage: StageInRun) -> ScoreExpression:
    """The expression that changed the scores of the stage's attention."""
    change = vars(stage.run.model.get_submodule(stage.module))["score_mod"]
    if not isinstance(change, ScoreExpression):
        raise TypeError(f"the scores of {stage.module} are changed by something else than an expression")
    return change


def formula(stage: StageInRun) -> str:
    """The changed score of a query and a key, in symbols."""
    return rf"S'_{{qk}} = {_latex(change_of(stage).tree)}"


def line(stage: StageInRun) -> NumpyLine:
    """The change by NumPy."""
    _, n_heads, _, n_keys = stage.value.shape
    change = change_of(stage)
    *before, value = numpy_lines(change, n_heads, n_keys)
    reads = {"scaled_scores": stage.beside("scaled_scores").path}
    from_outside = ("bias",) if "bias" in change.names else ()
    lines = ["score = scaled_scores", *before, f"modified_scores = {value}"]
    return NumpyLine("\n".join(lines), reads, from_outside)


def checks(stage: StageInRun) -> Iterable[Check]:
    """The change, computed once more."""
    scaled, change = stage.beside("scaled_scores").value.double(), change_of(stage)
    expected = change(scaled)
    yield again(f"{change.text}", "", stage.value, expected, 1 + scaled.abs() + expected.abs())


def steps(stage: StageInRun, cell: Cell) -> list[Step]:
    """Return the steps in which the change turns one score into another, part by part."""
    scaled = stage.beside("scaled_scores").value[cell.batch : cell.batch + 1].double()
    found: dict[str, float] = {}
    for words, values in change_of(stage).parts(scaled):
        found[words] = float(values[0, cell.head, cell.row, cell.column])
    return [Step(words, value) for words, value in found.items()]


def _latex(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=bool() as value):
            return rf"\text{{{value}}}"
        case ast.Constant(value=int() | float() as value):
            return f"{value:g}"
        case ast.Name(id=name):
            return _NAMES.get(name, name)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return rf"\lnot {_bracketed(operand)}"
        case ast.UnaryOp(op=sign, operand=operand):
            return f"{'-' if isinstance(sign, ast.USub) else ''}{_bracketed(operand)}"
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return rf"\frac{{{_latex(left)}}}{{{_latex(right)}}}"
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return rf"\left\lfloor \frac{{{_latex(left)}}}{{{_latex(right)}}} \right\rfloor"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"{_bracketed(left)}^{{{_latex(right)}}}"
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return rf"{_factor(left)} \cdot {_factor(right)}"
        case ast.BinOp(left=left, op=sign, right=right):
            return f"{_latex(left)} {_SIGNS[type(sign)]} {_factor(right)}"
        case ast.BoolOp(op=word, values=parts):
            return f" {_SIGNS[type(word)]} ".join(map(_bracketed, parts))
        case ast.Compare(left=left, ops=signs, comparators=others):
            pairs = zip(signs, others, strict=True)
            return " ".join([_latex(left), *(f"{_SIGNS[type(sign)]} {_latex(other)}" for sign, other in pairs)])
        case ast.IfExp(test=test, body=one, orelse=other):
            ways = rf"{_latex(one)} & \text{{if }} {_latex(test)} \\ {_latex(other)} & \text{{else}}"
            return rf"\begin{{cases}} {ways} \end{{cases}}"
        case ast.Call(func=ast.Name(id="abs"), args=[one]):
            return rf"\left| {_latex(one)} \right|"
        case ast.Call(func=ast.Name(id="slope")):
            return "m_h"
        case ast.Call(func=ast.Name(id="bias"), args=[_, place]):
            return rf"b_{{\operatorname{{head}}, {_latex(place)}}}"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            words = name.replace("_", "")
            return rf"\operatorname{{{words}}}\left( {', '.join(map(_latex, arguments))} \right)"
    return ast.unparse(node)


def _factor(node: ast.expr) -> str:
    """A part beside a sign that binds more tightly than its own."""
    return _bracketed(node) if isinstance(node, ast.BinOp) and isinstance(node.op, _WIDE) else _latex(node)


def _bracketed(node: ast.expr) -> str:
    is_alone = isinstance(node, ast.Constant | ast.Name | ast.Call)
    return _latex(node) if is_alone else rf"\left( {_latex(node)} \right)"
