"""Expressions of operations as JSON: what a stage was computed from, and how, without any code.

A function is written by its name in PyTorch and read only where the name is in a list of pure functions of tensors.
What cannot be written, or is not in that list, is left out: the stage then has its numbers and no expression. Read
expressions are first followed with the sizes of their tensors alone, so that none can ask for more memory than the
arrays of its file justify.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import resolve_name

from model.dataflow import Constant, Node, Operation, ParameterInput, Slot, StageInput, name_of, part_of

_ELEMENTWISE = (
    *("add", "sub", "mul", "div", "true_divide", "pow", "neg", "abs", "exp", "log", "sqrt", "rsqrt", "square"),
    *("cos", "sin", "tanh", "sigmoid", "relu", "clamp", "minimum", "maximum", "masked_fill", "where"),
    *("logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "bitwise_not", "reciprocal", "erf"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
    *("full_like", "zeros_like", "ones_like", "multiply", "divide", "subtract"),
)
_OVER_AXES = (
    *("matmul", "mm", "bmm", "addmm", "baddbmm", "softmax", "log_softmax", "sum", "mean", "var", "amax", "amin"),
    *("einsum", "cat", "concat", "stack", "gather", "index_select", "cumsum", "tril", "triu", "roll", "any", "all"),
)
_SHAPES = (
    *("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "contiguous", "flatten"),
    *("unflatten", "chunk", "split", "tensor_split", "unbind", "narrow", "select", "slice", "movedim", "clone"),
    *("to", "float", "half", "bfloat16", "double", "type_as", "detach", "repeat", "repeat_interleave", "expand_as"),
    *("view_as", "reshape_as", "t", "swapaxes"),
)
_OPERATORS = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "matmul", "rmatmul"),
    *("neg", "getitem", "and", "or", "invert", "eq", "ne", "lt", "le", "gt", "ge"),
)
_OF_NETWORKS = (
    *("linear", "softmax", "log_softmax", "layer_norm", "rms_norm", "gelu", "relu", "silu", "embedding", "dropout"),
    *("scaled_dot_product_attention", "multi_head_attention_forward", "pad", "sigmoid", "tanh", "softplus"),
)


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """Every function that is read, by its name."""
    plain = (*_ELEMENTWISE, *_OVER_AXES, *_SHAPES)
    named = [
        *(getattr(torch, name) for name in plain if hasattr(torch, name)),
        *(getattr(Tensor, name) for name in plain if hasattr(Tensor, name)),
        *(getattr(Tensor, f"__{name}__") for name in _OPERATORS if hasattr(Tensor, f"__{name}__")),
        *(getattr(F, name) for name in _OF_NETWORKS if hasattr(F, name)),
        *(getattr(Tensor, name).__get__ for name in ("mT", "T")),
        *(overload for name in {*plain, *_OF_NETWORKS} for overload in _overloads(name)),
    ]
    return {str(resolve_name(function)): function for function in named}


def _overloads(name: str) -> Iterator[Callable[..., Any]]:
    """The forms in which an exported program calls a function, such as ``aten.softmax.int``."""
    if (packet := getattr(torch.ops.aten, name, None)) is not None:
        yield from (getattr(packet, form) for form in packet.overloads() if "out" not in form and form[-1] != "_")


_FACTORIES = ("arange", "zeros", "ones", "full", "tensor", "eye", "scalar_tensor")
"""The functions that make a tensor out of plain numbers: the tensor is written in place of the call."""

_DTYPES = {
    str(dtype): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    )
}
_CPU = torch.device("cpu")
_MOST_NESTED = 64


class _LeftOutError(Exception):
    """There is something in an expression that is not written."""


def to_json(node: Operation | None, add_array: Callable[[Tensor], str | None]) -> object:
    """An expression as JSON; None where it has no inputs, or holds something that is not written.

    Args:
        node: the expression.
        add_array: gives the number of an array of the file.
    """
    try:
        return _node_to_json(node, add_array) if node is not None and node.inputs else None
    except _LeftOutError:
        return None


def _node_to_json(node: Node, add_array: Callable[[Tensor], str | None]) -> dict[str, object]:
    if isinstance(node, StageInput):
        return {"stage": node.path}
    if isinstance(node, ParameterInput):
        return {"parameter": node.name}
    if isinstance(node, Constant):
        return {"array": add_array(node.value)}
    if not node.inputs:
        if node.name not in _FACTORIES:
            raise _LeftOutError
        return {"array": add_array(node.apply(()))}
    function, part, keywords = _unwrapped(node.function)
    name = _pure(str(resolve_name(function)))
    if name not in _functions() or "out" in node.keywords:
        raise _LeftOutError
    return {
        "function": name,
        "part": part,
        "inputs": [_node_to_json(part, add_array) for part in node.inputs],
        "arguments": _argument_to_json(tuple(node.arguments)),
        "keywords": {key: _argument_to_json(value) for key, value in {**keywords, **node.keywords}.items()},
    }


def _pure(name: str) -> str:
    """The name of what computes the same and writes over nothing: ``add`` for ``add_`` and for ``+=``."""
    holder, _, last = name.rpartition(".")
    names = (f"{holder}.__{last.removeprefix('__i')}", f"{holder}.{last.removesuffix('_')}")
    return next((pure for pure in names if name not in _functions() and pure in _functions()), name)


def _unwrapped(function: Callable[..., Any]) -> tuple[Callable[..., Any], int | None, Mapping[str, Any]]:
    """The function itself, which of its results is taken, and what it is given by name beforehand."""
    if not isinstance(function, partial):
        return function, None, {}
    if function.func is part_of:
        return function.args[0], function.args[1], {}
    if function.args:
        raise _LeftOutError
    return function.func, None, function.keywords


def _argument_to_json(value: Any) -> object:  # noqa: ANN401 - arguments of any function
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"number": str(value)}
        case Slot():
            return {"slot": value.index}
        case tuple() | list():
            return {"list": [_argument_to_json(each) for each in value]}
        case slice():
            return {"slice": [_argument_to_json(each) for each in (value.start, value.stop, value.step)]}
        case torch.dtype() if str(value) in _DTYPES:
            return {"dtype": str(value)}
        case torch.device():
            return {"device": "cpu"}  # where a file is read
        case _ if value is Ellipsis:
            return {"ellipsis": True}
    raise _LeftOutError


def from_json(entry: object, arrays: Mapping[str, Tensor]) -> Operation | None:
    """The expression that ``to_json`` wrote; None where there is none.

    Raises:
        ValueError: it is not in the form that ``to_json`` writes, or names a function that is not read.
    """
    if entry is None:
        return None
    node = _node_from_json(entry, arrays, _MOST_NESTED)
    if not isinstance(node, Operation):
        raise ValueError("the expression of a stage in the file is not an operation")
    return node


def _node_from_json(entry: object, arrays: Mapping[str, Tensor], depth: int) -> Node:
    if not isinstance(entry, dict) or not depth:
        raise ValueError("an expression in the file is not in the form that is written")
    match entry:
        case {"stage": str(path)}:
            return StageInput(path)
        case {"parameter": str(name)}:
            return ParameterInput(name)
        case {"array": str(number)} if number in arrays:
            return Constant(arrays[number])
        case {
            "function": str(name),
            "part": part,
            "inputs": list(inputs),
            "arguments": args,
            "keywords": dict(named),
        }:
            function = _functions().get(name)
            if function is None or not (part is None or type(part) is int):
                raise ValueError(f"the function {name[:80]!r} in the file is none that is read")
            nodes = tuple(_node_from_json(each, arrays, depth - 1) for each in inputs)
            arguments = _argument_from_json(args, len(nodes), depth)
            if not isinstance(arguments, tuple):
                raise ValueError("the arguments of a function in the file must be a list")
            keywords = {str(key): _argument_from_json(value, len(nodes), depth) for key, value in named.items()}
            if "out" in keywords:
                raise ValueError(f"the function {name} in the file must not write into another tensor")
            called = function if part is None else partial(part_of, function, part)
            return Operation(name_of(called), nodes, called, arguments, keywords)
    raise ValueError("an expression in the file is not in the form that is written")


def _argument_from_json(entry: object, n_inputs: int, depth: int) -> Any:  # noqa: ANN401
    match entry:
        case None | bool() | int() | float() | str():
            return entry
        case {"number": "inf" | "-inf" | "nan" as number}:
            return float(number)
        case {"slot": int(index)} if 0 <= index < n_inputs:
            return Slot(index)
        case {"list": list(values)} if depth:
            return tuple(_argument_from_json(each, n_inputs, depth - 1) for each in values)
        case {"slice": [start, stop, step]} if depth:
            return slice(*(_argument_from_json(each, n_inputs, depth - 1) for each in (start, stop, step)))
        case {"dtype": str(name)} if name in _DTYPES:
            return _DTYPES[name]
        case {"device": "cpu"}:
            return _CPU
        case {"ellipsis": True}:
            return Ellipsis
    raise ValueError("an argument in the file is not in the form that is written")


def is_sound(
    node: Operation, sizes: torch.Size, stages: Mapping[str, Tensor | None], parameters: Mapping[str, Tensor]
) -> bool:
    """True if an expression gives a tensor of some sizes, and none on the way is far larger than its inputs.

    Only sizes are computed.

    Args:
        node: the expression.
        sizes: what it must come to.
        stages: what the stages came to.
        parameters: the parameters.
    """
    try:
        with torch.no_grad():
            followed = _Sizes(stages, parameters)
            found = _of_sizes(node).apply(tuple(followed.follow(part) for part in node.inputs))
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError):
        return False
    return isinstance(found, Tensor) and found.shape == sizes


def _of_sizes(node: Operation) -> Operation:
    """The operation for tensors without numbers, which are on a device of their own."""
    keywords = {name: "meta" if value is _CPU else value for name, value in node.keywords.items()}
    return replace(
        node, arguments=tuple("meta" if part is _CPU else part for part in node.arguments), keywords=keywords
    )


class _Sizes:
    """Follows an expression with tensors that have sizes and no numbers."""

    def __init__(self, stages: Mapping[str, Tensor | None], parameters: Mapping[str, Tensor]) -> None:
        self._stages, self._parameters = stages, parameters

    def follow(self, node: Node) -> Tensor:
        if not isinstance(node, Operation):
            return self._leaf(node).to("meta")
        inputs = tuple(self.follow(part) for part in node.inputs)
        found = _of_sizes(node).apply(inputs)
        most = max(_SMALL, *(_MOST_TIMES * tensor.numel() for tensor in inputs))
        if not isinstance(found, Tensor) or found.numel() > most:
            raise ValueError("it is too large, or no tensor")
        return found

    def _leaf(self, node: StageInput | ParameterInput | Constant) -> Tensor:
        if isinstance(node, Constant):
            return node.value
        value = self._stages[node.path] if isinstance(node, StageInput) else self._parameters[node.name]
        if value is None:
            raise ValueError("an input was written over")
        return value


_MOST_TIMES = 64
_SMALL = 2**20
"""As many times its largest input, and in any case so many numbers, may a step on the way to a stage have."""
