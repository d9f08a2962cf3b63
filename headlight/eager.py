"""Attention that a model writes out itself: a product of queries and keys, a softmax, a product with the values.

What stands between the product and the softmax is followed as it happens: what is added, filled in or multiplied is
the mask and the bias. Notes are kept beside the tensors and go with them, so that nothing lives longer for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headlight.eager_drafts import EagerDraft, Meeting, Softmax
from headlight.eager_scores import Axes, Exponentials, Move, Role, Scores, Step, Total
from headlight.einsum import Matrices, arranged, as_matrices, letters_of
from headlight.modules import Arguments, Function, Keywords
from headlight.origins import Origins
from model.dataflow import name_of

Handler = Callable[[Arguments, Keywords, Any], None]
Note = Scores | Exponentials | Total | EagerDraft
Begin = Callable[[Softmax], EagerDraft | None]
"""Told of each softmax: a draft, or None where nothing is to be kept."""


class EagerAttentions:
    """Follows scores and weights through the functions of PyTorch that a model calls.

    Args:
        model: the model, whose parameters are no activations.
        begin: is told of each softmax.
        unweighted: is told where a product of two activations meets a third one without a softmax, and by which
            functions it went.
        origins: gives what queries and keys were computed from.
    """

    def __init__(
        self,
        model: nn.Module,
        begin: Begin,
        unweighted: Callable[[tuple[str, ...]], None],
        origins: Callable[[Tensor, Tensor], Origins],
    ) -> None:
        self._begin = begin
        self._unweighted = unweighted
        self._origins = origins
        self._notes: dict[int, tuple[weakref.ref[Tensor], Note, Axes]] = {}
        # held, so that no other one takes the place of one that is offloaded meanwhile
        self._storages_of_model = {_place(storage): storage for storage in map(_storage, model.parameters())}
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
            **{name: partial(self._triangle, name=name) for name in ("tril", "triu")},
            **dict.fromkeys(("cat", "concat"), self._joined),
            "softmax": self._softmax,
            "log_softmax": self._log_softmax,
            "logsumexp": partial(self._total, of=Scores),
            "exp": self._exponentials,
            "sum": partial(self._total, of=Exponentials),
            "dropout": self._dropout,
            **dict.fromkeys(("linear", "conv2d"), self._mixed),
            **{name: partial(self._changed, name=name) for name in _CHANGES},
            **dict.fromkeys(_SAME, self._passed_on),
        }
        for name in _MOVES:
            self._by_name[name] = partial(self._moved, name=name)

    def see(self, function: Function, args: Arguments, kwargs: Keywords, output: Any) -> None:  # noqa: ANN401
        """Take note of one call of a function."""
        if (handler := self._by_name.get(name_of(function))) is not None:
            with torch._C.DisableTorchFunction():
                handler(args, kwargs, output)

    def _entry(self, tensor: object) -> tuple[Any, Axes | None]:
        """The note of a tensor, told apart by who asks, and its axes."""
        entry = self._notes.get(id(tensor))
        return entry[1:] if entry is not None and entry[0]() is tensor else (None, None)

    def _of(self, tensor: object) -> Any:  # noqa: ANN401
        return self._entry(tensor)[0]

    def _keep(self, tensor: object, note: Note, axes: Axes | None) -> None:
        if isinstance(tensor, Tensor):
            key = id(tensor)
            known = Axes.of(tensor.shape) if axes is None else axes
            if known.view is not None and known.view.shape != tensor.shape:  # it was broadcast to more
                known = replace(known, view=None)
            self._notes[key] = (weakref.ref(tensor, lambda _: self._notes.pop(key, None)), note, known)

    # From queries and keys to scores.

    def _product(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        left, right = _arguments(args, kwargs, "input", "other", "mat2")[:2]

        def matrices(weights: Tensor) -> Matrices | None:
            return (left, right, output) if weights is left else None

        if not self._to_values((left, -1, -2), (right, -2, -1), matrices) and self._are_activations(left, right):
            origins = self._origins(left, right)
            roles = _of_matrices(output.dim())
            self._keep(output, Scores(left.detach(), right.detach().mT, roles, origins=origins), None)

    def _product_added(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        added, left, right = _arguments(args, kwargs, "input", "batch1", "batch2")[:3]
        scores = Scores(
            left.detach(),
            right.detach().mT,
            _of_matrices(3),
            float(kwargs.get("alpha", 1.0)),
            origins=self._origins(left, right),
        )
        beta = float(kwargs.get("beta", 1.0))
        step = Step("added", added.detach().expand(output.shape), beta)
        self._keep(output, scores.then(step) if beta else scores, None)

    def _einsum(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = list(operands[0])
        if len(operands) != 2 or not isinstance(equation, str) or "->" not in equation:
            return
        left, right = operands
        one, other, result = letters_of(equation, left.dim(), right.dim())
        summed = [letter for letter in one if letter in other and letter not in result]
        if len(summed) == 1 and right.dim() == 2 and summed[0] != one[-1] and self._of(left) is not None:
            self._mixed((left,), {}, output)
            return
        if len(summed) != 1:
            return
        factors: list[Factor] = []
        for tensor, letters, others in ((left, one, other), (right, other, one)):
            own = [i for i, letter in enumerate(letters) if letter in result and letter not in others]
            factors.append((tensor, letters.index(summed[0]), own[-1] if own else None))
        if all(kept is None for _, _, kept in factors):  # a sum of products, of which neither factor keeps an axis
            return

        def matrices(weights: Tensor) -> Matrices | None:
            factors = ((left, one), (right, other))[:: 1 if weights is left else -1]
            return as_matrices(summed[0], *factors, (output, result))

        if self._to_values(factors[0], factors[1], matrices):
            return
        of_keys = [letter for letter in result if letter not in one]
        of_queries = [letter for letter in result if letter not in other]
        if not of_keys or not of_queries or not self._are_activations(left, right):
            return
        key = of_keys[-1]
        query = min(of_queries, key=lambda letter: abs(result.index(letter) - result.index(key)))
        shared = [letter for letter in result if letter not in (query, key)]
        roles: dict[str, Role] = {**dict.fromkeys(shared, "shared"), query: "query", key: "key"}
        scores = Scores(
            arranged(left.detach(), one, [*shared, query, *summed]),
            arranged(right.detach(), other, [*shared, key, *summed]),
            tuple(roles[letter] for letter in result),
            origins=self._origins(left, right),
        )
        self._keep(output, scores, None)

    def _are_activations(self, *tensors: object) -> bool:
        return all(
            isinstance(tensor, Tensor)
            and tensor.dim() > 1
            and _place(_storage(tensor)) not in self._storages_of_model
            for tensor in tensors
        )

    # From scores to the softmax, and from the weights on.

    def _added(self, args: Arguments, kwargs: Keywords, output: Tensor, sign: float = 1.0) -> None:
        tensor, other = self._noted_first(args)
        note, axes = self._entry(tensor)
        if isinstance(note, EagerDraft):
            note.changed()
            self._keep(output, note, axes)
        elif isinstance(note, Total):
            self._keep(output, note, axes)
        if not isinstance(note, Scores):
            return
        total = self._of(other)
        if isinstance(total, Total) and sign < 0:  # less the logarithm of their sum: to be raised to weights
            self._keep(output, Exponentials(note, tensor.detach(), total.axis), axes)
            return
        if isinstance(other, Tensor) and not _is_same_for_keys(other, output):
            factor = sign * float(kwargs.get("alpha", 1.0))
            added = other.detach()
            if added.dtype is torch.bool:  # it counts as ones and zeros: nothing is blocked by it
                added = added.to(output.dtype)
            note = note.then(Step("added", added.expand(output.shape), factor))
        self._keep(output, note, axes)

    def _multiplied(self, args: Arguments, kwargs: Keywords, output: Tensor, *, divided: bool = False) -> None:
        tensor, factor = self._noted_first(args)
        note, axes = self._entry(tensor)
        if note is None:
            return
        total = self._of(factor)
        if isinstance(note, Exponentials) and isinstance(total, Total) and divided:
            self._weights(note.masked, output, note.scores, axes, total.axis)
            return
        if isinstance(factor, Tensor) and factor.numel() == 1:
            factor = float(factor)
        if isinstance(note, Scores):
            if isinstance(factor, Real):
                note = replace(note, scale=note.scale / float(factor) if divided else note.scale * float(factor))
            elif isinstance(factor, Tensor):
                note = note.then(Step("multiplied", factor.detach().expand(output.shape)))
        elif isinstance(note, Exponentials) and isinstance(factor, Tensor):
            note = note.without((factor.detach() == 0).expand(output.shape))
        elif isinstance(note, EagerDraft) and isinstance(factor, Tensor) and not _is_same_for_keys(factor, output):
            note.changed()
        self._keep(output, note, axes)

    def _noted_first(self, args: Arguments) -> tuple[Any, Any]:
        """The first argument that has a note, and the other argument."""
        one, other = args[:2] if len(args) > 1 else (args[0], None)
        return (one, other) if self._of(one) is not None else (other, one)

    def _masked_fill(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        scores, cells, fill = _arguments(args, kwargs, "mask", "value")
        self._filled(scores, cells, fill, output)

    def _where(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        arguments = _arguments(args, kwargs, "condition", "input", "other")
        if len(arguments) != 3:
            return
        condition, one, other = arguments
        if condition.dtype is not torch.bool:
            condition, one = one, condition
        if self._of(one) is not None:
            self._filled(one, ~condition, other, output)
        else:
            self._filled(other, condition, one, output)

    def _set_item(self, args: Arguments, kwargs: Keywords, output: None) -> None:
        scores, index, fill = args
        (note, axes), part = self._entry(scores), self._of(fill)
        if isinstance(note, Scores) and isinstance(part, Scores) and part.query is note.query:  # scores[i] += bias
            steps = [_placed_in(scores, index, step) for step in part.steps[len(note.steps) :]]
            if part.scale != note.scale:
                steps.append(Step("other", name="scaling a part"))
            self._keep(scores, replace(note, steps=(*note.steps, *steps)), axes)
        elif note is not None:
            fill = _placed(scores, index, fill.detach()) if isinstance(fill, Tensor) else fill
            self._filled(scores, _placed(scores, index, torch.tensor(True)), fill, scores)

    def _triangle(self, args: Arguments, kwargs: Keywords, output: Tensor, name: str) -> None:
        """The other triangle becomes zero."""
        note, axes = self._entry(args[0])
        if note is None:
            return
        kept = getattr(torch.ones_like(output, dtype=torch.bool), name)(*args[1:], **kwargs)
        if isinstance(note, Scores):
            self._keep(output, note.then(Step("multiplied", kept)), axes)
        else:
            self._filled(args[0], ~kept, 0.0, output)

    def _filled(self, scores: object, cells: Tensor, fill: object, output: Tensor) -> None:
        note, axes = self._entry(scores)
        if isinstance(note, EagerDraft):
            note.changed()
            self._keep(output, note, axes)
        if not isinstance(note, Scores | Exponentials):
            return
        cells = cells.detach().clone().expand(output.shape)
        numbers = fill
        if isinstance(fill, Tensor) and fill.numel() > 1:
            numbers = fill.detach().expand(output.shape)[cells].unique()  # type: ignore[no-untyped-call]
            numbers = numbers if len(numbers) else 0.0
        is_one = not isinstance(numbers, Tensor) or numbers.numel() == 1
        if isinstance(note, Exponentials):
            if is_one and float(numbers) == 0:  # type: ignore[arg-type]
                self._keep(output, note.without(cells), axes)
            return
        step = Step("filled", cells, float(numbers)) if is_one else Step("other", name="other numbers")  # type: ignore[arg-type]
        self._keep(output, note.then(step), axes)

    def _joined(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        """Columns that are no products, such as a sink's, stand beside the scores."""
        parts, axis, *_ = (*_arguments(args, kwargs, "tensors", "dim"), 0)
        noted = [i for i, part in enumerate(parts) if isinstance(self._of(part), Scores)]
        if len(noted) != 1 or axis % output.dim() != output.dim() - 1:
            return
        before, n_columns = sum(part.shape[-1] for part in parts[: noted[0]]), parts[noted[0]].shape[-1]
        note, axes = self._entry(parts[noted[0]])
        if axes is None:
            return
        columns = (..., slice(before, before + n_columns))
        steps = tuple(_placed_in(output, columns, step) for step in note.steps)
        is_kept = axes.view is not None and axes.view.is_contiguous() and len(note.roles) == output.dim()
        self._keep(output, replace(note, steps=steps), None if is_kept else replace(axes, view=None))

    def _changed(self, args: Arguments, kwargs: Keywords, output: Tensor, name: str) -> None:
        note, axes = self._entry(args[0]) if args else (None, None)
        if isinstance(note, Scores):
            self._keep(output, note.then(Step("other", name=name)), axes)
        elif isinstance(note, Total):
            self._keep(output, note, axes)

    def _mixed(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        """Each becomes a sum over all heads, as in talking heads."""
        note, axes = self._entry(_arguments(args, kwargs, "input")[0])
        if output.dim() < 4:
            return
        if isinstance(note, Scores):
            self._keep(output, note.then(Step("other", name="mixing")), axes)
        elif isinstance(note, EagerDraft):
            note.mixed()
            self._keep(output, note, axes)

    def _passed_on(self, args: Arguments, kwargs: Keywords, output: object) -> None:
        note, axes = self._entry(args[0]) if args else (None, None)
        if note is not None:
            self._keep(output, note, axes)

    def _moved(self, args: Arguments, kwargs: Keywords, output: object, name: str) -> None:
        note, axes = self._entry(args[0]) if args else (None, None)
        if note is None or axes is None:
            return
        move = _move(name, args[1:], kwargs)
        if isinstance(note, Scores):
            note = note.moved(move)
        elif isinstance(note, Exponentials):
            note = replace(note, scores=note.scores.moved(move), masked=move(note.masked))
        self._keep(output, note, axes.moved(move))

    def _softmax(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        axis = _axis(args, kwargs)
        scores = _arguments(args, kwargs, "input")[0]
        if axis is not None and output.dim() > 1:
            note, axes = self._entry(scores)
            self._weights(scores, output, note if isinstance(note, Scores) else None, axes, axis, is_plain=True)

    def _weights(
        self,
        scores: Tensor,
        output: Tensor,
        known: Scores | None,
        axes: Axes | None,
        axis: int,
        *,
        is_plain: bool = False,
    ) -> None:
        axis %= output.dim()
        if not output.numel() or (known is None and axis != output.dim() - 1):
            return
        roles: tuple[Role | Literal[""], ...] = ()
        if known is not None and axes is not None and len(axes.start) == len(known.roles):
            origins = [axes.origin(each) for each in range(output.dim())]
            roles = tuple("" if origin is None else known.roles[origin] for origin in origins)
        draft = self._begin(Softmax(scores, output, axis, known, is_plain, roles))
        if draft is not None:
            self._keep(output, draft, None)

    def _exponentials(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        note, axes = self._entry(args[0])
        if isinstance(note, Exponentials) and note.axis is not None:
            self._weights(note.masked, output, note.scores, axes, note.axis)
        elif isinstance(note, Scores):
            self._keep(output, Exponentials(note, args[0].detach()), axes)

    def _log_softmax(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        note, axes = self._entry(args[0])
        axis = _axis(args, kwargs)
        if isinstance(note, Scores) and axis is not None:
            self._keep(output, Exponentials(note, args[0].detach(), axis), axes)

    def _total(self, args: Arguments, kwargs: Keywords, output: Tensor, of: type) -> None:
        note, axis = self._of(args[0]), _axis(args, kwargs)
        if isinstance(note, of) and axis is not None:
            self._keep(output, Total(axis), None)

    def _dropout(self, args: Arguments, kwargs: Keywords, output: Tensor) -> None:
        weights, share, is_training, *_ = (*_arguments(args, kwargs, "input", "p", "training"), 0.5, True)
        note, axes = self._entry(weights)
        if isinstance(note, EagerDraft) and is_training:
            note.dropped(float(share))
        if note is not None:
            self._keep(output, note, axes)

    def _to_values(self, left: Factor, right: Factor, matrices: Callable[[Tensor], Matrices | None]) -> bool:
        """Take note of the product of weights with another factor; return True if one of two factors was weights.

        Args:
            left: the first factor.
            right: the second one.
            matrices: gives both and their product, by that of the two which is the weights.
        """
        for (weights, axis, query), (value, *_) in ((left, right), (right, left)):
            note, axes = self._entry(weights)
            if not isinstance(value, Tensor) or not self._are_activations(value):
                continue
            if axes is not None and isinstance(note, EagerDraft) and not self._has_features_for_keys(note, value):
                axis %= weights.dim()
                first = axes.first(axis)
                columns = slice(first, first + weights.shape[axis])
                of_queries = None if query is None else axes.origin(query)
                has_queries = query is not None and not axes.is_new(query)
                origin = axes.origin(axis)
                product = matrices(weights)
                note.completed(Meeting(weights, axis, origin, of_queries, has_queries, columns, value, product))
                return True
            if isinstance(note, Scores | Exponentials):
                scores = note if isinstance(note, Scores) else note.scores
                names = [step.name for step in scores.steps if step.name] + ["exp"] * isinstance(note, Exponentials)
                self._unweighted(tuple(names))
        return False

    def _has_features_for_keys(self, draft: EagerDraft, value: Tensor) -> bool:
        """True for linear attention: a softmax over features meets sums over all tokens (Shen et al. 2021, 3.1)."""
        return not draft.has_product and isinstance(self._of(value), Scores)


Factor = tuple[Any, int, int | None]
"""One of two factors, its axis that is summed over, and its axis that the product keeps and the other has not."""

_SAME = (
    *("float", "double", "half", "bfloat16", "to", "type", "type_as", "clone", "contiguous", "nan_to_num"),
    "detach",
)
"""Functions whose output is the scores or the weights again, or nearly so."""

_MOVES = (
    *("view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "expand", "flatten", "unflatten"),
    *("getitem", "movedim", "swapaxes", "swapdims", "mT", "T"),
)
"""Functions whose output is the scores or the weights again, in another shape."""

_CHANGES = ("tanh", "clamp", "clamp_min", "relu", "sigmoid", "pow", "square", "softplus", "elu", "silu", "gelu")
"""Functions that make other scores of scores."""


def _of_matrices(n_axes: int) -> tuple[Role, ...]:
    """The axes of a product of matrices."""
    shared: Role = "shared"
    return (*(shared,) * (n_axes - 2), "query", "key")


def _move(name: str, rest: Arguments, kwargs: Keywords) -> Move:
    """A change of shape, for another tensor of the same shape."""
    if name in ("mT", "T"):
        return lambda tensor: tensor.mT if name == "mT" else tensor.T
    method = {"view": "reshape", "getitem": "__getitem__"}.get(name, name)
    return lambda tensor: getattr(tensor, method)(*rest, **kwargs)


def _placed(scores: Tensor, index: Any, part: Tensor, neutral: float = 0.0) -> Tensor:  # noqa: ANN401
    """Numbers that stand at an index of scores, in the shape of all; elsewhere stands another one."""
    whole = torch.full(scores.shape, neutral, dtype=part.dtype, device=scores.device)
    whole[index] = part.to(scores.device)
    return whole


def _placed_in(scores: Tensor, index: Any, step: Step) -> Step:  # noqa: ANN401
    """A change of the scores at an index, as one of all scores."""
    neutral = 1.0 if step.change == "multiplied" else 0.0
    return step if step.cells is None else replace(step, cells=_placed(scores, index, step.cells, neutral))


def _is_same_for_keys(cells: Tensor, scores: Tensor) -> bool:
    """True for numbers that all keys of a query share, so that the softmax takes no notice of them."""
    return scores.shape[-1] > 1 and (cells.dim() == 0 or cells.shape[-1] == 1)


def _axis(args: Arguments, kwargs: Keywords) -> int | None:
    """The one axis that a function goes along; None where it is not said, or several are."""
    tensor, *rest = _arguments(args, kwargs, "input", "dim")
    axis = rest[0] if rest else None
    if isinstance(axis, tuple | list) and len(axis) == 1:
        axis = axis[0]
    return axis % tensor.dim() if isinstance(axis, int) and isinstance(tensor, Tensor) else None


def _arguments(args: Arguments, kwargs: Keywords, *names: str) -> Arguments:
    """The positional arguments, and those by name after them."""
    return (*args, *(kwargs[name] for name in names if name in kwargs))


def _storage(tensor: Tensor) -> torch.UntypedStorage | None:
    """Return the memory of a tensor, also one without numbers; None where it cannot be told."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError, ValueError):  # the last one of a lazy module's parameter
        return None


def _place(storage: torch.UntypedStorage | None) -> int:
    """Return a number that tensors with the same memory share."""
    return 0 if storage is None else storage._cdata
