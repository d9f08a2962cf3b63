"""A pass of any model whose outputs can be differentiated by its tokens, or computed again with other tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from headlight.modules import RunningModules

_EMBEDDINGS = {F.embedding: (0, 1), torch.embedding: (1, 0)}
"""Where the ids and the table stand among the arguments."""

_ATTENTIONS = {F.scaled_dot_product_attention: -2, F.multi_head_attention_forward: 0}
"""The axis of the queries in what the function returns."""


@dataclass(frozen=True)
class Subject:
    """A model, what it is called with, and which of that are the tokens.

    Attributes:
        model: the model.
        args: what it is called with.
        kwargs: what it is called with by name.
        place: the number or the name of the argument that holds the tokens, (B, T) ids or (B, T, D) vectors.
        token_axis: the axis of the tokens in it, in the modules' outputs and in the output: 1, or 0 for (T, B, D).
        pick: takes the tensor to be judged from the model's output; None takes the first that has the tokens' axis.
    """

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    place: int | str
    token_axis: int
    pick: Callable[[Any], Tensor] | None

    @property
    def tokens(self) -> Tensor:
        """The tokens."""
        given: Tensor = self.args[self.place] if isinstance(self.place, int) else self.kwargs[self.place]
        return given

    @property
    def n_tokens(self) -> int:
        """T."""
        return self.tokens.shape[self.token_axis]

    @property
    def n_sequences(self) -> int:
        """B."""
        return self.tokens.shape[1 - self.token_axis]

    def part(self, item: int, kept: Tensor) -> Subject:
        """One sequence of the batch without its other tokens, in every input that is (B, T, ...)."""
        shape = self.tokens.shape[:2]

        def cut(given: object) -> object:
            is_one = isinstance(given, Tensor) and given.shape[:2] == shape
            return given[item : item + 1, kept.to(given.device)] if is_one else given  # type: ignore[index,attr-defined]

        kwargs = {name: cut(given) for name, given in self.kwargs.items()}
        return replace(self, args=tuple(cut(given) for given in self.args), kwargs=kwargs)

    def run(self, tokens: Tensor) -> Tensor:
        """The output for other tokens of the same shape.

        Raises:
            ValueError: the output has no axis of the tokens.
        """
        args, kwargs = list(self.args), dict(self.kwargs)
        if isinstance(self.place, int):
            args[self.place] = tokens
        else:
            kwargs[self.place] = tokens
        output = self.model(*args, **kwargs)
        if self.pick is not None:
            return self.pick(output)
        for tensor in tensors_in(output):
            if self.has_rows(tensor):
                return tensor
        raise ValueError(
            f"the output has no tensor with {self.n_tokens} rows along axis {self.token_axis}, one for each token: "
            "say by output= how to take it from what the model returns"
        )

    def has_rows(self, tensor: Tensor) -> bool:
        """Whether a tensor has one row for each token."""
        is_float = tensor.is_floating_point() and tensor.dim() >= 2
        return is_float and tensor.shape[self.token_axis] == self.n_tokens


@dataclass(frozen=True, eq=False)
class StageOutput:
    """What one module, or the attention in it, came to.

    Attributes:
        module: the module's path.
        kind: its class, or "attention".
        value: what it returned.
        axis: the axis of the tokens.
    """

    module: str
    kind: str
    value: Tensor
    axis: int


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass: the output, every stage before it, and the embeddings that it can be differentiated by.

    Attributes:
        output: (B, T, ...), or (T, B, ...).
        stages: what the attentions and modules came to, in the order computed.
        embedded: the vectors that stand for the tokens; empty where none were seen.
        n_ids: how many ids the model knows; None where the tokens are vectors.
    """

    output: Tensor
    stages: tuple[StageOutput, ...]
    embedded: tuple[Tensor, ...]
    n_ids: int | None = None

    def output_stage(self, subject: Subject) -> StageOutput:
        """The output as the last stage."""
        return StageOutput("", "output", self.output, subject.token_axis)


def run_pass(subject: Subject, tokens: Tensor, *, differentiable: bool) -> Pass:
    """Run a model once, always with the same random numbers.

    Args:
        subject: the model.
        tokens: the tokens to run it with.
        differentiable: whether the output is to be differentiated by the embeddings.
    """
    notes = _Notes(subject, tokens, differentiable)
    modules = RunningModules(subject.model)
    notes.modules = modules
    with torch.random.fork_rng(), torch.inference_mode(False), torch.set_grad_enabled(differentiable):
        torch.manual_seed(0)
        given = tokens
        if tokens.is_floating_point() and differentiable:
            given = tokens.detach().clone().requires_grad_()
            notes.embedded.append(given)
        with modules.followed(lambda _: None, notes.left), notes:
            output = subject.run(given)
    return Pass(output, tuple(notes.stages), tuple(notes.embedded), notes.n_ids)


@dataclass(eq=False)
class _Notes(TorchFunctionMode):
    """Puts leaves in the place of the tokens' embeddings, and keeps what attentions and modules come to."""

    subject: Subject
    tokens: Tensor
    differentiable: bool
    stages: list[StageOutput] = field(default_factory=list)
    embedded: list[Tensor] = field(default_factory=list)
    n_ids: int | None = None
    modules: RunningModules = field(init=False)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,  # noqa: ANN401 - PyTorch's own signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        output = function(*args, **(kwargs or {}))
        if function in _EMBEDDINGS and not self.tokens.is_floating_point():
            ids, table = _EMBEDDINGS[function]
            if len(args) > 1 and self._are_the_tokens(args[ids]):
                self.n_ids = args[table].shape[0]
                if self.differentiable:
                    output = output.detach().clone().requires_grad_()
                    self.embedded.append(output)
        elif function in _ATTENTIONS or type(function).__name__ == "FlexAttentionHOP":
            value, axis = tensors_in(output)[0], _ATTENTIONS.get(function, -2)
            if value.shape[axis] == self.subject.n_tokens:
                self.stages.append(StageOutput(self.modules.path, "attention", value, axis))
        return output

    def _are_the_tokens(self, ids: Tensor) -> bool:
        with torch._C.DisableTorchFunction():
            return ids.numel() == self.tokens.numel() and torch.equal(ids.reshape(self.tokens.shape), self.tokens)

    def left(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:  # noqa: ANN401
        """Keep what a module came to."""
        with torch._C.DisableTorchFunction():
            for tensor in tensors_in(output)[:1]:
                if tensor.dim() > 2 and self.subject.has_rows(tensor):
                    path, kind = self.modules.path_of(module), type(module).__name__
                    self.stages.append(StageOutput(path, kind, tensor, self.subject.token_axis))


def tensors_in(given: object) -> list[Tensor]:
    """Every tensor in nested tuples, lists and dictionaries, in order."""
    if isinstance(given, Tensor):
        return [given]
    parts: Sequence[object] = ()
    if isinstance(given, Mapping):
        parts = tuple(given.values())
    elif isinstance(given, tuple | list):
        parts = given
    return [tensor for part in parts for tensor in tensors_in(part)]
