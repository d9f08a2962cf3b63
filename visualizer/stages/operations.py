"""Everything that is known of an operation of another model, and of a known step that several are, as an entry."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headlight.graph import TOLERANCE
from headlight.passed_masks import LOWEST
from headlight.patterns import Folded
from headlight.stages import Stage as Seen
from model.dataflow import Node, Operation, ParameterInput, StageInput, inputs_of, operations_of
from model.texts import texts_of
from visualizer.colors import Role
from visualizer.components.derivation.element import Derivation
from visualizer.components.stage_map.stage_places import StageRef
from visualizer.runs.operations_run import OperationStage
from visualizer.runs.run import Run
from visualizer.runs.saved import ALIAS, GIVEN
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.stages import by_operation, derivations
from visualizer.stages.checks import Check
from visualizer.stages.derivations import Cell
from visualizer.stages.entry import Numbers, StageEntry, StageInRun
from visualizer.stages.expressions import reckon_node, words_of, words_on_node
from visualizer.stages.torch_code import can_be_written, torch_code

say = texts_of(__name__)

ATTENTIONS = ("multi_head_attention_forward", "scaled_dot_product_attention", "flex_attention")
"""Operations that are an attention in one call."""

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys((*ATTENTIONS, "softmax"), "weights"),
    **dict.fromkeys(("add", "iadd", "radd"), "residual"),
    **dict.fromkeys(("relu", "gelu", "silu", "tanh", "sigmoid", "gated_feed_forward"), "feed_forward"),
}

_NOT_AGAIN = re.compile(
    "rand|dropout|bernoulli|gumbel|multinomial|poisson|uniform|normal(?!ize)|exponential|empty|fused|batch_norm"
)
"""Operations that do not give the same again, or only under conditions that a page does not have."""

_MOST_PRODUCTS = 2**30
_FAILURES = (KeyError, RuntimeError, TypeError, ValueError, IndexError)


def entry_of_operation(run: Run, stage: OperationStage) -> StageEntry:
    """Everything that is known of an operation or a step, found once for a run."""
    return run.once(("entry", stage.path), lambda: _entry(stage))


def _entry(stage: OperationStage) -> StageEntry:
    step = stage.step
    return StageEntry(
        stage.name,
        title=visible_whole(label_of(stage)),
        role=role_of(stage),
        formula="" if step is None else " \\qquad ".join(filter(None, (step.formula, numbers_of_step(step)))),
        checks=_checks,
        derive=_derive,
        numbers=_numbers(stage),
    )


def label_of(stage: OperationStage) -> str:
    """The name of a stage in its module, with a number where that comes several times."""
    in_module = stage.path.removeprefix(f"{stage.module_path}.") if stage.module_path else stage.path
    if stage.step is None:
        return in_module
    number = in_module.removeprefix(stage.step.pattern.name)
    return f"{stage.step.pattern.title} {number.strip('_')}".strip()


def role_of(stage: OperationStage) -> Role:
    """The colour of an operation; of a step its own, or that of the operation that it ends with."""
    name = "" if stage.step is None else stage.step.pattern.name
    return _ROLES.get(name) or _ROLES.get(stage.operation.operation, "neutral")


def operations_on_map(run: Run, steps: Collection[Folded]) -> Iterator[StageRef]:
    """Every operation as the map of the model shows it, and each known step after its last operation."""
    ends = {step.stages[-1]: step.path for step in steps}
    details = {path for step in steps for path in step.stages}
    for path, stage in run.trace.items():
        if isinstance(stage, OperationStage) and stage.step is None:
            yield _on_map(stage, is_detail=path in details)
            step = run.trace[ends[path]] if path in ends else None
            if isinstance(step, OperationStage):
                yield _on_map(step, is_detail=False)


def _on_map(stage: OperationStage, *, is_detail: bool) -> StageRef:
    label, role = visible_whole(label_of(stage)), role_of(stage)
    return StageRef(
        stage.path,
        label,
        role,
        stage.shape_text,
        block="sum" if role == "residual" and not is_detail else "operation",
        is_telling=not is_detail and is_attention(stage),
        title=label,
        is_detail=is_detail,
        module=visible_whole(stage.module_path) if stage.module_path else "",
        reads=stage.operation.inputs if stage.step is None else (),
    )


def is_attention(stage: OperationStage) -> bool:
    """True if an operation gives the weights of an attention, or is one in one call."""
    operation = stage.operation
    names = () if operation.node is None else operations_of(operation.node)
    return not {operation.operation, *names}.isdisjoint((*ATTENTIONS, "softmax"))


def operation_at(run: Run, stage: str, layer: int) -> str | None:
    """The operation that a place of any view leads to: itself, or the one with the weights of an attention."""
    if stage in run.trace or run.seen is None:
        return stage
    attention = run.seen.attention_at(stage, layer)
    within = [] if attention is None else [one for one in run.trace.values() if one.module_path == attention.module]
    weights = (one for one in reversed(within) if isinstance(one, OperationStage) and is_attention(one))
    return next((one.path for one in (*weights, *within)), None)


def code_of(stage: OperationStage) -> str | None:
    """The line of PyTorch that was recorded; None where several are, or a tensor is from outside."""
    node = stage.operation.node
    if stage.step is not None or node is None or not can_be_written(node):
        return None
    return visible_whole(f"{_variable(stage.path)} = {torch_code(node, _variable)}")


def _variable(source: str) -> str:
    """``layers_0_norm1_layer_norm``: a stage or a parameter as a name of Python."""
    return re.sub(r"^(?=\d)|\W", "_", source)


def _numbers(stage: OperationStage) -> Numbers:
    """A scale from zero up where no number is below."""
    value = stage.value.real if stage.value.is_complex() else stage.value
    has_signs = value.numel() and value.dtype is not torch.bool and bool(((value < 0) & value.isfinite()).any())
    return "signed" if has_signs else "distribution"


def operation_in_words(stage: OperationStage) -> str:
    """One or two sentences on what a stage was computed from, and by which operations."""
    operation = stage.operation
    if (step := stage.step) is not None:
        names = [path.removeprefix(f"{step.module}.") for path in step.stages]
        return say("step", count=len(names), names=", ".join(names), source=step.pattern.source)
    if operation.operation == "fused":
        return say("fused_module", module=operation.module) if operation.module else say("fused_model")
    if operation.operation == GIVEN and not operation.inputs:
        return say("input")
    if operation.operation == ALIAS:
        return say("same_tensor", inputs=", ".join(operation.inputs))
    if operation.node is not None:
        return words_on_node(operation.node)
    return words_of(dict.fromkeys(operation.inputs), (*operation.folded, operation.operation))


def numbers_of_step(step: Folded) -> str:
    """Return the numbers in its formula with their values, in LaTeX; "" where there are none."""
    names = {"epsilon": r"\epsilon"}
    return r",\quad ".join(f"{names.get(name, name)} = {_decimal(value)}" for name, value in step.numbers.items())


def _decimal(value: float) -> str:
    digits, _, exponent = f"{value:.6g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits


# What must hold.


def _checks(shown: StageInRun) -> tuple[Check, ...]:
    """Return the check of the formula of a step; of an operation that its inputs give its numbers again."""
    stage = shown.stage
    if not isinstance(stage, OperationStage):
        return ()
    if stage.step is not None:
        return (check_of_step(stage.step),)
    found = shown.run.once(("check", stage.path), lambda: _computed_again(shown.run, stage))
    if found is not None and not found.holds and shown.run.interventions:
        return (Check(say("edited"), None),)
    return () if found is None else (found,)


def check_of_step(step: Folded) -> Check:
    """Report how far some operations are from the formula of the step that they are."""
    if step.difference is None:
        return Check(say("those_of_formula"), True)
    if not step.difference:
        return Check(say("formula_exact", tolerance=TOLERANCE), True)
    return Check(say("formula", difference=step.difference, tolerance=TOLERANCE), True)


def _computed_again(run: Run, stage: OperationStage) -> Check | None:
    """Compute an operation again from its inputs; None where that cannot be done while a person waits."""
    node = stage.node
    if not isinstance(node, Operation) or _draws(stage.operation) or not _is_cheap(run, stage, node):
        return None
    try:
        with torch.no_grad():
            again = run.values(node)
    except _FAILURES:
        return None
    names = (*stage.operation.folded, stage.operation.operation)
    by = " → ".join(markdown_safe(name) for name in names)  # a file can say anything
    if again.shape != stage.value.shape:
        return Check(say("other_shape", shape=tuple(again.shape), operations=by), False)
    same = (again == stage.value) | (again.isnan() & stage.value.isnan())
    if bool(same.all()):
        return Check(say("equal", operations=by), True)
    difference = float((again - stage.value).abs().masked_fill(same, 0.0).nan_to_num(nan=torch.inf).max())
    largest = float(stage.value.abs().nan_to_num(nan=0.0, posinf=0.0).max())
    holds = difference <= derivations.TOLERANCE * max(1.0, largest)
    if not holds:
        return Check(say("differs", operations=by, difference=difference), False)
    return Check(say("nearly_equal", operations=by, difference=difference), True)


def _draws(operation: Seen) -> bool:
    """True if an operation does not give the same again; an attention in one call where it drops weights."""
    is_dropout = operation.operation in ("dropout", *ATTENTIONS)
    if not is_dropout or operation.node is None:
        return bool(_NOT_AGAIN.search(operation.operation))
    arguments = [*operation.node.arguments, *operation.node.keywords.values()]
    is_training = operation.node.keywords.get("training", True)
    return bool(is_training) and any(isinstance(one, float) and 0 < one <= 1 for one in arguments)


def _is_cheap(run: Run, stage: OperationStage, node: Node) -> bool:
    """True if a stage has numbers, and can be computed again while a person waits."""
    stages = (run.trace.get(part.path) for part in inputs_of(node) if isinstance(part, StageInput))
    longest = max((each.value.shape[-1] for each in stages if each is not None and each.value.dim()), default=1)
    return 0 < stage.value.numel() * longest <= _MOST_PRODUCTS


# How a number came to be.


def _derive(shown: StageInRun, cell: Cell) -> tuple[Derivation, ...]:
    """Return the derivation of a number; none where its expression or an input of it is not there."""
    stage, run = shown.stage, shown.run
    node = stage.node if isinstance(stage, OperationStage) else None
    if not isinstance(stage, OperationStage) or not isinstance(node, Operation):
        return ()
    name = stage.operation.operation
    if name in ATTENTIONS or _draws(stage.operation) or stage.value.is_complex() or not _is_cheap(run, stage, node):
        return ()
    index = cell.index(stage.value.dim())
    try:
        found = reckon_node(node, index, run.values, None if stage.step is None else _inside(run, stage.step))
    except _FAILURES:
        return ()
    found = replace(found, steps=tuple(dict.fromkeys(found.steps)))
    made = by_operation.framed(shown, cell, "", "", found, word=shown.entry.title)  # told above the picture
    if not made.agrees and run.interventions:  # it was put there
        return ()
    if name != "softmax" or not found.rows:
        return (made,)
    return (replace(made, blocked=tuple(bool(low) for low in found.rows[0].values <= LOWEST)),)


def _inside(run: Run, step: Folded) -> Mapping[str, Node]:
    """The expressions of the operations of a step."""
    stages = {path: run.trace[path] for path in step.stages}
    found = {path: stage.operation.node for path, stage in stages.items() if isinstance(stage, OperationStage)}
    return {path: node for path, node in found.items() if node is not None}


# What a step reads.


@dataclass(frozen=True, eq=False)
class Read:
    """An input of a step, as its formula sees it.

    Attributes:
        symbol: its symbol in the formula.
        name: the stage or the parameter that it comes from.
        path: the stage; "" where it is a parameter or comes from outside.
        is_whole: whether its rows and columns are those of the stage.
        value: its tensor.
    """

    symbol: str
    name: str
    path: str
    is_whole: bool
    value: Tensor


def read_by_step(run: Run, step: Folded) -> Iterator[Read]:
    """Yield the inputs of a step, in the order of its formula, as far as they are known."""
    for symbol, node in step.inputs.items():
        try:
            with torch.no_grad():
                value = run.values(node)
        except _FAILURES:
            continue
        if not value.numel():
            continue
        first = next(iter(inputs_of(node)), None)
        path = first.path if isinstance(first, StageInput) else ""
        name = first.name if isinstance(first, ParameterInput) else path or say("given")
        yield Read(symbol, name, path, isinstance(node, StageInput), value)
