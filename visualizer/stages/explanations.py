"""Which explanation a stage has, and the line of PyTorch that computed it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from model import Stage, Trace
from visualizer.stages.texts import EXPLANATIONS, Explanation

Kind = Literal["inputs", "attention", "feed_forward", "layer", "model", "other"]

FUSED = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj")}
"""Stages of one matrix for several projections, which lie side by side in it."""


@dataclass(frozen=True)
class CodeLine:
    """The expression that computed a stage, and where it stands."""

    code: str
    place: str


def explain(trace: Trace, path: str) -> Explanation:
    """The explanation of the stage at ``path``; ``stage_facts`` says what of it is told in a run."""
    module, _, name = path.rpartition(".")
    kind = kind_of(trace, path)
    if name in ("query_input", "key_input", "value_input") and _is_cross_attention(trace, module):
        name = f"cross_{name}"
    if name in ("q", "k", "v") and f"{module}.{name}_proj" not in trace:
        name = f"given_{name}"
    if fused_stage(trace, path):
        name = f"part_{name}"
    if (kind, name) == ("model", "norm") and not is_pre_norm(trace, f"{module}.layers.0"):
        name = "final_norm"
    known = EXPLANATIONS.get((kind, name.rstrip("0123456789")))
    return known or Explanation(name.replace("_", " ").capitalize(), "neutral", plain=(), exact=())


def kind_of(trace: Trace, path: str) -> Kind:
    """Which part of the model computed the stage at ``path``; ``other`` for a model that was not made here."""
    if not Path(trace[path].location[0]).is_relative_to(_TOP / "model"):
        return "other"
    module, _, name = path.rpartition(".")
    if f"{module}.scores" in trace:
        return "attention"
    if f"{module}.hidden" in trace:
        return "feed_forward"
    if re.fullmatch(r"(residual|norm|dropped_output)\d", name):
        return "layer"
    return "inputs" if f"{module}.embedded" in trace else "model"


def fused_stage(trace: Trace, path: str) -> str:
    """The fused stage, such as ``qkv``, of which the projection at ``path`` is a part; empty where none is."""
    module, _, name = path.rpartition(".")
    return next((fused for fused, parts in FUSED.items() if name in parts and f"{module}.{fused}" in trace), "")


def is_pre_norm(trace: Trace, layer: str) -> bool:
    """Whether a layer, such as ``encoder.layers.0``, normalises what enters its sub-layers."""
    stages = list(trace)
    return stages.index(f"{layer}.norm1") < stages.index(f"{layer}.residual1")


def _is_cross_attention(trace: Trace, module: str) -> bool:
    return trace[f"{module}.query_input"].value is not trace[f"{module}.key_input"].value


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
            return CodeLine(f"{stage.name} = {expression}", f"{_place(file)}, line {call.lineno}")
    return CodeLine(stage.name, f"{_place(file)}, line {line}")


def _place(file: str) -> str:
    """A source file as a reader finds it: from the top of the project on, or by its name where it is of another."""
    path = Path(file)
    return path.relative_to(_TOP).as_posix() if path.is_relative_to(_TOP) else path.name


_TOP = Path(__file__).parents[2]


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
