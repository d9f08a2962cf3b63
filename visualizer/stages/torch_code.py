"""The expression of a stage as a line of PyTorch, written from the operations that were recorded."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch.overrides import resolve_name

from model.dataflow import Constant, Node, Operation, Slot, StageInput, part_of

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "gt": ">", "lt": "<", "pow": "**"}

Called = Callable[[str], str]


def can_be_written(node: Node) -> bool:
    """True if an expression is code: every function in it has a public name, and none draws at random."""
    if not isinstance(node, Operation):
        return not isinstance(node, Constant)
    is_random = node.name.startswith(("bernoulli", "dropout", "rand"))
    return not is_random and _name(node).startswith("torch.") and all(map(can_be_written, node.inputs))


def torch_code(node: Node, called: Called) -> str:
    """The code of an expression that can be written.

    Args:
        node: the expression.
        called: the code of a stage by its path, and of a parameter by its name.
    """
    code = _written(node, called)
    is_in_brackets = isinstance(node, Operation) and node.name in _SIGNS and code.startswith("(")
    return code[1:-1] if is_in_brackets else code


def _written(node: Node, called: Called) -> str:
    if isinstance(node, Constant):
        raise TypeError(f"a tensor from outside has no code: {tuple(node.value.shape)}")
    if not isinstance(node, Operation):
        return called(node.path if isinstance(node, StageInput) else node.name)
    inputs = [_written(part, called) for part in node.inputs]
    code = _call(node, inputs)
    is_part = isinstance(node.function, partial) and node.function.func is part_of
    return f"{code}[{node.function.args[1]}]" if is_part and isinstance(node.function, partial) else code


def _call(node: Operation, inputs: Sequence[str]) -> str:
    name, arguments = _name(node), [_argument(each, inputs) for each in node.arguments]
    keywords = [f"{key}={_argument(value, inputs)}" for key, value in _keywords(node).items()]
    if not name.startswith("torch.Tensor."):
        return f"{name.replace('torch.nn.functional.', 'F.')}({', '.join([*arguments, *keywords])})"
    method = name.removeprefix("torch.Tensor.")
    first, *others = arguments
    if method.endswith(".__get__"):
        return f"{first}.{method.removesuffix('.__get__')}"
    if node.name in _SIGNS and len(others) == 1 and not keywords:
        return f"({first} {_SIGNS[node.name]} {others[0]})"
    if node.name == "invert":
        return f"~{first}"
    if node.name == "getitem":
        index = node.arguments[1]
        parts = index if isinstance(index, tuple) else (index,)
        return f"{first}[{', '.join(_argument(part, inputs) for part in parts)}]"
    return f"{first}.{method}({', '.join([*others, *keywords])})"


def _name(node: Operation) -> str:
    """``torch.Tensor.add``; "" where a function has no public name."""
    function = node.function
    if isinstance(function, partial):
        function = function.args[0] if function.func is part_of else function.func
    return resolve_name(function) or ""


def _keywords(node: Operation) -> dict[str, Any]:
    """The arguments by name of a call, without those that a function takes anyway."""
    bound = dict(node.function.keywords) if isinstance(node.function, partial) else {}
    usual: Mapping[str, inspect.Parameter] = {}
    if inspect.isfunction(node.function):
        with suppress(ValueError):  # of what is written in C nothing is known
            usual = inspect.signature(node.function).parameters
    arguments = {
        name: value
        for name, value in node.keywords.items()
        if isinstance(value, Slot) or name not in usual or usual[name].default != value
    }
    return {**arguments, **bound}


def _argument(value: object, inputs: Sequence[str]) -> str:
    if isinstance(value, Slot):
        return inputs[value.index]
    if isinstance(value, tuple | list):
        parts = ", ".join(_argument(part, inputs) for part in value)
        if isinstance(value, list):
            return f"[{parts}]"
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if isinstance(value, torch.device):
        return f'"{value}"'
    if isinstance(value, slice):
        ends = (value.start, value.stop) if value.step is None else (value.start, value.stop, value.step)
        return ":".join("" if part is None else str(part) for part in ends)
    if value is Ellipsis:
        return "..."
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
