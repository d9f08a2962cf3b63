"""The words, the check and the derivation of any stage from the expression that computed it, whatever its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from model.dataflow import (
    Constant,
    Node,
    Operation,
    ParameterInput,
    Slot,
    StageInput,
    evaluate,
    inputs_of,
    operations_of,
)
from model.texts import texts_of
from visualizer.components.derivation.element import Step, Terms
from visualizer.runs.run import Run
from visualizer.stages.derivations import Reckoning, as_numbers, dot, layer_norm, softmax

say = texts_of(__name__)


def words_on(run: Run, path: str) -> str:
    """One sentence on what a stage was computed from, and by which operations."""
    return words_on_node(run.dataflow[path])


def words_on_node(node: Node) -> str:
    """The same of an expression."""
    if isinstance(node, Constant):
        return say("input")
    inputs = dict.fromkeys(part.path if isinstance(part, StageInput) else part.name for part in inputs_of(node))
    if not isinstance(node, Operation):
        return say("same_tensor", inputs=", ".join(inputs))
    operations = tuple(operations_of(node))
    of_stages = dict.fromkeys(part.path for part in inputs_of(node) if isinstance(part, StageInput))
    if of_stages and operations[-1] in _ATTENTIONS:
        return _ATTENTIONS[operations[-1]](", ".join(of_stages))
    write = _SENTENCES.get((operations, len(inputs)))
    return write(*inputs) if write is not None and _is_told_whole(node) else words_of(inputs, operations)


def _is_told_whole(node: Operation) -> bool:
    """True if no tensor from outside takes part in an operation, other than what is looked up, and no factor."""
    has_other = any(isinstance(part, Constant) for part in node.inputs) and node.name != "embedding"
    return not has_other and not (node.name == "add" and node.keywords)


def words_of(inputs: Iterable[str], operations: Iterable[str]) -> str:
    """The same of the names of what goes in and of the operations."""
    operations = tuple(operations)
    computing = [name for name in operations if name not in _SHAPE_ONLY] or operations
    return say("computed", inputs=", ".join(inputs) or say("what_is_given"), operations=say("then").join(computing))


_SENTENCES: Mapping[tuple[tuple[str, ...], int], Callable[..., str]] = {
    (("embedding",), 1): lambda table: say("looked_up", table=table),
    (("getitem", "embedding"), 1): lambda table: say("looked_up", table=table),
    (("linear",), 2): lambda x, weight: say("linear", x=x, weight=weight),
    (("linear",), 3): lambda x, weight, bias: say("linear_with_bias", x=x, weight=weight, bias=bias),
    (("layer_norm",), 3): lambda x, weight, bias: say("layer_norm", x=x, weight=weight, bias=bias),
    (("softmax",), 1): lambda x: say("softmax", x=x),
    (("relu",), 1): lambda x: say("relu", x=x),
    (("matmul",), 2): lambda x, y: say("matrix_product", x=x, y=y),
    (("add",), 2): lambda x, y: say("sum_of_two", x=x, y=y),
    (("mul",), 2): lambda x, y: say("product_of_two", x=x, y=y),
}
"""Sentences on a single operation, by its name and the number of its inputs."""


_ATTENTIONS: Mapping[str, Callable[[str], str]] = {
    "multi_head_attention_forward": lambda inputs: say("multi_head_attention", inputs=inputs),
    "scaled_dot_product_attention": lambda inputs: say("attention", inputs=inputs),
}
"""Sentences on a whole attention that PyTorch computes in one call."""


def is_its_expression(run: Run, path: str) -> tuple[str, bool]:
    """Check that a stage, computed again from its inputs by the recorded operations, is the same bit by bit."""
    node = run.dataflow[path]
    with torch.no_grad():
        again = evaluate(node, run.trace, run.parameters)
    operations = " → ".join(operations_of(node)) or say("no_operation")
    if torch.equal(again, run.trace[path].value):
        return say("equal", operations=operations), True
    return say("different", operations=operations), False


_SHAPE_ONLY = frozenset(
    {
        *("transpose", "mT", "T", "t", "swapaxes", "permute", "movedim", "view", "view_as", "reshape", "flatten"),
        *("unflatten", "squeeze", "unsqueeze", "expand", "expand_as", "getitem", "chunk", "split", "unbind"),
        *("narrow", "select", "contiguous", "clone"),
    }
)
"""Operations that move numbers and compute none."""


def reckon(run: Run, path: str, index: tuple[int, ...]) -> Reckoning:
    """Return the reckoning of the number at ``index`` of a stage."""
    return reckon_node(run.dataflow[path], index, lambda node: evaluate(node, run.trace, run.parameters))


def reckon_node(
    node: Node,
    index: tuple[int, ...],
    values: Callable[[Node], Tensor],
    through: Mapping[str, Node] | None = None,
) -> Reckoning:
    """Return the reckoning of the number at a place of an expression.

    Args:
        node: the expression.
        index: the place.
        values: computes expressions.
        through: the expressions of stages that are gone through, by path; a number of any other stage stands for
            itself.
    """
    with torch.no_grad():
        return _Reader(values, through or {}).number(node, index)


@dataclass(frozen=True)
class _Reader:
    """Follows one number back through expressions."""

    values: Callable[[Node], Tensor]
    through: Mapping[str, Node] = field(default_factory=dict)

    def number(self, node: Node, index: tuple[int, ...]) -> Reckoning:
        if isinstance(node, StageInput) and node.path in self.through:
            return self.number(self.through[node.path], index)
        if not isinstance(node, Operation):
            value = float(self.values(node)[index])
            return Reckoning((Step(f"{_name(node)}{_place(index)}", value),), value)
        if node.name in _SHAPE_ONLY and len(node.inputs) == 1:
            return self._moved(node, index)
        find = {
            **dict.fromkeys(("matmul", "mm", "bmm"), self._product),
            "linear": self._linear,
            "addmm": self._with_matrix,
            "softmax": self._softmax,
            **dict.fromkeys(("mean", "sum"), self._over_row),
            **dict.fromkeys(("cat", "concat", "stack"), self._joined),
            "layer_norm": self._norm,
            "embedding": self._looked_up,
        }.get(node.name)
        return find(node, index) if find else self._by_element(node, index)

    def _moved(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        """Follow a number to where it stood before it was moved, found by moving the places themselves."""
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
        return dot(*self._terms(node, x, y))

    def _linear(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        x, weight, *bias = (self.values(part) for part in node.inputs)
        added = float(bias[0][index[-1]]) if bias else None
        return dot(*self._terms(node, x[index[:-1]], weight[index[-1]]), bias=added)

    def _with_matrix(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        """``addmm``: the bias comes first, and the matrix is not transposed."""
        if any(factor != 1 for factor in node.keywords.values()):
            raise ValueError("a part of the sum is multiplied")
        bias, x, matrix = (self.values(part) for part in node.inputs)
        row, column = index
        product = replace(node, inputs=node.inputs[1:])
        return dot(
            *self._terms(product, x[row], matrix[:, column]), bias=float(bias.expand(len(x), -1)[row, column])
        )

    def _terms(self, node: Operation, *rows: Tensor) -> tuple[Terms, Terms]:
        """The rows of the two inputs of a product."""
        left, right = (
            Terms(_words(part), "neutral", as_numbers(row)) for part, row in zip(node.inputs[:2], rows, strict=True)
        )
        return left, right

    def _softmax(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        scores, axis = self.values(node.inputs[0]), axis_of(node)
        row = as_numbers(scores.movedim(axis, -1)[_without(index, axis)])
        found = softmax(row, index[axis])
        if not self.through:
            return found
        score = self.number(node.inputs[0], index)
        return replace(found, steps=(*score.steps, *found.steps))

    def _over_row(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        """The mean, or the sum, of a row."""
        part, value = node.inputs[0], float(self.values(node)[index])
        before, shape = self.values(part), self.values(node).shape
        is_kept = shape == (*before.shape[:-1], 1)
        if not is_kept and shape != before.shape[:-1]:
            return self._by_element(node, index)
        row = as_numbers(before[index[:-1] if is_kept else index])
        found = row.mean() if node.name == "mean" else row.sum()
        if not math.isclose(found, value, rel_tol=1e-2, abs_tol=1e-4):
            raise ValueError(f"{node.name} goes along another axis")
        said = say("mean", count=len(row)) if node.name == "mean" else say("sum", count=len(row))
        return Reckoning((Step(said, value),), value, (Terms(_words(part), "neutral", row),))

    def _joined(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        """Follow a number to its place in the joined tensor that it comes from."""
        numbers = [part for part in (*node.arguments[1:], *node.keywords.values()) if isinstance(part, int)]
        axis = (numbers[0] if numbers else 0) % len(index)
        place = index[axis]
        if node.name == "stack":
            return self.number(node.inputs[place], _without(index, axis))
        for part in node.inputs:
            size = self.values(part).shape[axis] if self.values(part).dim() == len(index) else 0
            if place < size:
                return self.number(part, (*index[:axis], place, *index[axis + 1 :]))
            place -= size
        raise IndexError(f"{index} is beyond what was joined")

    def _norm(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        x, *scales = node.inputs
        row, at = Terms(_words(x), "neutral", as_numbers(self.values(x)[index[:-1]])), index[-1]
        if len(scales) == 2 and "eps" in node.keywords and len(self.values(scales[0]).shape) == 1:
            gamma, beta = (float(self.values(part)[at]) for part in scales)
            return layer_norm(row, at, gamma=gamma, beta=beta, epsilon=float(node.keywords["eps"]))
        return self._by_element(node, index)

    def _looked_up(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        ids, table = node.inputs
        row = int(self.values(ids)[index[:-1]])
        return self.number(table, (row, index[-1]))

    def _by_element(self, node: Operation, index: tuple[int, ...]) -> Reckoning:
        """The numbers at the same place of every input, then what the operation makes of them.

        Raises:
            ValueError: it makes another number of these alone, so that others take part.
        """
        result = self.values(node)
        steps: list[Step] = []
        rows: tuple[Terms, ...] = ()
        shown: dict[int, str] = {}
        fitting: set[int] = set()
        for i, part in enumerate(node.inputs):
            before = self.values(part)
            if not _fits(before.shape, result.shape):
                shown[i] = _words(part)
                continue
            fitting.add(i)
            found = self.number(part, _broadcast(index, before.shape))
            steps += found.steps
            rows = rows or found.rows
            shown[i] = f"{found.value:.4g}"
        arguments = [_shown(part, shown) for part in (*node.arguments, *node.keywords.values())]
        value = float(result[index])
        alone = [self._alone(node, index, fitting, beside) for beside in (1, -3)]
        if not math.isnan(value) and not all(math.isclose(one, value, rel_tol=1e-2, abs_tol=1e-4) for one in alone):
            raise ValueError(f"{node.name} reads more than the numbers at {index}")
        return Reckoning((*steps, Step(f"{node.name}({', '.join(arguments)})", value)), value, rows)

    def _alone(self, node: Operation, index: tuple[int, ...], fitting: Collection[int], step: int) -> float:
        """The result of an operation of the numbers at a place, with others ``step`` away beside them.

        Raises:
            ValueError: it does nothing with them alone.
        """
        parts = [self.values(part) for part in node.inputs]
        for i in fitting:
            number = parts[i][_broadcast(index, parts[i].shape)]
            beside = ~number if number.dtype is torch.bool else number + step
            parts[i] = beside.expand([min(size, 2) for size in parts[i].shape]).clone()
            parts[i][(-1,) * parts[i].dim()] = number
        try:
            return float(node.apply(tuple(part.clone() for part in parts)).flatten()[-1])
        except (RuntimeError, TypeError, IndexError) as error:
            raise ValueError(f"{node.name} takes no numbers alone") from error


def axis_of(node: Operation) -> int:
    """The axis that an operation goes along; the last unless given."""
    numbers = [part for part in (node.keywords.get("dim"), *node.arguments) if isinstance(part, int)]
    return numbers[0] if numbers else -1


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
    if isinstance(argument, Slot):
        return numbers.get(argument.index, say("given"))
    if isinstance(argument, tuple | list):
        return f"({', '.join(_shown(part, numbers) for part in argument)})"
    return f"{argument:.6g}" if isinstance(argument, float) else str(argument)


def _words(node: Node) -> str:
    return (
        say("of_inputs", operations=", ".join(operations_of(node))) if isinstance(node, Operation) else _name(node)
    )


def _name(node: Node) -> str:
    if isinstance(node, StageInput):
        return node.path.rpartition(".")[2]
    if isinstance(node, ParameterInput):
        return ".".join(node.name.split(".")[-2:])
    return say("given")


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""
