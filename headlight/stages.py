"""Every operation of a model as a stage: what it came to, and what it was computed from.

Operations that only change a shape or a number type, such as ``view``, ``transpose`` and ``split``, are no stages:
they are folded into the one that they lead to. A change of shape that writes its numbers several times is one.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headlight.modules import Arguments, Function, Keywords
from headlight.recorder import Options
from model.dataflow import (
    Constant,
    Node,
    Operation,
    ParameterInput,
    StageInput,
    name_of,
    operation_of,
    operations_of,
    parameters_of,
    part_of,
)
from model.tracing import Edit, nearest

CHANGES_OF_SHAPE = frozenset(
    (
        *("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "expand_as", "contiguous"),
        *("flatten", "unflatten", "chunk", "split", "tensor_split", "unbind", "getitem", "mT", "T", "detach"),
        *("narrow", "select", "swapaxes", "view_as", "reshape_as", "movedim", "clone", "to", "type_as", "float"),
        *("half", "bfloat16", "double", "type", "alias", "requires_grad", "data"),
    )
)
"""Functions that change the shape or the number type alone."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One operation of a pass.

    Attributes:
        path: its name: that of its module and of the function, ``layers.0.linear1.linear``.
        module: the path of the module that called it.
        operation: the name of the function.
        inputs: the paths of earlier stages and the names of parameters, as they stand in it; what comes from
            outside is named by its shape.
        folded: what only changed shapes on the way from its inputs.
        value: what it came to; None where the model wrote over it in a way that could not be foreseen.
        node: the operation with its arguments, to be computed again; None where a recording does not hold it.
    """

    path: str
    module: str
    operation: str
    inputs: tuple[str, ...]
    folded: tuple[str, ...]
    value: Tensor | None
    node: Operation | None = None


class Stages:
    """Takes note of each operation while a model runs, and changes what some of them came to.

    Attributes:
        failed: what an edit raised; None where none did.
    """

    def __init__(
        self, model: nn.Module, path: Callable[[], str], options: Options, edits: Mapping[str, Edit]
    ) -> None:
        self._path = path
        self._options = options
        self._edits = edits
        self._modules = None if options.keep == "all" else {path.rpartition(".")[0] for path in edits}
        self._parameters = parameters_of(model)
        self._names = {id(tensor): name for name, tensor in reversed(self._parameters.items())}
        self._nodes: dict[int, tuple[weakref.ref[Tensor], Node]] = {}
        self._stages: dict[str, Stage] = {}
        self._versions: dict[str, int] = {}
        self._constants: dict[Constant, int] = {}
        self._times: Counter[str] = Counter()
        self.failed: Exception | None = None

    def before(self, function: Function, args: Arguments, kwargs: Keywords) -> None:
        """Copy what a function is about to write over."""
        name = getattr(function, "__name__", "")
        target = kwargs.get("out")
        if _writes(name, args, kwargs) and args:
            target = args[0]
        if isinstance(target, Tensor):
            with torch._C.DisableTorchFunction():
                place = target.untyped_storage().data_ptr()
                for path, stage in self._stages.items():
                    value = stage.value
                    if value is not None and value.device == target.device and _place(value) == place:
                        self._set(path, replace(stage, value=value.clone()))
                self._forget(target)

    def _forget(self, target: Tensor) -> None:
        """Forget the expressions of other tensors in the memory that is about to be written over."""
        for key, (found, _) in list(self._nodes.items()):
            tensor = found()
            if tensor is None or tensor is target or tensor.device != target.device:
                continue
            if _place(tensor) == _place(target):
                del self._nodes[key]

    def after(self, function: Function, args: Arguments, kwargs: Keywords, output: object) -> object:
        """Take note of what a function came to, and give what the model is to go on with."""
        if not self._wants(path := self._path()):
            return output
        if any(isinstance(each, Tensor) and each.is_nested for each in (*args, *kwargs.values(), output)):
            return output  # it has no one shape
        return self._note_each(function, name_of(function), args, kwargs, output, path)

    def fused(self, module: str, forward: Function, args: Arguments, kwargs: Keywords, output: object) -> None:
        """Take note of what a whole module came to in one fused step, which the model goes on with."""
        if self._wants(module):
            self._note_each(forward, "fused", args, kwargs, output, module)

    def _wants(self, module: str) -> bool:
        """True if the operations of a module are kept: of all, or of those with an edit alone."""
        return module in self._modules if self._modules is not None else self._options.wants(module)

    def _note_each(
        self, function: Function, name: str, args: Arguments, kwargs: Keywords, output: object, module: str
    ) -> object:
        if name == "setitem":
            self._note(partial(_with_item, args[1]), "setitem", (args[0], args[2]), {}, args[0], module)
        elif isinstance(output, Tensor):
            return self._note(function, name, args, kwargs, output, module)
        elif isinstance(output, tuple | list):
            parts = [
                self._note(partial(part_of, function, i), name, args, kwargs, part, module)
                if isinstance(part, Tensor)
                else part
                for i, part in enumerate(output)
            ]
            if any(new is not old for new, old in zip(parts, output, strict=True)):
                return output._make(parts) if hasattr(output, "_make") else type(output)(parts)
        return output

    def finished(self) -> dict[str, Stage]:
        """Every stage by path, in the order computed."""
        return {path: self._checked(path, stage) for path, stage in self._stages.items()}

    def check_edits(self) -> None:
        """Look whether every edit was made.

        Raises:
            ValueError: one is of a stage that was not computed.
        """
        for path in sorted(self._edits.keys() - self._stages.keys()):
            raise ValueError(f"no stage {path!r} was computed{nearest(path, self._stages)}")

    def parameters(self) -> dict[str, Tensor]:
        """The parameters and buffers that the stages name."""
        nodes = [stage.node for stage in self._stages.values() if stage.node is not None]
        used = {leaf.name for node in nodes for leaf in _leaves(node) if isinstance(leaf, ParameterInput)}
        return {name: self._parameters[name].detach() for name in self._parameters if name in used}

    def _note(
        self, function: Function, name: str, args: Arguments, kwargs: Keywords, output: Tensor, module: str
    ) -> Tensor:
        with torch._C.DisableTorchFunction():
            operation = operation_of(name, function, args, kwargs, self._node)
            node: Node = operation
            if output.dim() > 1 and (name not in CHANGES_OF_SHAPE or _repeats(name, args, output)):
                path = self._path_of_next(name, module)
                if path in self._edits:
                    try:
                        output = self._edited(path, output, (*args, *kwargs.values()))
                    except Exception as error:
                        self.failed = error
                        raise
                self._add(path, name, operation, output, module)
                node = StageInput(path)
            self._nodes[id(output)] = (weakref.ref(output), node)
        return output

    def _edited(self, path: str, value: Tensor, arguments: tuple[Any, ...]) -> Tensor:
        """Return the edited value of a stage; in the same memory where the function wrote into its input."""
        is_kept = any(value is one for one in arguments)
        new = self._edits[path](value.clone() if is_kept else value)
        if new.shape != value.shape or new.dtype is not value.dtype:
            raise ValueError(
                f"the edit of {path} gives {new.dtype} {tuple(new.shape)}: it must be {value.dtype} "
                f"{tuple(value.shape)}, as it was"
            )
        return value.copy_(new) if is_kept else new

    def _node(self, tensor: Tensor) -> Node:
        entry = self._nodes.get(id(tensor))
        if entry is not None and entry[0]() is tensor:
            return entry[1]
        name = self._names.get(id(tensor))
        if name is not None:
            return ParameterInput(name)
        constant = Constant(tensor.detach())
        if not constant.value.is_inference():
            self._constants[constant] = constant.value._version
        return constant

    def _path_of_next(self, name: str, module: str) -> str:
        path = f"{module}.{name}" if module else name
        self._times[path] += 1
        return path if self._times[path] == 1 else f"{path}_{self._times[path]}"

    def _add(self, path: str, name: str, node: Operation, output: Tensor, module: str) -> None:
        value = output.detach() if self._options.to is None else output.detach().to(self._options.to)
        inputs = tuple(_name(leaf) for leaf in _leaves(node))
        is_lost = may_write(node) and bool(node.inputs) and isinstance(node.inputs[0], Constant)
        between = tuple(operations_of(node))[:-1]
        stage = Stage(path, module, name, inputs, between, value, None if is_lost else node)
        self._set(path, stage)

    def _set(self, path: str, stage: Stage) -> None:
        self._stages[path] = stage
        if stage.value is not None and not stage.value.is_inference():
            self._versions[path] = stage.value._version

    def _checked(self, path: str, stage: Stage) -> Stage:
        leaves = () if stage.node is None else _leaves(stage.node)
        constants = (leaf for leaf in leaves if isinstance(leaf, Constant) and leaf in self._constants)
        if any(leaf.value._version != self._constants[leaf] for leaf in constants):
            stage = replace(stage, node=None)  # an input from outside was written over since
        if stage.value is None or path not in self._versions or stage.value._version == self._versions[path]:
            return stage
        return replace(stage, value=None)


class StageBytes(TorchFunctionMode):
    """Adds up the bytes that the stages of a pass would take, while it runs, and keeps none.

    Attributes:
        total: the bytes so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_function__(
        self, function: Function, types: object, args: Arguments = (), kwargs: Keywords | None = None
    ) -> Any:  # noqa: ANN401
        output = function(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():
            name = name_of(function)
            if name not in CHANGES_OF_SHAPE or _repeats(name, args, output):
                parts = output if isinstance(output, tuple | list) else (output,)
                self.total += sum(part.nbytes for part in parts if isinstance(part, Tensor) and part.dim() > 1)
        return output


@torch.no_grad()
def value_of(node: Node, stages: Mapping[str, Stage], parameters: Mapping[str, Tensor]) -> Tensor:
    """Compute an expression from the stages and the parameters that are there.

    Raises:
        KeyError: a stage or a parameter is not there, or was written over while the model ran.
    """
    if isinstance(node, Operation):
        return applied(node, [value_of(part, stages, parameters) for part in node.inputs])
    if isinstance(node, ParameterInput):
        return parameters[node.name]
    value = node.value if isinstance(node, Constant) else stages[node.path].value
    if value is None:
        raise KeyError(f"the numbers of an input were written over: {node}")
    return value


def _repeats(name: str, args: Arguments, output: object) -> bool:
    """True if a change of shape writes numbers several times: heads that are shared, or rows looked up by ids."""
    if name == "getitem" and isinstance(args[0], nn.Parameter):
        indices = args[1] if isinstance(args[1], tuple) else args[1:]
        return any(isinstance(index, Tensor) and index.dtype in (torch.int64, torch.int32) for index in indices)
    if name not in ("reshape", "flatten") or not isinstance(output, Tensor) or not isinstance(args[0], Tensor):
        return False
    tensor = args[0]
    is_expanded = any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))
    return is_expanded and _place(output) != _place(tensor)


def _leaves(node: Node) -> Iterator[StageInput | ParameterInput | Constant]:
    if isinstance(node, Operation):
        for part in node.inputs:
            yield from _leaves(part)
    else:
        yield node


def _name(leaf: StageInput | ParameterInput | Constant) -> str:
    if isinstance(leaf, Constant):
        return f"({', '.join(str(size) for size in leaf.value.shape)})"
    return leaf.path if isinstance(leaf, StageInput) else leaf.name


def applied(node: Operation, inputs: Sequence[Tensor]) -> Tensor:
    """The result of an operation, which leaves its inputs as they are."""
    if inputs and may_write(node):
        inputs = (inputs[0].clone(), *inputs[1:])
    return node.apply(tuple(inputs))


def may_write(node: Operation) -> bool:
    """True if an operation writes into its first input."""
    name = str(getattr(node.function, "__name__", ""))
    return _writes(name, tuple(node.arguments), node.keywords)


def _writes(name: str, args: Arguments, kwargs: Keywords) -> bool:
    """True if a function writes into its first argument."""
    is_in_place = (name.endswith("_") and not name.endswith("__")) or name in (
        "__setitem__",
        "__iadd__",
        "__imul__",
    )
    return is_in_place or bool(kwargs.get("inplace")) or (name in _MAY_WRITE and bool(args) and args[-1] is True)


_MAY_WRITE = ("relu", "silu", "gelu", "dropout", "elu", "leaky_relu", "hardtanh")
"""Functions whose last positional argument says that they write into their first."""


def _with_item(index: Any, tensor: Tensor, item: Any) -> Tensor:  # noqa: ANN401 - any index and any number
    changed = tensor.clone()
    changed[index] = item
    return changed


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
