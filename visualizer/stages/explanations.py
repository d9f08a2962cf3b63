"""The line of PyTorch that computed a stage, and what keeps a head from what its name says."""

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


def head_note(name: str, masks: tuple[str, ...], *, is_cross: bool, two_vocabularies: bool = False) -> str:
    """Where a hand-built head cannot do what its name says, in one sentence; empty where it can everywhere.

    Args:
        name: one of ``hand_built_names``, or empty.
        masks: the names of the masks of its attention.
        is_cross: whether it attends from the target to the source.
        two_vocabularies: whether source and target have one each.
    """
    if name.endswith(")"):  # its name says what the model lacks for it
        return "The model lacks what this head needs, so it gives every allowed key the same weight."
    target = _target(name)
    if target == "same token" and is_cross and two_vocabularies:
        return (
            "Source and target have vocabularies of their own, so that to the model no token of the one is a token "
            f"of the other: the weight of “{name}” falls on whatever is least unlike."
        )
    if target == "ahead" and "causal" in masks:
        return f"The causal mask blocks what “{name}” looks for, so its weight falls on what is left."
    reasons = [_MISSING[target, is_cross]] if (target, is_cross) in _MISSING else []
    if not _BLOCKERS.get(target, frozenset()).isdisjoint(masks):
        reasons.append("a mask blocks what it looks for")
    return f"Where {' or '.join(reasons)}, the weight of “{name}” falls elsewhere." if reasons else ""


def _target(name: str) -> str:
    """What a head looks for, with all distances ahead, and all back, as one."""
    last = name.rpartition(" ")[2]
    return {"next token": "ahead", "previous token": "back"}.get(name, last if last in ("ahead", "back") else name)


_MISSING = {
    ("ahead", False): "there is nothing that far ahead",
    ("back", False): "there is nothing that far back",
    ("ahead", True): "the source has no token at that place",
    ("back", True): "the source has no token at that place",
    ("itself", True): "the source has no token at that place",
    ("same token", True): "the source has no equal token",
}
"""What there may be none of, by what a head looks for and whether in cross-attention."""

_BLOCKERS = {
    "ahead": frozenset({"prefix", "padding", "sliding_window", "strided", "custom"}),
    "back": frozenset({"padding", "sliding_window", "strided", "custom"}),
    "first token": frozenset({"sliding_window", "strided", "custom"}),
    "itself": frozenset({"padding", "custom"}),
    "same token": frozenset({"padding", "custom"}),
}
"""The masks that may block what a head looks for."""


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
    """Whether a call is the tap of a stage."""
    named_tap = (isinstance(call.func, ast.Name) and call.func.id == "tap") or (
        isinstance(call.func, ast.Attribute) and call.func.attr == "tap"
    )
    first = call.args[0]
    return named_tap and (first.value == stage if isinstance(first, ast.Constant) else isinstance(first, ast.Name))
