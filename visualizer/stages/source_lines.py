"""The line of PyTorch that computed a stage, read from the source."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model import Stage
from visualizer.stages.entry import source_of


@dataclass(frozen=True)
class CodeLine:
    """The expression that computed a stage, and where it stands."""

    code: str
    place: str


def code_line(stage: Stage) -> CodeLine:
    """The line of PyTorch that computed a stage, read from the source where the stage was tapped.

    A tap that is given its name as a variable serves several stages.
    """
    file, line = stage.location
    for call in _tap_calls(file):
        end = call.end_lineno or call.lineno
        if call.lineno <= line <= end and _names(call, stage.name):
            expression = ast.unparse(call.args[1])
            return CodeLine(f"{stage.name} = {expression}", f"{source_of(file)}, line {call.lineno}")
    return CodeLine(stage.name, f"{source_of(file)}, line {line}")


@cache
def _tap_calls(file: str) -> tuple[ast.Call, ...]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) >= 2)


def _names(call: ast.Call, stage: str) -> bool:
    """True if a call is the tap of a stage."""
    named_tap = (isinstance(call.func, ast.Name) and call.func.id == "tap") or (
        isinstance(call.func, ast.Attribute) and call.func.attr == "tap"
    )
    first = call.args[0]
    return named_tap and (first.value == stage if isinstance(first, ast.Constant) else isinstance(first, ast.Name))
