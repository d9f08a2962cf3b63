"""The contribution of each part of a Transformer to the residual stream, and the answer if the model stopped there.

The residual stream is a sum: the embedding, the position, and what every head, every feed-forward network and every
bias adds. A head's part is its context times its rows of the output projection (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits"). A layer norm with its mean and deviation fixed to those of the pass is linear:
the terms pass through it one by one and still sum to the stream; its own bias is one term more. The logit lens
(nostalgebraist 2020) applies the last norm and the final linear layer to the stream at an earlier place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from model.dropout import Dropout
from model.tracing import Trace, TracedModule

Kind = Literal["embedding", "position", "head", "feed_forward", "bias"]
Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Term:
    """One summand of the residual stream.

    Attributes:
        kind: what wrote it.
        path: the stage that it was computed from or, of a bias, the module that holds it.
        head: the number of the head; None for what is none.
    """

    kind: Kind
    path: str
    head: int | None = None


@dataclass(frozen=True, eq=False)
class Place:
    """The residual stream at one stage, taken apart.

    Attributes:
        path: the stage: ``embedded``, ``residual1``, ``norm1``, ..., or the last ``norm``.
        terms: all that was written so far, in the order written.
        parts: (n_terms, T, d_model) float64, one tensor for each term; their sum is the stream.
        stream: (T, d_model), the stage itself.
    """

    path: str
    terms: tuple[Term, ...]
    parts: Tensor
    stream: Tensor

    @property
    def difference(self) -> float:
        """The largest difference of the sum of the terms from the stage, relative to its largest number."""
        error = (self.parts.sum(0) - self.stream).abs().max()
        return float(error / self.stream.abs().max().clamp(min=1e-30))


def stacks_of(trace: Trace) -> tuple[Stack, ...]:
    """The parts of the model with embeddings and a residual stream, in the order in which they ran."""
    stacks: tuple[Stack, ...] = ("encoder", "decoder")
    return tuple(
        stack for stack in stacks if {f"{stack}.inputs.embedded", f"{stack}.layers.0.residual1"} <= trace.keys()
    )


def places(
    model: TracedModule, trace: Trace, stack: Stack, *, batch: int = 0, tokens: slice = slice(None)
) -> Iterator[Place]:
    """The residual stream at every place of a stack, in the order computed.

    Args:
        model: a ``Transformer``.
        trace: one pass of it.
        stack: one of ``stacks_of(trace)``.
        batch: the sequence of the batch.
        tokens: the rows taken apart; the others cost nothing.
    """
    walk = _Walk(model, trace, batch, tokens)
    yield walk.enter(f"{stack}.inputs")
    n_layers = len(list(model.get_submodule(f"{stack}.layers").children()))
    for layer in (f"{stack}.layers.{i}" for i in range(n_layers)):
        sub_layers = [name for name in _SUB_LAYERS if f"{layer}.{name}.output" in trace]
        is_pre_norm = bool(model.get_submodule(layer).pre_norm)
        for number, name in enumerate(sub_layers, 1):
            yield walk.add(layer, name, number)
            if not is_pre_norm:
                yield walk.normalise(f"{layer}.norm{number}")
    if f"{stack}.norm" in trace:
        yield walk.normalise(f"{stack}.norm")


def lens(model: TracedModule, stack: Stack, stream: Tensor) -> Tensor:
    """Logits as if a stack ended here: the last norm, where there is one, then the final linear layer.

    Args:
        model: a ``Transformer``.
        stack: the one whose output the final linear layer reads.
        stream: (..., d_model), the output of an embedding or of a sub-layer, after its norm in a post-norm model.

    Returns:
        (..., vocab_size); at the output of the last layer the model's own logits.
    """
    norm = dict(model.get_submodule(stack).named_children()).get("norm")
    with torch.no_grad():
        logits: Tensor = model.get_submodule("unembedding")(stream if norm is None else norm(stream))
    return logits


_SUB_LAYERS = ("self_attention", "cross_attention", "feed_forward")


class _Walk:
    """The terms on their way along one stack."""

    def __init__(self, model: TracedModule, trace: Trace, batch: int, tokens: slice) -> None:
        self.model, self.trace, self.batch, self.tokens = model, trace, batch, tokens
        self.terms: tuple[Term, ...] = ()
        self.parts = torch.empty(0)
        self.stream = torch.empty(0)

    def enter(self, inputs: str) -> Place:
        parts = torch.stack([self.rows(f"{inputs}.scaled_embedding"), self.rows(f"{inputs}.positional_encoding")])
        self.terms = (
            Term("embedding", f"{inputs}.scaled_embedding"),
            Term("position", f"{inputs}.positional_encoding"),
        )
        self.parts = parts * self.kept(inputs, f"{inputs}.embedded")
        return self.place(f"{inputs}.embedded")

    def add(self, layer: str, name: str, number: int) -> Place:
        """The terms of one sub-layer join those before."""
        module = f"{layer}.{name}"
        terms, parts = self.feed_forward(module) if name == "feed_forward" else self.attention(module)
        if f"{layer}.dropped_output{number}" in self.trace:
            parts = parts * self.kept(layer, f"{layer}.dropped_output{number}")
        self.terms, self.parts = (*self.terms, *terms), torch.cat([self.parts, parts])
        return self.place(f"{layer}.residual{number}")

    def attention(self, module: str) -> tuple[tuple[Term, ...], Tensor]:
        """Return what each head wrote, (H, T, d_model), and the bias of the output projection."""
        context = self.trace[f"{module}.context"].value[self.batch, :, self.tokens].detach().double()
        projection = self.model.get_submodule(f"{module}.w_o")
        weight, bias = _parameters(projection)
        n_heads, _, width = context.shape
        heads = torch.einsum("htc,dhc->htd", context, weight.reshape(-1, n_heads, width))
        terms = tuple(Term("head", f"{module}.context", head) for head in range(n_heads))
        return self.with_bias(terms, heads, f"{module}.w_o", bias)

    def feed_forward(self, module: str) -> tuple[tuple[Term, ...], Tensor]:
        """Return what the network wrote, (1, T, d_model), and the bias of its second layer."""
        dropped = f"{module}.dropped_activation"
        activation = self.rows(dropped if dropped in self.trace else f"{module}.activation")
        weight, bias = _parameters(self.model.get_submodule(f"{module}.w_2"))
        written = (activation @ weight.T)[None]
        return self.with_bias((Term("feed_forward", f"{module}.output"),), written, f"{module}.w_2", bias)

    def normalise(self, path: str) -> Place:
        """Each term through a norm whose mean and deviation are those of the whole stream."""
        norm = self.model.get_submodule(path)
        weight, bias = _parameters(norm)
        if not isinstance(norm, nn.LayerNorm):
            raise TypeError(f"{path} is no layer norm")
        deviation = (self.stream.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
        parts = (self.parts - self.parts.mean(-1, keepdim=True)) / deviation * weight
        self.terms, self.parts = self.with_bias(self.terms, parts, path, bias)
        return self.place(path)

    def with_bias(
        self, terms: tuple[Term, ...], parts: Tensor, path: str, bias: Tensor | None
    ) -> tuple[tuple[Term, ...], Tensor]:
        """The terms, and the bias that is added to every token."""
        if bias is None:
            return terms, parts
        return (*terms, Term("bias", path)), torch.cat([parts, bias.expand_as(parts[:1])])

    def kept(self, module: str, path: str) -> Tensor:
        """Return the factor of dropout for each number of a stage: 0 where it is zero, else the same for all."""
        dropout = self.model.get_submodule(f"{module}.dropout")
        if not (isinstance(dropout, Dropout) and dropout.active):
            return torch.ones(1, dtype=torch.float64)
        return (self.rows(path) != 0) / (1.0 - dropout.p)

    def place(self, path: str) -> Place:
        self.stream = self.rows(path)
        return Place(path, self.terms, self.parts, self.stream)

    def rows(self, path: str) -> Tensor:
        """The tokens of a stage, (T, ...) float64."""
        stage = self.trace[path]
        value = stage.value[min(self.batch, len(stage.value) - 1)] if stage.dims[0][0] == "B" else stage.value
        return value[self.tokens].detach().double()


def _parameters(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of a linear layer or a norm."""
    found = dict(module.named_parameters())
    bias = found.get("bias")
    return found["weight"].detach().double(), None if bias is None else bias.detach().double()
