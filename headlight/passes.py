"""A pass of any model whose outputs can be differentiated by its tokens, or computed again with other tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from headlight.inputs import arguments_of
from headlight.known_functions import SCALED_DOT_PRODUCT
from headlight.modules import Arguments, Function, Keywords, RunningModules
from model.dataflow import name_of

LOOK_UPS = frozenset(("embedding", "getitem", "index_select"))
"""Functions that take the vectors of ids out of a table."""

_ONE_BY_ONE = frozenset(
    (
        *("view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "getitem", "contiguous", "clone"),
        *("long", "int", "to", "type", "type_as", "detach", "add", "iadd", "sub", "isub", "mul", "imul", "where"),
        *("masked_fill", "clamp", "clamp_min", "clamp_max", "remainder"),
    )
)
"""Functions that leave each id at its place."""

_ATTENTIONS = {**dict.fromkeys(SCALED_DOT_PRODUCT, -2), F.multi_head_attention_forward: 0}
"""The axis of the queries in what the function returns."""


@dataclass(frozen=True)
class Subject:
    """A model, what it is called with, and which of that are the tokens.

    Attributes:
        model: the model.
        args: what it is called with.
        kwargs: what it is called with by name.
        place: the number or the name of the argument that holds the tokens, (B, T) ids or (B, T, D) vectors; those
            of one sequence without an axis for it, (T,) or (T, D).
        token_axis: the axis of the tokens in it, in the modules' outputs and in the output: 1, or 0 for (T, B, D).
        pick: takes the tensor to be judged from the model's output; None takes the first that has the tokens' axis.
        batch: the mapping by which the model is given all of ``kwargs``, as in ``model(batch)``; None for none.
        needs_rows: whether the tensor to be judged must have a row for each token; else it is the first that has
            something of each sequence, such as a pooled vector.
        is_alone: whether the tokens, the modules' outputs and the output have no axis for sequences.
    """

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    place: int | str
    token_axis: int
    pick: Callable[[Any], Tensor] | None
    batch: Mapping[str, Any] | None = None
    needs_rows: bool = True
    is_alone: bool = False

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by their names, those by place first."""
        return arguments_of(self.model, self.args, self.kwargs)

    @property
    def name(self) -> str:
        """The name of the argument that holds the tokens."""
        return self.place if isinstance(self.place, str) else list(self.arguments)[self.place]

    @property
    def tokens(self) -> Tensor:
        """The tokens, (B, T, ...)."""
        tokens: Tensor = self.args[self.place] if isinstance(self.place, int) else self.kwargs[self.place]
        return self.with_sequences(tokens)

    def with_sequences(self, tensor: Tensor) -> Tensor:
        """The same with an axis for sequences."""
        return tensor[None] if self.is_alone else tensor

    @property
    def n_tokens(self) -> int:
        """T."""
        return self.tokens.shape[self.token_axis]

    @property
    def n_sequences(self) -> int:
        """B."""
        return self.tokens.shape[1 - self.token_axis]

    def of_item(self, output: Tensor, item: int) -> Tensor:
        """The part of an output that is of one sequence, (T, ...) where it has a row for each token."""
        return output.select(1 - self.token_axis if self.has_rows(output) else 0, item)

    def given(self, tokens: Tensor) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return what the model is called with, with other tokens of the same shape."""
        args, kwargs = list(self.args), dict(self.kwargs)
        own = tokens[0] if self.is_alone else tokens
        if isinstance(self.place, int):
            args[self.place] = own
        else:
            kwargs[self.place] = own
        if self.batch is None:
            return args, kwargs
        batch = copy(self.batch) if isinstance(self.batch, MutableMapping) else {}
        batch.update(kwargs)
        return (batch,), {}

    def call(self, tokens: Tensor) -> object:
        """The model's answer to other tokens of the same shape."""
        args, kwargs = self.given(tokens)
        return self.model(*args, **kwargs)

    def run(self, tokens: Tensor) -> Tensor:
        """The output for other tokens of the same shape.

        Raises:
            ValueError: the output has no axis of the tokens, or of the sequences.
        """
        output = self.call(tokens)
        picked = output if self.pick is None else [self.pick(output)]
        for tensor in map(self.with_sequences, tensors_in(picked)):
            if self.has_rows(tensor) if self.needs_rows else self.has_sequences(tensor):
                return tensor
        rows = f"{self.n_tokens} rows along axis {self.token_axis}, one for each token"
        what = rows if self.needs_rows else "something of each sequence"
        if self.pick is not None:
            raise ValueError(f"what output= takes must be a tensor of real numbers with {what}")
        raise ValueError(
            f"the output has no tensor of real numbers with {what}: "
            "say by output= how to take it from what the model returns, or by of= which argument holds the tokens"
        )

    def has_sequences(self, tensor: Tensor) -> bool:
        """True where a tensor has something of each sequence."""
        return tensor.is_floating_point() and self.n_sequences in tensor.shape[:2]

    def has_rows(self, tensor: Tensor) -> bool:
        """True if a tensor has one row for each token."""
        is_float = tensor.is_floating_point() and tensor.dim() >= 2
        return is_float and tensor.shape[self.token_axis] == self.n_tokens

    def is_turned(self, tensor: Tensor) -> bool:
        """True if a tensor is (T, B, ...) where the model is given (B, T, ...), or the other way round."""
        n_first, n_second = self.tokens.shape[:2]
        return tensor.is_floating_point() and tensor.shape[:2] == (n_second, n_first)


@dataclass(frozen=True, eq=False)
class StageOutput:
    """The output of one module, or of the attention in it.

    Attributes:
        module: the module's path.
        kind: its class, or "attention".
        value: what it returned.
        axis: the axis of the tokens; None where it has one row for each sequence.
    """

    module: str
    kind: str
    value: Tensor
    axis: int | None

    @property
    def batch_axis(self) -> int:
        """The axis of the sequences."""
        return 1 if self.axis is not None and self.axis % self.value.dim() == 0 else 0


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass: the output, every stage before it, and the embeddings that it can be differentiated by.

    Attributes:
        output: (B, T, ...), or (T, B, ...).
        stages: what the attentions and modules came to, in the order computed.
        embedded: the vectors that stand for the tokens; empty where none were seen, or not all that does.
        n_ids: how many ids the model knows; None where the tokens are vectors.
    """

    output: Tensor
    stages: tuple[StageOutput, ...]
    embedded: tuple[Tensor, ...]
    n_ids: int | None = None

    def output_stage(self, subject: Subject) -> StageOutput:
        """The output as the last stage."""
        return StageOutput("", "output", self.output, subject.token_axis if subject.has_rows(self.output) else None)


def run_pass(subject: Subject, tokens: Tensor, *, differentiable: bool) -> Pass:
    """Run a model once, always with the same random numbers.

    Args:
        subject: the model.
        tokens: the tokens to run it with.
        differentiable: whether the output is to be differentiated by the embeddings.
    """
    modules = RunningModules(subject.model)
    with torch.random.fork_rng(), torch.inference_mode(False), torch.set_grad_enabled(differentiable):
        torch.manual_seed(0)
        notes = _Notes(subject, tokens.detach().clone(), differentiable, modules)
        leaf = notes.leaf(notes.tokens) if tokens.is_floating_point() and differentiable else notes.tokens
        with modules.followed(lambda _: None, notes.left), notes:
            output = subject.run(leaf)
    embedded = () if notes.is_incomplete else tuple(notes.embedded)
    return Pass(output, tuple(notes.stages), embedded, notes.n_ids)


@dataclass(eq=False)
class _Notes(TorchFunctionMode):
    """Puts leaves in the place of the tokens' embeddings, and keeps what attentions and modules come to.

    Ids are told by their place: they are the tokens that the model was given, or were made of them one by one.
    """

    subject: Subject
    tokens: Tensor
    differentiable: bool
    modules: RunningModules
    stages: list[StageOutput] = field(default_factory=list)
    embedded: list[Tensor] = field(default_factory=list)
    n_ids: int | None = None
    is_incomplete: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self._in_place = WeakIdKeyDictionary({self.tokens: True})

    def leaf(self, vectors: Tensor) -> Tensor:
        """The same vectors to go on with, which may be written over, behind a leaf that is kept."""
        leaf = vectors.detach().clone().requires_grad_()
        self.embedded.append(leaf)
        return leaf.clone()

    def __torch_function__(
        self, function: Function, types: object, args: Arguments = (), kwargs: Keywords | None = None
    ) -> Any:  # noqa: ANN401
        output = function(*args, **(kwargs or {}))
        if function in _ATTENTIONS or type(function).__name__ == "FlexAttentionHOP":
            value, axis = tensors_in(output)[0], _ATTENTIONS.get(function, -2)
            if value.shape[axis] == self.subject.n_tokens:
                self.stages.append(StageOutput(self.modules.path, "attention", value, axis))
        elif not self.tokens.is_floating_point():
            return self._followed(function, args, kwargs or {}, output)
        return output

    def _followed(self, function: Function, args: Arguments, kwargs: Keywords, output: object) -> object:
        """Follow the ids from one tensor to the next, up to where they are looked up."""
        tensors = tensors_in((args, kwargs))
        in_place = [self._in_place[tensor] for tensor in tensors if tensor in self._in_place]
        name = name_of(function)
        if not in_place or name.startswith("new_") or name.endswith("_like"):
            return output
        if name == "setitem":
            self._in_place[args[0]] = False
        elif isinstance(output, Tensor) and output.is_floating_point():
            table = next((tensor for tensor in tensors if tensor.is_floating_point()), None)
            if table is None or name not in LOOK_UPS or (name == "getitem" and not isinstance(table, nn.Parameter)):
                return output
            if not all(in_place):
                self.is_incomplete = True
                return output
            self.n_ids = table.shape[0]
            return self.leaf(output) if self.differentiable else output
        elif isinstance(output, Tensor) and output.dtype is not torch.bool:
            keeps_places = name in _ONE_BY_ONE and output.numel() == self.tokens.numel()
            self._in_place[output] = keeps_places and all(in_place)
        return output

    def left(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:  # noqa: ANN401
        """Keep what a module came to."""
        with torch._C.DisableTorchFunction():
            for tensor in map(self.subject.with_sequences, tensors_in(output)[:1]):
                has_rows = self.subject.has_rows(tensor)
                if tensor.dim() > 2 and (has_rows or self.subject.is_turned(tensor)):
                    path, kind = self.modules.path_of(module), type(module).__name__
                    axis = self.subject.token_axis if has_rows else 1 - self.subject.token_axis
                    self.stages.append(StageOutput(path, kind, tensor, axis))


def tensors_in(value: object) -> list[Tensor]:
    """Every tensor in nested tuples, lists, dictionaries and dataclasses, in order."""
    if isinstance(value, Tensor):
        return [value]
    parts: Sequence[object] = ()
    if isinstance(value, Mapping):
        parts = tuple(value.values())
    elif isinstance(value, tuple | list):
        parts = value
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, name) for name in value.__dataclass_fields__]
    return [tensor for part in parts for tensor in tensors_in(part)]
