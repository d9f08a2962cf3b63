"""The computation of a stage: its expression, and the inputs in it as its picture shows them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model import Stage
from model.dataflow import Constant, Node, Operation, ParameterInput, StageInput
from visualizer.runs.operations_run import OperationStage
from visualizer.runs.run import Run


@dataclass(frozen=True)
class Operand:
    """One input of a stage, as drawn before it.

    Attributes:
        source: a trace path, or the name of a parameter of the model.
        operator: the sign between it and the operand before, such as ``×``; empty for the first.
        is_parameter: whether ``source`` names a parameter instead of a stage.
        transposed: whether the computation uses its last two axes exchanged.
        rows: the first row of a parameter that is used, and the one after the last; None for all.
        looked_up: the rows of another model's table that are looked up, each once; () where it is used whole.
    """

    source: str
    operator: str = ""
    is_parameter: bool = False
    transposed: bool = False
    rows: tuple[int, int] | None = None
    looked_up: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wired:
    """The connections of a stage with others in every run of one structure.

    Attributes:
        node: its expression, without the tensors from outside and with the sizes of one of the runs.
        operands: the inputs in it from left to right; none for what is from outside.
    """

    node: Node
    operands: tuple[Operand, ...]


_SIGNS = {
    **dict.fromkeys(("matmul", "mm", "bmm", "linear"), "×"),
    **dict.fromkeys(("mul", "multiply"), "⊙"),
    **dict.fromkeys(("add", "iadd", "radd"), "+"),
    **dict.fromkeys(("sub", "subtract"), "−"),
    **dict.fromkeys(("div", "truediv"), "÷"),
    **dict.fromkeys(("masked_fill", "where"), "where"),
}
"""The signs between the inputs of an operation; a comma between those of any other."""

_TRANSPOSES = ("mT", "T", "t", "transpose", "swapaxes")


MOST_INPUTS = 4
"""The most inputs that are drawn beside an operation of another model."""

_MOST_WIRINGS = 64
_WIRINGS: dict[Hashable, Mapping[str, Wired]] = {}
"""The wirings of the structures that were looked at last: names alone, no tensors."""


def wirings(run: Run) -> Mapping[str, Wired]:
    """Return the connections of every stage, recorded once for all runs of one structure."""
    return run.once("wirings", lambda: _wirings(run))


def _wirings(run: Run) -> Mapping[str, Wired]:
    if run.structure not in _WIRINGS:
        flow = run.record_dataflow().items()
        found = {path: Wired(_without_tensors(node), operands_in(node, run.parameters)) for path, node in flow}
        while len(_WIRINGS) >= _MOST_WIRINGS:
            _WIRINGS.pop(next(iter(_WIRINGS)), None)
        _WIRINGS[run.structure] = found
    return _WIRINGS[run.structure]


def wired(run: Run, path: str) -> Wired:
    """The same of the stage at ``path``."""
    stage = run.trace[path]
    if isinstance(stage, OperationStage):
        return run.once(("wired", path), lambda: _wired(run, stage))
    return wirings(run)[path]


def _wired(run: Run, stage: OperationStage) -> Wired:
    """The connections of an operation with those operations and parameters whose numbers are known.

    A step reads what its formula says, which is no operand of the operation that it ends with.
    """
    operation, node = stage.operation, stage.node
    if stage.step is not None:
        return Wired(node or _NOTHING, ())
    found: tuple[Operand, ...]
    if isinstance(node, Operation) and node.name == "embedding" and isinstance(node.inputs[-1], ParameterInput):
        found = (Operand(node.inputs[-1].name, is_parameter=True, looked_up=_looked_up(run, node.inputs[0])),)
    elif node is not None and operation.operation != "fused":
        found = operands_in(node, run.parameters, lambda path: run.trace[path].value.dim())
    else:
        found = tuple(
            Operand(name, "," if i else "", is_parameter=name not in run.trace)
            for i, name in enumerate(dict.fromkeys(operation.inputs))
        )
    known = [operand for operand in found if _is_known(run, operand)]
    if all(operand.operator in ("", ",") for operand in known):
        inputs = [replace(operand, operator="") for operand in known]
        known = [operand for i, operand in enumerate(known) if inputs[i] not in inputs[:i]]
    return Wired(node or _NOTHING, tuple(known[:MOST_INPUTS]))


def _looked_up(run: Run, ids: Node) -> tuple[int, ...]:
    """The rows of a table that some ids look up; () where these are not known."""
    try:
        return tuple(sorted(set(run.values(ids).flatten().tolist())))
    except KeyError:
        return ()


def _is_known(run: Run, operand: Operand) -> bool:
    found = run.parameters.get(operand.source) if operand.is_parameter else run.trace.get(operand.source)
    value = found.value if isinstance(found, Stage) else found
    return value is not None and value.numel() > 0


def used(run: Run, operand: Operand) -> Tensor:
    """The parameter that an operand names, or the rows of it that are used."""
    value = run.parameters[operand.source]
    return value if operand.rows is None else value[slice(*operand.rows)]


_NOTHING = Constant(torch.empty(0))


def _without_tensors(node: Node) -> Node:
    if isinstance(node, Operation):
        return replace(node, inputs=tuple(_without_tensors(part) for part in node.inputs))
    return _NOTHING if isinstance(node, Constant) else node


def operands_in(
    node: Node, parameters: Mapping[str, Tensor], n_axes_of: Callable[[str], int] = lambda path: 0
) -> tuple[Operand, ...]:
    """The inputs in an expression from left to right; none for what is from outside.

    Args:
        node: the expression.
        parameters: the parameters in it, by name.
        n_axes_of: how many axes a stage has, where they are counted from the first one; 0 if unknown.
    """
    if isinstance(node, StageInput):
        return (Operand(node.path),)
    if isinstance(node, ParameterInput):
        return (Operand(node.name, is_parameter=True),)
    if isinstance(node, Constant):
        return ()
    parts = [operands_in(part, parameters, n_axes_of) for part in node.inputs]
    if node.name == "linear":
        return _joined((parts[0], _transposed(parts[1])), "×") + _joined(((), *parts[2:]), "+", first="+")
    if node.name == "addmm":
        return _joined((parts[1], parts[2]), "×") + _joined(((), parts[0]), "+", first="+")
    if node.name == "layer_norm":
        return parts[0]  # what shifts and scales is told in words
    if len(parts) == 1 and len(parts[0]) == 1:
        inside = node.inputs[0]
        n_axes = n_axes_of(inside.path) if isinstance(inside, StageInput) else 0
        return (_followed(node, parts[0][0], parameters, n_axes),)
    return _joined(parts, _SIGNS.get(node.name, ","))


def _joined(parts: Iterable[tuple[Operand, ...]], sign: str, first: str = "") -> tuple[Operand, ...]:
    """One row of operands, in which a sign stands before the first of each part but that of the first."""
    found: tuple[Operand, ...] = ()
    for part in parts:
        if part:
            operator = sign if found else first
            found += (replace(part[0], operator=operator or part[0].operator), *part[1:])
    return found


def _transposed(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    return tuple(replace(operand, transposed=not operand.transposed) for operand in operands)


def _is_part(node: Node) -> bool:
    """True for a parameter, or a part that numbers alone cut out of it: what a tensor picks has no place in it."""
    if not isinstance(node, Operation):
        return isinstance(node, ParameterInput)
    is_cut = node.name in ("chunk", "split", "narrow", "getitem") and len(node.inputs) == 1
    return is_cut and _is_part(node.inputs[0])


def _followed(node: Operation, operand: Operand, parameters: Mapping[str, Tensor], n_axes: int) -> Operand:
    """An operand through a function of it alone: what is transposed, and which rows of a parameter are left."""
    axes = {part - n_axes if part >= 0 and n_axes else part for part in node.arguments if isinstance(part, int)}
    if node.name in _TRANSPOSES and axes <= {-1, -2}:
        return replace(operand, transposed=not operand.transposed)
    if not operand.is_parameter or operand.transposed or not _is_part(node):
        return operand
    shape = parameters[operand.source].shape
    rows = torch.arange(shape[0]).view(-1, *[1] * (len(shape) - 1)).expand(shape)
    left = sorted(set(node.apply((rows[slice(*operand.rows)] if operand.rows else rows,)).flatten().tolist()))
    if not left or left != list(range(left[0], left[-1] + 1)):
        return operand
    return replace(operand, rows=None if len(left) == shape[0] else (left[0], left[-1] + 1))
