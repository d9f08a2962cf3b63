"""Attention that a model writes out itself: a product of queries and keys, a softmax, a product with the values.

What stands between the product and the softmax is followed as it happens: what is added, filled in or multiplied is
the mask and the bias. Notes are kept beside the tensors and go with them, so that nothing lives longer for it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from headlight.call import four_axes
from headlight.masks import ReadMask, both, read_added

Arguments = tuple[Any, ...]
Handler = Callable[[Arguments, Mapping[str, Any], Any], None]


@dataclass(frozen=True, eq=False)
class Step:
    """One change of scores.

    Attributes:
        change: what was done; ``other`` is a function of which no mask can be read.
        shape: the shape of the scores at that time.
        cells: what was added or multiplied, or where True the cells that were filled.
        number: what they were filled with, or what the added numbers were multiplied with first.
    """

    change: Literal["added", "filled", "multiplied", "other"]
    shape: torch.Size
    cells: Tensor | None = None
    number: float = 1.0


@dataclass(frozen=True, eq=False)
class Scores:
    """A product of queries (..., Tq, Dh) and keys (..., Tk, Dh), and what was done to it since."""

    query: Tensor
    key: Tensor
    scale: float = 1.0
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> Scores:
        """The scores after one more change."""
        return replace(self, steps=(*self.steps, step))

    def read(self, weights: torch.Size, read: Callable[[Tensor], ReadMask] = read_added) -> ReadMask:
        """What masked the scores, broadcastable to the weights, (B, H, Tq, Tk).

        Args:
            weights: the shape of the weights as the model has them.
            read: reads numbers that were added.
        """
        found, zeros = ReadMask(), None
        for step in self.steps:
            if step.cells is None:
                found = replace(found, remark=found.remark or "scores_changed")
                continue
            cells = _like(step.cells, step.shape, weights)
            if step.change == "added":
                found = both(found, read(cells if step.number == 1.0 else cells * step.number))
            elif step.change == "filled":
                fill = None if step.number == -math.inf else step.number
                found = both(found, ReadMask(allowed=~cells, fill=fill) if bool(cells.any()) else ReadMask())
            else:
                zeros = cells == 0
        if zeros is not None and bool((zeros if found.allowed is None else zeros & found.allowed).any()):
            found = replace(found, remark=found.remark or "multiplied_by_zero")
        return found


def _like(cells: Tensor, then: torch.Size, weights: torch.Size) -> Tensor:
    """Cells that were broadcast to scores of one shape, with the axes of weights, whose shape may be another."""
    if then != weights and math.prod(then) == math.prod(weights):
        cells = cells.expand(then).reshape(weights)
    return four_axes(cells) if cells.dim() > 2 else cells


class Draft(Protocol):
    """A softmax that may turn out to be an attention, and what happens to its weights."""

    def dropped(self, share: float) -> None:
        """Some of them were dropped."""

    def changed(self) -> None:
        """They were masked or multiplied after the softmax."""

    def completed(self, weights: Tensor, value: Tensor, output: Tensor | None) -> None:
        """They were multiplied with the values, which gave ``output``, or None where that is not its shape."""


Begin = Callable[[Tensor, Tensor, Scores | None, int], Draft | None]
"""Softmax's input and output, where the input came from, the axis: a draft, or None where nothing is to be kept."""


class WrittenAttentions:
    """Follows scores and weights through the functions of PyTorch that a model calls."""

    def __init__(self, model: nn.Module, begin: Begin) -> None:
        self._begin = begin
        self._notes: dict[int, tuple[weakref.ref[Tensor], Scores | Draft]] = {}
        self._storages_of_model = {_storage(parameter) for parameter in model.parameters()}
        self._handlers: dict[Any, Handler | None] = {}
        self._by_name: dict[str, Handler] = {
            **dict.fromkeys(("matmul", "bmm", "mm"), self._product),
            "baddbmm": self._product_added,
            "einsum": self._einsum,
            **dict.fromkeys(("add", "iadd", "radd"), self._added),
            **dict.fromkeys(("sub", "isub", "subtract"), partial(self._added, sign=-1.0)),
            **dict.fromkeys(("mul", "imul", "rmul", "multiply"), self._multiplied),
            **dict.fromkeys(("div", "truediv", "itruediv"), partial(self._multiplied, divided=True)),
            "masked_fill": self._masked_fill,
            "where": self._where,
            "setitem": self._set_item,
            "softmax": self._softmax,
            "dropout": self._dropout,
            **dict.fromkeys(_CHANGES, self._changed),
            **dict.fromkeys(_SAME, self._passed_on),
        }

    def see(self, function: Callable[..., Any], args: Arguments, kwargs: Mapping[str, Any], output: Any) -> None:  # noqa: ANN401
        """Take note of one call of a function."""
        try:
            handler = self._handlers[function]
        except KeyError:
            handler = self._by_name.get(getattr(function, "__name__", "").strip("_"))
            self._handlers[function] = handler
        if handler is not None:
            with torch._C.DisableTorchFunction():
                handler(args, kwargs, output)

    def _of(self, tensor: object) -> Any:  # noqa: ANN401 - Scores, a Draft or None, told apart by who asks
        entry = self._notes.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def _keep(self, tensor: object, note: Scores | Draft) -> None:
        if isinstance(tensor, Tensor):
            key = id(tensor)
            self._notes[key] = (weakref.ref(tensor, lambda _: self._notes.pop(key, None)), note)

    def _is_draft(self, note: object) -> bool:
        return note is not None and not isinstance(note, Scores)

    # From queries and keys to scores.

    def _product(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        left, right = _given(args, kwargs, "input", "other", "mat2")[:2]
        if not self._to_values(left, right, output) and self._are_activations(left, right):
            self._keep(output, Scores(left.detach(), right.detach().mT))

    def _product_added(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        added, left, right = _given(args, kwargs, "input", "batch1", "batch2")[:3]
        scores = Scores(left.detach(), right.detach().mT, float(kwargs.get("alpha", 1.0)))
        beta = float(kwargs.get("beta", 1.0))
        self._keep(output, scores.then(Step("added", output.shape, added.detach(), beta)) if beta else scores)

    def _einsum(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = list(operands[0])
        if len(operands) != 2 or not isinstance(equation, str):
            return
        left, right = operands
        if not self._to_values(left, right, None) and self._are_activations(left, right):
            of_left, _, of_output = equation.replace(" ", "").partition(",")
            keys_first = of_output.rpartition("->")[2][-1:] in of_left
            query, key = (right, left) if keys_first else (left, right)
            self._keep(output, Scores(query.detach(), key.detach()))

    def _are_activations(self, *tensors: object) -> bool:
        return all(
            isinstance(tensor, Tensor) and tensor.dim() > 1 and _storage(tensor) not in self._storages_of_model
            for tensor in tensors
        )

    # From scores to the softmax, and from the weights on.

    def _added(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor, sign: float = 1.0) -> None:
        note, other = self._noted_first(args)
        if not isinstance(note, Scores):
            return
        if isinstance(other, Tensor):
            factor = sign * float(kwargs.get("alpha", 1.0))
            added = other.detach()
            if added.dtype is torch.bool:  # it counts as ones and zeros: nothing is blocked by it
                added = added.to(output.dtype)
            note = note.then(Step("added", output.shape, added, factor))
        self._keep(output, note)

    def _multiplied(
        self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor, *, divided: bool = False
    ) -> None:
        note, factor = self._noted_first(args)
        if note is None:
            return
        if isinstance(factor, Tensor) and factor.numel() == 1:
            factor = float(factor)
        if isinstance(note, Scores):
            if isinstance(factor, Real):
                note = replace(note, scale=note.scale / float(factor) if divided else note.scale * float(factor))
            elif isinstance(factor, Tensor):
                note = note.then(Step("multiplied", output.shape, factor.detach()))
        elif isinstance(factor, Tensor):
            note.changed()
        self._keep(output, note)

    def _noted_first(self, args: Arguments) -> tuple[Any, object]:
        """The note of the first argument that has one, and the other argument."""
        one, other = args[:2] if len(args) > 1 else (args[0], None)
        note = self._of(one)
        return (note, other) if note is not None else (self._of(other), one)

    def _masked_fill(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        scores, cells, fill = _given(args, kwargs, "mask", "value")
        self._filled(scores, cells, fill, output)

    def _where(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        given = _given(args, kwargs, "condition", "input", "other")
        if len(given) != 3:
            return
        condition, one, other = given if given[0].dtype is torch.bool else (given[1], given[0], given[2])
        if self._of(one) is not None:
            self._filled(one, ~condition, other, output)
        else:
            self._filled(other, condition, one, output)

    def _set_item(self, args: Arguments, kwargs: Mapping[str, Any], output: None) -> None:
        scores, index, fill = args
        if self._of(scores) is not None:
            cells = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
            cells[index] = True
            self._filled(scores, cells, fill, scores)

    def _filled(self, kept: object, cells: Tensor, fill: object, output: Tensor) -> None:
        note = self._of(kept)
        if isinstance(note, Scores):
            number = float(fill.detach().max()) if isinstance(fill, Tensor) else float(fill)  # type: ignore[arg-type]
            note = note.then(Step("filled", output.shape, cells.detach().clone(), number))
        elif note is not None:
            note.changed()
        else:
            return
        self._keep(output, note)

    def _changed(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        note = self._of(args[0]) if args else None
        if isinstance(note, Scores):
            self._keep(output, note.then(Step("other", output.shape)))

    def _passed_on(self, args: Arguments, kwargs: Mapping[str, Any], output: object) -> None:
        note = self._of(args[0]) if args else None
        if note is not None:
            self._keep(output, note)

    def _softmax(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        scores, *rest = _given(args, kwargs, "input", "dim")
        if not rest or not isinstance(rest[0], int) or output.dim() < 2:
            return
        note, axis = self._of(scores), rest[0] if rest[0] < 0 else rest[0] - output.dim()
        known = note if isinstance(note, Scores) else None
        if axis == -1 or known is not None:
            draft = self._begin(scores, output, known, axis)
            if draft is not None:
                self._keep(output, draft)

    def _dropout(self, args: Arguments, kwargs: Mapping[str, Any], output: Tensor) -> None:
        weights, share, is_training, *_ = (*_given(args, kwargs, "input", "p", "training"), 0.5, True)
        note = self._of(weights)
        if self._is_draft(note) and is_training:
            note.dropped(float(share))
        if note is not None:
            self._keep(output, note)

    def _to_values(self, left: object, right: object, output: Tensor | None) -> bool:
        """Whether one of two factors was weights, whose product with the other is then taken note of."""
        for weights, value, product in ((left, right, output), (right, left, None)):
            draft = self._of(weights)
            if self._is_draft(draft) and self._are_activations(value):
                draft.completed(weights, value, product)
                return True
        return False


_SAME = (
    *("float", "double", "half", "bfloat16", "to", "type", "type_as", "clone", "contiguous", "nan_to_num"),
    *("view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "expand", "flatten", "unflatten"),
    *("getitem", "detach"),
)
"""Functions whose output is the scores or the weights again, in another type or shape."""

_CHANGES = ("tanh", "clamp", "relu", "sigmoid", "exp", "pow")
"""Functions that make other scores of scores."""


def _given(args: Arguments, kwargs: Mapping[str, Any], *names: str) -> Arguments:
    """The positional arguments, and those by name after them."""
    return (*args, *(kwargs[name] for name in names if name in kwargs))


def _storage(tensor: Tensor) -> int:
    """Where its numbers lie; 0 where that cannot be said."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0
