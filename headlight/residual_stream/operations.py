"""Single operations: in which of their inputs they are linear, and what they read."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.passes import LOOK_UPS
from headlight.stages import CHANGES_OF_SHAPE, value_of
from model.dataflow import Constant, Node, Operation, ParameterInput, Slot, StageInput, inputs_of

NORMS: Mapping[str, inspect.Signature] = {
    "layer_norm": inspect.signature(F.layer_norm),
    "rms_norm": inspect.signature(F.rms_norm),
}
MULTIPLIED = frozenset(("mul", "imul", "div", "idiv", "truediv", "true_divide"))
INPUT_OF = {"linear": 0, "matmul": 0, "addmm": 1}
"""The place of what a projection reads among its inputs; the matrix comes next."""

LINEAR = INPUT_OF.keys() | {"einsum"}
MOVED = frozenset(("transpose", "permute", "movedim", "swapaxes", "mT", "T"))
FILLED = frozenset(("masked_fill", "where"))
FOLLOWED = MULTIPLIED | CHANGES_OF_SHAPE | NORMS.keys() | {"dropout", "neg", "mean"} | FILLED


def undropped(node: Operation) -> Node:
    """The input of what sets some numbers to zero: dropout, written out too (``x * drawn / keep``), or a mask.

    The operation itself where it is none.
    """
    inner: Node = node
    is_dropped = False
    while isinstance(inner, Operation):
        if inner.name in FILLED:
            if (unfilled := _unfilled(inner)) is None:
                break
            inner, is_dropped = unfilled, True
        elif inner.name == "dropout" or inner.name in MULTIPLIED:
            if not all(isinstance(other, Constant) for other in inner.inputs[1:]):
                break
            is_dropped |= inner.name == "dropout" or len(inner.inputs) > 1
            inner = inner.inputs[0]
        else:
            break
    return inner if is_dropped else node


def _unfilled(node: Operation) -> Node | None:
    """The numbers of which a mask sets some to zero; None where it sets them to anything else."""
    arguments = (*node.arguments, *node.keywords.values())
    if len(arguments) != 3:
        return None
    numbers, fill = arguments[1 if node.function is torch.where else 0], arguments[2]
    if isinstance(fill, Slot):
        filled = node.inputs[fill.index]
        is_zero = all(isinstance(leaf, Constant) for leaf in leaves(filled)) and not value_of(filled, {}, {}).any()
    else:
        is_zero = fill == 0
    return node.inputs[numbers.index] if isinstance(numbers, Slot) and is_zero else None


def is_mixed(node: Operation, shape: Sequence[int]) -> bool:
    """True if a change of the order of axes moves the last one, or more than sequences and tokens."""
    moved = node.apply((torch.empty(shape, device="meta"),))
    steps = [step for step, size in zip(moved.stride(), moved.shape, strict=True) if size > 1]
    return steps[-1:] != [1] or (len(shape) > 3 and steps != sorted(steps, reverse=True))


def is_closed(node: Node) -> bool:
    """True if an expression is made of stages and parameters alone."""
    if isinstance(node, Operation):
        return bool(node.inputs) and all(map(is_closed, node.inputs))
    return not isinstance(node, Constant)


def leaves(node: Node | None) -> Iterator[StageInput | ParameterInput]:
    """The stages and the parameters that an expression reads."""
    return iter(()) if node is None else inputs_of(node)


def stages_in(node: Node | None) -> Iterator[str]:
    """The stages that an expression reads."""
    return (leaf.path for leaf in leaves(node) if isinstance(leaf, StageInput))


def reads_a_stage(node: Node) -> bool:
    """True if a stage is in an expression."""
    return any(stages_in(node))


def tables(node: Node | None) -> Iterator[ParameterInput]:
    """The tables in which an expression looks tokens up by their ids."""
    if not isinstance(node, Operation):
        return
    parameters = [part for part in node.inputs if isinstance(part, ParameterInput)]
    if node.name in LOOK_UPS and len(node.inputs) > len(parameters):
        yield from parameters
    for part in node.inputs:
        yield from tables(part)


def are_vectors(value: Tensor) -> bool:
    """True if a tensor from outside has more than one row, as the tokens of a model that is given vectors."""
    return value.dim() > 1 and value.shape[-2] > 1


def bias_of(node: Operation) -> Node | None:
    """The bias that a projection adds to every token."""
    if node.name == "addmm":
        return node.inputs[0]
    return node.inputs[2] if node.name == "linear" and len(node.inputs) > 2 else None


def input_at(node: Operation, argument: object) -> Node | None:
    """The input that an argument of an operation is."""
    return node.inputs[argument.index] if isinstance(argument, Slot) else None
