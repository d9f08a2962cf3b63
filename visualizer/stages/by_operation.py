"""How any number came to be, from the expression that its stage was computed by, whatever its name is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.dataflow import (
    Dataflow,
    Node,
    Operation,
    ParameterInput,
    Slot,
    StageInput,
    evaluate,
    operations_of,
)
from visualizer.components.derivation import Step, Terms
from visualizer.runs.run import Run

_SHAPE_ONLY = frozenset(
    {
        *("transpose", "mT", "T", "t", "swapaxes", "permute", "movedim", "view", "view_as", "reshape", "flatten"),
        *("unflatten", "squeeze", "unsqueeze", "expand", "expand_as", "getitem", "chunk", "split", "unbind"),
        *("narrow", "select", "contiguous", "clone", "to", "float", "double"),
    }
)
"""Operations that move numbers and compute none."""


@dataclass(frozen=True)
class Reckoning:
    """How one number came to be: the elements it was computed from, the steps that lead to it, and itself."""

    steps: tuple[Step, ...]
    value: float
    rows: tuple[Terms, ...] = ()


def reckon(run: Run, path: str, index: tuple[int, ...]) -> Reckoning:
    """How the number at ``index`` of a stage came to be."""
    flow = run.dataflow
    with torch.no_grad():
        return _Reader(run, flow).number(flow[path], index)


@dataclass(frozen=True)
class _Reader:
    """Follows one number back through expressions."""

    run: Run
    flow: Dataflow

    def number(self, node: Node, index: tuple[int, ...]) -> Reckoning:
        value = float(self.values(node)[index])
        if not isinstance(node, Operation):
            return Reckoning((Step(f"{_name(node)}{_place(index)}", value),), value)
        if node.name in _SHAPE_ONLY and len(node.inputs) == 1:
            return self._moved(node, index)
        find = {
            **dict.fromkeys(("matmul", "mm", "bmm"), self._product),
            "linear": self._linear,
            "softmax": self._softmax,
            "layer_norm": self._norm,
            "embedding": self._looked_up,
        }.get(node.name)
        return find(node, index) if find else self._by_element(node, index)

    def values(self, node: Node) -> Tensor:
        return evaluate(node, self.run.trace, self.run.model)

    def _moved(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        """Where a number stood before it was moved, found by moving the places themselves."""
        (before,) = node.inputs
        shape = self.values(before).shape
        places = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
        origin = np.unravel_index(int(node.apply((places,))[index]), shape)
        return self.number(before, tuple(int(i) for i in origin))

    def _product(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        left, right = (self.values(part) for part in node.inputs)
        *place, row, column = index
        x = left[(*_broadcast(place, left.shape[:-2]), row)]
        y = right[_broadcast(place, right.shape[:-2])][..., column]
        return _dot(x, y, _words(node.inputs[0]), _words(node.inputs[1]))

    def _linear(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        x, weight, *bias = (self.values(part) for part in node.inputs)
        found = _dot(x[index[:-1]], weight[index[-1]], _words(node.inputs[0]), _words(node.inputs[1]))
        if not bias:
            return found
        added = float(bias[0][index[-1]])
        total = found.value + added
        return Reckoning((*found.steps, Step(f"+ bias ({added:.4g})", total)), total, found.rows)

    def _softmax(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        scores, axis = self.values(node.inputs[0]), _axis(node)
        row = _array(scores.movedim(axis, -1)[_without(index, axis)])
        greatest = float(row.max())
        exponentials = np.exp(row - greatest)
        own, total = float(exponentials[index[axis]]), float(exponentials.sum())
        steps = (
            Step("largest number of the row", greatest),
            Step("exp(number - largest)", own),
            Step("sum over the row", total),
            Step("exp ÷ sum", own / total),
        )
        rows = (Terms(_words(node.inputs[0]), "neutral", row), Terms("share", "neutral", exponentials / total))
        return Reckoning(steps, own / total, rows)

    def _norm(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        row = _array(self.values(node.inputs[0])[index[:-1]])
        result = float(self.values(node)[index])
        centred = float(row[index[-1]] - row.mean())
        steps = (
            Step("x", float(row[index[-1]])),
            Step("- mean of the row", centred),
            Step("÷ standard deviation of the row, × γ + β", result),
        )
        return Reckoning(steps, result, (Terms(_words(node.inputs[0]), "neutral", row),))

    def _looked_up(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        ids, table = node.inputs
        row = int(self.values(ids)[index[:-1]])
        return self.number(table, (row, index[-1]))

    def _by_element(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        """The numbers at the same place of every input, then what the operation makes of them."""
        result = self.values(node)
        steps: list[Step] = []
        rows: tuple[Terms, ...] = ()
        shown: dict[int, str] = {}
        for i, part in enumerate(node.inputs):
            before = self.values(part)
            if not _fits(before.shape, result.shape):
                shown[i] = _words(part)
                continue
            found = self.number(part, _broadcast(index, before.shape))
            steps += found.steps
            rows = rows or found.rows
            shown[i] = f"{found.value:.4g}"
        given = [_shown(part, shown) for part in (*node.arguments, *node.keywords.values())]
        value = float(result[index])
        return Reckoning((*steps, Step(f"{node.name}({', '.join(given)})", value)), value, rows)


def _dot(x: Tensor, y: Tensor, left: str, right: str) -> Reckoning:
    one, other = _array(x), _array(y)
    total = float((one * other).sum())
    rows = (
        Terms(left, "neutral", one),
        Terms(right, "neutral", other, "×"),
        Terms("product", "neutral", one * other, "="),
    )
    return Reckoning((Step("sum of the products", total),), total, rows)


def _axis(node: Operation) -> int:
    """The axis that an operation goes along; the last unless given."""
    given = [part for part in (*node.arguments, *node.keywords.values()) if isinstance(part, int)]
    return given[0] if given else -1


def _without(index: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(i for at, i in enumerate(index) if at != axis % len(index))


def _broadcast(index: Iterable[int], shape: torch.Size) -> tuple[int, ...]:
    """A place of a result as a place of an input that was broadcast to it."""
    places = tuple(index)
    own = places[len(places) - len(shape) :]
    return tuple(i if size > 1 else 0 for i, size in zip(own, shape, strict=True))


def _fits(shape: torch.Size, result: torch.Size) -> bool:
    sizes = zip(reversed(shape), reversed(result), strict=False)
    return len(shape) <= len(result) and all(size in (1, other) for size, other in sizes)


def _shown(argument: object, numbers: dict[int, str]) -> str:
    return numbers[argument.index] if isinstance(argument, Slot) else str(argument)


def _words(node: Node) -> str:
    return f"{', '.join(operations_of(node))} of inputs" if isinstance(node, Operation) else _name(node)


def _name(node: Node) -> str:
    if isinstance(node, StageInput):
        return node.path.rpartition(".")[2]
    return node.name if isinstance(node, ParameterInput) else "given from outside"


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _array(value: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = value.detach().to(torch.float64).numpy()
    return array
