"""The stages of a pass, each as a sum of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from headlight.residual_stream.operations import (
    FILLED,
    FOLLOWED,
    MOVED,
    MULTIPLIED,
    is_closed,
    is_mixed,
    reads_a_stage,
    stages_in,
    undropped,
)
from headlight.stages import applied
from model.dataflow import Node, Operation, ParameterInput, Slot, StageInput

_ADDED = frozenset(("add", "iadd", "sub", "isub"))


class Sums:
    """The operations of one pass, followed back through all that is linear in what is added.

    Attributes:
        nodes: the expression of each stage, in the order computed; None where it is not known.
        values: the value of each stage.
        writers: by stage, the stages by which its parts were written; itself where it is no sum.
    """

    def __init__(
        self, nodes: Mapping[str, Node | None], values: Mapping[str, Tensor], parameters: Mapping[str, Tensor]
    ) -> None:
        self.nodes, self.values, self._parameters = nodes, values, parameters
        self._path_of = {id(node): path for path, node in nodes.items() if path in values and node is not None}
        self.writers: dict[str, frozenset[str]] = {}
        for path, node in nodes.items():
            known = node is not None and path in values
            self.writers[path] = self._written_by(node, path) if known and node else frozenset((path,))

    def summands(self, node: Operation) -> tuple[Node, ...]:
        """The inputs in which an operation is linear, all others being fixed; () where it is linear in none."""
        read = set(stages_in(node))
        if not read or not read <= self.values.keys():
            return ()  # it begins here, or the model wrote over what it reads
        if node.name in _ADDED:
            numbers = [each for each in node.arguments if not isinstance(each, Slot)]
            is_sum = not any(numbers) and not node.keywords and len(node.inputs) + len(numbers) == 2
            return node.inputs if is_sum else ()
        if node.name not in FOLLOWED:
            return ()
        shape, whole = self._shape(node), undropped(node)
        if shape is None:
            return ()
        if whole is not node:
            return (whole,) if self._shape(whole) == shape else ()
        if node.name in FILLED:
            return ()
        if node.name in MULTIPLIED:
            of_stages = [part for part in node.inputs if reads_a_stage(part) and self._shape(part) == shape]
            is_divisor = "div" in node.name and of_stages == list(node.inputs[1:])
            return () if len(of_stages) != 1 or is_divisor else (of_stages[0],)
        before = self._shape(node.inputs[0])
        if before is None:
            return ()
        if node.name == "mean":
            return node.inputs[:1] if shape == (*before[:-1], 1) else ()
        if node.name in MOVED and is_mixed(node, before):
            return ()
        return node.inputs[:1] if shape[-1] == before[-1] and shape.numel() == before.numel() else ()

    def sums_in(self, node: Node | None) -> Iterator[str]:
        """The stages that an expression is a sum of."""
        if isinstance(node, StageInput):
            yield node.path
        elif isinstance(node, Operation):
            for part in self.summands(node):
                yield from self.sums_in(part)

    def steps_to(self, last: str) -> tuple[str, ...]:
        """The stages that the terms of one pass through, in the order computed."""
        found, waiting = set[str](), [last]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                waiting += self.sums_in(self.nodes[path])
        return tuple(path for path in self.nodes if path in found)

    def between(self, last: str, ends: Collection[str]) -> list[str]:
        """Every stage that one was computed from, and itself, back to some ends, with these."""
        found, waiting = dict.fromkeys((last,)), [last]
        while waiting:
            path = waiting.pop()
            if path in ends:
                continue
            for leaf in stages_in(self.nodes.get(path)):
                if leaf not in found:
                    found[leaf] = None
                    waiting.append(leaf)
        return list(found)

    def value(self, node: Node, instead: Mapping[str, Tensor] | None = None, again: Sequence[str] = ()) -> Tensor:
        """Compute an expression.

        Args:
            node: the expression.
            instead: other values of some stages.
            again: the stages that are computed from these.
        """
        if not instead and id(node) in self._path_of:
            return self.values[self._path_of[id(node)]].detach()
        if isinstance(node, Operation):
            return applied(node, [self.value(part, instead, again) for part in node.inputs])
        if isinstance(node, StageInput):
            if instead and node.path in instead:
                return instead[node.path]
            expression = self.nodes.get(node.path)
            if node.path in again and expression is not None:
                return self.value(expression, instead, again)
            return self.values[node.path].detach()
        return (self._parameters[node.name] if isinstance(node, ParameterInput) else node.value).detach()

    def _written_by(self, node: Node, path: str) -> frozenset[str]:
        """The stages by which the parts of an expression were written; ``path`` where it is no sum itself."""
        if isinstance(node, StageInput):
            return self.writers.get(node.path, frozenset((path,)))
        if not isinstance(node, Operation):
            return frozenset()
        summands = self.summands(node)
        if not summands:
            return frozenset((path,))
        return frozenset().union(*(self._written_by(part, path) for part in summands))

    def _shape(self, node: Node) -> torch.Size | None:
        """The shape of an expression; None where it is no stage and tensors from outside are in it."""
        return self.value(node).shape if id(node) in self._path_of or is_closed(node) else None
