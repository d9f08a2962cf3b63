"""The computation of every stage, recorded while the model runs and not written down.

A stage is an expression over earlier stages and parameters. ``record_dataflow`` finds the expressions: a function
mode notes which function made each tensor from which others, and each stage is followed back to those before it.
The graph depends on the structure of the model alone, not on its numbers or on the length of the text, so one pass
serves every run of that structure.

    flow = record_dataflow(model, lambda: model(ids))
    flow["encoder.layers.0.self_attention.scores"]
    # Operation("matmul", (StageInput("encoder.layers.0.self_attention.q"), Operation("mT", (StageInput("...k"),))))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, resolve_name

from model.tracing import Trace, TraceError, record

Function = Callable[..., Any]


@dataclass(frozen=True)
class StageInput:
    """A stage that was computed before."""

    path: str


@dataclass(frozen=True)
class ParameterInput:
    """A parameter or a buffer of the model."""

    name: str


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor from outside: token ids, a mask before it has a name, what dropout drew."""

    value: Tensor


@dataclass(frozen=True)
class Operation:
    """A function of PyTorch applied to inputs.

    Attributes:
        name: its name, such as ``matmul``, ``linear``, ``softmax`` or ``mT``.
        inputs: the tensors that it was given, in order.
        function: the function itself.
        arguments: everything that it was given in its own order, with a ``Slot`` where a tensor stands.
        keywords: the same by name.
    """

    name: str
    inputs: tuple[Node, ...]
    function: Function = field(compare=False, repr=False)
    arguments: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    keywords: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def apply(self, values: tuple[Tensor, ...]) -> Tensor:
        """The function applied to other tensors than those it was recorded with."""
        arguments = _with_tensors(self.arguments, values)
        result: Tensor = self.function(*arguments, **_with_tensors(dict(self.keywords), values))
        return result


@dataclass(frozen=True)
class Slot:
    """The place of a tensor among the arguments of an operation."""

    index: int


Node = StageInput | ParameterInput | Constant | Operation
Dataflow = Mapping[str, Node]


def record_dataflow(model: nn.Module, run: Callable[[], object], edited: Collection[str] = ()) -> dict[str, Node]:
    """The expression that each stage was computed by, by its path, in the order computed.

    Args:
        model: the model whose stages are recorded.
        run: runs it once.
        edited: the paths of stages that an edit makes tensors of their own.

    Returns:
        For each stage a ``StageInput`` where it is the very tensor of an earlier one, a ``Constant`` where it comes
        from outside, else an ``Operation``.
    """
    with torch.no_grad(), record(model, dict.fromkeys(edited, torch.clone)) as trace:
        run()
    paths = list(trace)
    try:
        return _record(model, run, {path: path for path in paths})
    except TraceError:  # a module asks whether its inputs are one tensor, such as one matrix for all of them does
        return _record(model, run, {path: path if path in edited else path.rpartition(".")[0] for path in paths})


def _record(model: nn.Module, run: Callable[[], object], places: Mapping[str, str]) -> dict[str, Node]:
    """One pass in which stages that are one tensor are told apart, but for those of one place.

    Raises:
        TraceError: to tell them apart changes what the model computes.
    """
    notes = _Notes()
    aliases = {path: partial(notes.alias, place) for path, place in places.items()}
    with torch.no_grad(), notes, record(model, aliases) as trace:
        run()
    if trace.keys() != places.keys():
        raise TraceError("other stages were computed")
    return _Reading(notes, trace, model).expressions()


def evaluate(node: Node, trace: Trace, parameters: Mapping[str, Tensor]) -> Tensor:
    """Compute an expression from the stages of a trace and the parameters of its model, by their names."""
    if isinstance(node, StageInput):
        return trace[node.path].value
    if isinstance(node, ParameterInput):
        return parameters[node.name]
    if isinstance(node, Constant):
        return node.value
    return node.apply(tuple(evaluate(part, trace, parameters) for part in node.inputs))


def inputs_of(node: Node) -> Iterator[StageInput | ParameterInput]:
    """The stages and parameters in an expression, from left to right, each as often as it stands there."""
    if isinstance(node, Operation):
        for part in node.inputs:
            yield from inputs_of(part)
    elif not isinstance(node, Constant):
        yield node


def operations_of(node: Node) -> Iterator[str]:
    """The names of the operations in an expression, in the order in which they are computed."""
    if isinstance(node, Operation):
        for part in node.inputs:
            yield from operations_of(part)
        yield node.name


class _Notes(TorchFunctionMode):
    """Keeps, for every tensor that a function makes, the function and what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, tuple[Function, tuple[Any, ...], dict[str, Any]]] = {}
        self.same: dict[int, Tensor] = {}
        self._aliases: dict[tuple[str, int], Tensor] = {}
        self._alive: list[Tensor] = []  # else a new tensor could take the identity of one that is gone

    def alias(self, place: str, value: Tensor) -> Tensor:
        """Another tensor of the same numbers, one for each place, so that stages can be told apart."""
        if (place, id(value)) not in self._aliases:
            alias = value.view_as(value)
            self._aliases[place, id(value)] = alias
            self.same[id(alias)] = value
            self._alive += (alias, value)
        return self._aliases[place, id(value)]

    def __torch_function__(
        self, function: Function, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        result = function(*args, **(kwargs or {}))
        if function is Tensor.__setitem__:
            self.made.pop(id(args[0]), None)  # written into
        elif isinstance(result, Tensor):
            if any(result is tensor for tensor in _tensors((args, kwargs))):
                self.made.pop(id(result), None)  # written into: such as what dropout drew
            else:
                self._note(result, function, args, kwargs)
        elif isinstance(result, tuple | list):  # such as the parts of a chunk
            for i, part in enumerate(result):
                if isinstance(part, Tensor):
                    self._note(part, partial(part_of, function, i), args, kwargs)
        return result

    def _note(
        self, result: Tensor, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any] | None
    ) -> None:
        self.made[id(result)] = function, args, kwargs or {}
        self._alive.append(result)


def part_of(function: Function, i: int, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
    """One of the tensors that a function gives."""
    part: Tensor = function(*args, **kwargs)[i]
    return part


class _Reading:
    """Follows tensors back to the stages and parameters that they were made from."""

    def __init__(self, notes: _Notes, trace: Trace, model: nn.Module) -> None:
        self._made, self._same, self._trace = notes.made, notes.same, trace
        self._paths = {id(stage.value): path for path, stage in reversed(list(trace.items()))}
        self._names: dict[int, list[str]] = {}
        for name, tensor in parameters_of(model).items():
            self._names.setdefault(id(tensor), []).append(name)

    def expressions(self) -> dict[str, Node]:
        found = {}
        for path, stage in self._trace.items():
            value = self._same[id(stage.value)]
            found[path] = self._node(value, path)
            self._paths.setdefault(id(value), path)  # another stage may be the very tensor that came from outside
        return found

    def _node(self, value: Tensor, path: str) -> Node:
        """The expression of a tensor that the stage at ``path`` was computed from."""
        if id(value) in self._paths:
            return StageInput(self._paths[id(value)])
        if id(value) in self._names:
            return ParameterInput(_nearest(self._names[id(value)], path))
        if id(value) not in self._made:
            return Constant(value)
        function, args, kwargs = self._made[id(value)]
        name = name_of(function)
        if name == "expand_as":  # the other tensor gives its shape alone
            args, kwargs = args[:1], {}
            function = partial(Tensor.expand, size=value.shape)
        return operation_of(name, function, args, kwargs, partial(self._node, path=path))


def operation_of(
    name: str,
    function: Function,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    node_of: Callable[[Tensor], Node],
) -> Operation:
    """A call of a function as an operation.

    Args:
        name: its name.
        function: the function.
        args: what it was given.
        kwargs: what it was given by name.
        node_of: the expression of a tensor among them.
    """
    tensors = tuple(_tensors((*args, *kwargs.values())))
    slots = {id(tensor): Slot(i) for i, tensor in enumerate(tensors)}
    inputs = tuple(node_of(tensor) for tensor in tensors)
    return Operation(name, inputs, function, _with_slots(args, slots), _with_slots(dict(kwargs), slots))


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers under every name that they have."""
    return {
        **dict(model.named_buffers(remove_duplicate=False)),
        **dict(model.named_parameters(remove_duplicate=False)),
    }


def _nearest(names: list[str], path: str) -> str:
    """Choose among a parameter's names the one in the same part of the model as a stage, then the shortest."""
    return max(names, key=lambda name: (n_shared(name, path), -name.count(".")))


def n_shared(path: str, other: str) -> int:
    """Count the parts that two paths have in common, from the first on."""
    pairs = zip(path.split("."), other.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def name_of(function: Function) -> str:
    """``torch.Tensor.mT.__get__`` -> ``mT``; ``torch.nn.functional.softmax`` -> ``softmax``."""
    return _name_of(function.args[0] if isinstance(function, partial) else function)


@lru_cache(maxsize=4096)
def _name_of(function: Function) -> str:
    """The same of a function that is no ``partial``: to look it up takes PyTorch longer than a small product."""
    parts = str(resolve_name(function) or getattr(function, "__name__", str(function))).split(".")
    if parts[0] == "aten":  # in an exported program: aten.softmax.int
        return parts[1].strip("_")
    name = parts[-2] if parts[-1] == "__get__" else parts[-1]
    return name.strip("_")


def _tensors(values: Iterable[object]) -> list[Tensor]:
    """Every tensor in nested tuples, lists and dictionaries."""
    found: list[Tensor] = []
    for part in values:
        if isinstance(part, Tensor):
            found.append(part)
        elif isinstance(part, tuple | list | dict):
            found += _tensors(part.values() if isinstance(part, dict) else part)
    return found


def _replaced(value: Any, leaf: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - arguments of any function
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        return type(value)(_replaced(part, leaf) for part in value)
    if isinstance(value, dict):
        return {name: _replaced(part, leaf) for name, part in value.items()}
    return leaf(value)


def _with_slots(value: Any, slots: Mapping[int, Slot]) -> Any:  # noqa: ANN401
    return _replaced(value, lambda part: slots[id(part)] if isinstance(part, Tensor) else part)


def _with_tensors(value: Any, values: tuple[Tensor, ...]) -> Any:  # noqa: ANN401
    return _replaced(value, lambda part: values[part.index] if isinstance(part, Slot) else part)
