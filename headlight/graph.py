"""The operations of a pass as a graph: which of them read which, and whether some of them follow a formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from headlight.passed_masks import read_added
from headlight.stages import Stage, applied
from model.dataflow import Constant, Node, Operation, ParameterInput, StageInput

TOLERANCE = 1e-5
"""The largest difference from a formula, relative to the largest number; more where numbers are less exact."""

TYPES = frozenset(
    (*("to", "float", "double", "half", "bfloat16", "type", "type_as"), *("contiguous", "clone", "detach", "alias"))
)
"""Functions that change the number type or the memory alone."""

Leaf = StageInput | ParameterInput | Constant
Values = Mapping[str, Tensor]

NOT_COMPUTED = (RuntimeError, ValueError, IndexError, KeyError)
"""The errors raised where an expression cannot be computed: a tensor lies on another device, or is not known."""

_MOST_OPERATIONS = 12


@dataclass(frozen=True, eq=False)
class Proposal:
    """Operations that may be a pattern.

    Attributes:
        stages: their paths, in the order computed.
        inputs: what they read, by its symbol.
        expected: what the formula gives; None where each operation is prescribed.
        numbers: the numbers in the formula.
        holds: what else must be true of the recorded inputs.
        formula: in LaTeX, where it is not that of the pattern.
    """

    stages: tuple[str, ...]
    inputs: Mapping[str, Node]
    expected: Callable[[Values], Tensor] | None
    numbers: Mapping[str, float] = field(default_factory=dict)
    holds: Callable[[Values], bool] = lambda values: True
    formula: str = ""


class Graph:
    """The operations of a pass, and which of them read which."""

    def __init__(self, stages: Mapping[str, Stage], parameters: Values) -> None:
        self.stages = stages
        self._parameters = parameters
        self._places = {path: place for place, path in enumerate(stages)}
        self._readers: dict[str, set[str]] = {path: set() for path in stages}
        for stage in stages.values():
            for name in stage.inputs:
                if name in self._readers:
                    self._readers[name].add(stage.path)
        self._follows: dict[object, bool] = {}
        self._masks: dict[str | None, bool] = {}

    def readers(self, path: str) -> list[Stage]:
        """The stages that were computed from one."""
        return [self.stages[reader] for reader in self._readers[path]]

    def ordered(self, *paths: str) -> tuple[str, ...]:
        """Paths in the order computed."""
        return tuple(sorted(set(paths), key=self._places.__getitem__))

    def is_closed(self, paths: Sequence[str]) -> bool:
        """True if only the last of some stages is read by others."""
        return all(self._readers[path] <= set(paths) for path in paths[:-1])

    def stage_of(self, node: Node, *operations: str) -> Stage | None:
        """The stage that an expression is, but for its number type, if it is one of some operations."""
        while isinstance(node, Operation) and node.name in TYPES:
            node = node.inputs[0]
        stage = self.stages.get(node.path) if isinstance(node, StageInput) else None
        if stage is None or stage.node is None or stage.value is None:
            return None
        return stage if not operations or stage.operation in operations else None

    def entries(self, last: Stage, operations: frozenset[str]) -> Iterator[tuple[Leaf, tuple[str, ...]]]:
        """Every leaf through which goes all that ``last`` was computed from, the nearest first.

        With it come the stages between both, which are of the given operations.
        """
        inside = {last.path}
        waiting = entering(last.node)
        while waiting and len(inside) <= _MOST_OPERATIONS:
            if len(waiting) == 1:
                yield next(iter(waiting.values())), self.ordered(*inside)
            newest = max(waiting, key=lambda key: self._places[key] if isinstance(key, str) else -1)
            stage = self.stages.get(newest) if isinstance(newest, str) else None
            if stage is None or stage.operation not in operations or not self._readers[stage.path] <= inside:
                return
            inside.add(stage.path)
            del waiting[newest]
            waiting |= entering(stage.node)

    def operations(self, paths: Iterable[str]) -> set[str]:
        """The names of the operations of some stages."""
        return {self.stages[path].operation for path in paths}

    def read_as(self, leaf: Leaf, inside: Sequence[str]) -> Node:
        """The expression by which some stages read a leaf, with the shape of the last of them if there is one."""
        shape = self.value(inside[-1]).shape
        found = [node for reader in inside for node in _reads(self.stages[reader].node, _key(leaf))]
        same = (node for node in found if self.compute(node, (), self.recorded).shape == shape)
        return next(same, found[0])

    def value(self, path: str) -> Tensor:
        """Return the value of a stage.

        Raises:
            KeyError: it was written over.
        """
        value = self.stages[path].value
        if value is None:
            raise KeyError(path)
        return value

    def recorded(self, leaf: Leaf) -> Tensor:
        """Return the recorded value of a leaf, which stands at the beginning of an expression."""
        if isinstance(leaf, Constant):
            return leaf.value
        return self.value(leaf.path) if isinstance(leaf, StageInput) else self._parameters[leaf.name]

    def compute(self, node: Node, inside: Sequence[str], leaf: Callable[[Leaf], Tensor]) -> Tensor:
        """Compute an expression, without the changes of number types in it.

        Args:
            node: the expression.
            inside: the stages that are computed again.
            leaf: gives what stands at its beginning.
        """
        if isinstance(node, Operation):
            if node.name in TYPES:
                return self.compute(node.inputs[0], inside, leaf)
            return applied(node, [self.compute(part, inside, leaf) for part in node.inputs])
        if isinstance(node, StageInput) and node.path in inside:
            of_stage = self.stages[node.path].node
            if of_stage is None:
                raise KeyError(node.path)
            return self.compute(of_stage, inside, leaf)
        return leaf(node)

    def is_mask(self, node: Node) -> bool:
        """True if numbers that are added to scores block some of them."""
        path = node.path if isinstance(node, StageInput) else None
        if path not in self._masks:
            allowed = read_added(self.compute(node, (), self.recorded)).allowed
            if path is None:
                return allowed is not None
            self._masks[path] = allowed is not None
        return self._masks[path]

    def difference(self, name: str, proposal: Proposal) -> float | None:
        """Return how far some stages are from a formula, relative to the largest number; None where too far."""
        try:
            with torch.no_grad():
                return self._difference(name, proposal)
        except NOT_COMPUTED:
            return None

    def _difference(self, name: str, proposal: Proposal) -> float | None:
        last = StageInput(proposal.stages[-1])
        values = {symbol: self.compute(node, (), self.recorded) for symbol, node in proposal.inputs.items()}
        if proposal.expected is None or not proposal.holds(values):
            return None
        form = (name, tuple(proposal.numbers.items()), self._form(last, proposal.stages))
        if form not in self._follows:
            other = _OtherNumbers(self.recorded)
            instead = {symbol: self.compute(node, (), other) for symbol, node in proposal.inputs.items()}
            computed = self.compute(last, proposal.stages, other)
            self._follows[form] = _relative(computed, proposal.expected(instead)) <= TOLERANCE
        if not self._follows[form]:
            return None
        value = self.value(last.path)
        exact = {symbol: in_float(tensor) for symbol, tensor in values.items()}
        difference = _relative(value, proposal.expected(exact))
        return difference if difference <= max(TOLERANCE, 8 * torch.finfo(value.dtype).eps) else None

    def are_unchanged(self, paths: Sequence[str]) -> bool:
        """True if some stages, computed again, give the value of the last of them: an edit may have changed one."""
        try:
            with torch.no_grad():
                value, again = self.value(paths[-1]), self.compute(StageInput(paths[-1]), paths, self.recorded)
                return _relative(value, in_float(again)) <= max(TOLERANCE, 8 * torch.finfo(value.dtype).eps)
        except NOT_COMPUTED:
            return False

    def _form(self, node: Node, inside: Sequence[str]) -> object:
        """All of an expression but its numbers, the same in each layer."""
        if isinstance(node, StageInput) and node.path in inside:
            of_stage = self.stages[node.path].node
            return None if of_stage is None else self._form(of_stage, inside)
        if not isinstance(node, Operation):
            value = self.recorded(node)
            stands = isinstance(node, Constant) and not _is_replaced(value)
            return tuple(value.shape), id(value) if stands else None
        part = node.function.args if isinstance(node.function, partial) else ()
        parts = tuple(self._form(each, inside) for each in node.inputs)
        return node.name, repr(part), parts, repr(node.arguments), repr(dict(node.keywords))


class _OtherNumbers:
    """Random numbers in float64 for the beginnings of expressions, the same each time."""

    def __init__(self, recorded: Callable[[Leaf], Tensor]) -> None:
        self._recorded = recorded
        self._generator = torch.Generator().manual_seed(0)
        self._values: dict[object, Tensor] = {}

    def __call__(self, leaf: Leaf) -> Tensor:
        key = _key(leaf)
        if key not in self._values:
            value = self._recorded(leaf)
            if _is_replaced(value):
                normal = torch.randn(value.shape, generator=self._generator, dtype=torch.float64)
                value = (2 * normal + 0.5).to(value.device)  # on both sides of zero, and of no mean of zero
            self._values[key] = value
        return self._values[key]


def _is_replaced(value: Tensor) -> bool:
    """True if other numbers can stand in the place of these: neither indices nor a number of the formula."""
    return value.is_floating_point() and value.dim() > 0


def _relative(value: Tensor, expected: Tensor) -> float:
    """The largest difference of two tensors, relative to the largest number; infinite where the shapes differ."""
    if value.shape != expected.shape or not value.numel():
        return math.inf
    difference = (value.to(expected.dtype) - expected).abs().max()
    return float((difference / expected.abs().max().clamp_min(1e-30)).nan_to_num(nan=math.inf))


def in_float(tensor: Tensor) -> Tensor:
    """Numbers in float32, or their own type if that holds more."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32)) if tensor.is_floating_point() else tensor


def _key(leaf: Leaf) -> object:
    """The same for two leaves that are one tensor: the path of a stage, the place of what comes from outside."""
    if isinstance(leaf, Constant):
        value = leaf.value
        return value.data_ptr(), tuple(value.shape), value.stride()
    return leaf.path if isinstance(leaf, StageInput) else leaf


def entering(node: Node | None) -> dict[object, Leaf]:
    """The stages, and the tensors from outside, that stand in an expression."""
    if isinstance(node, Operation):
        return {key: leaf for part in node.inputs for key, leaf in entering(part).items()}
    if node is None or isinstance(node, ParameterInput) or (isinstance(node, Constant) and not node.value.dim()):
        return {}
    return {_key(node): node}


def _reads(node: Node | None, key: object) -> Iterator[Node]:
    """The parts of an expression that are one leaf, in another shape or a part of it."""
    if isinstance(node, Operation):
        for part in node.inputs:
            if _is_seen(part, key):
                yield part
            else:
                yield from _reads(part, key)


def _is_seen(node: Node, key: object) -> bool:
    while isinstance(node, Operation) and len(node.inputs) == 1:
        (node,) = node.inputs
    return not isinstance(node, Operation) and _key(node) == key


def number_in(node: Operation | None) -> float | None:
    """The one plain number among the arguments of an operation."""
    arguments = () if node is None else (*node.arguments, *node.keywords.values())
    numbers = [part for part in arguments if isinstance(part, int | float) and not isinstance(part, bool)]
    return float(numbers[0]) if len(numbers) == 1 else None


def other_than(node: Operation, part: Node) -> Node | None:
    """The other one of two inputs."""
    others = [each for each in node.inputs if each is not part]
    return others[0] if len(node.inputs) == 2 and len(others) == 1 else None
