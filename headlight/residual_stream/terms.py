"""The terms of a residual stream, and their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headlight.residual_stream.operations import are_vectors, leaves, tables
from headlight.residual_stream.sums import Sums
from model.dataflow import Constant, Node, ParameterInput

Kind = Literal["embedding", "position", "head", "feed_forward", "bias", "other"]

_OF_POSITIONS = re.compile(r"(?:^|[._])(?:pos|wpe)", re.IGNORECASE)


@dataclass(frozen=True)
class Term:
    """One summand of the residual stream.

    Attributes:
        kind: what wrote it.
        path: the stage that wrote it; of a head its context, where that is a stage.
        head: the number of the head; None for what is none.
        parameter: of a bias, the name of the parameter that it is.
    """

    kind: Kind
    path: str
    head: int | None = None
    parameter: str = ""


def begun(node: Node | None, path: str) -> Term:
    """The term of what no part of a layer wrote: the tokens, their positions, a bias."""
    parameters = [leaf.name for leaf in leaves(node) if isinstance(leaf, ParameterInput)]
    if any(map(_OF_POSITIONS.search, (path, *parameters))):
        return Term("position", path)
    is_embedded = isinstance(node, Constant) and are_vectors(node.value)
    if is_embedded or any(True for _ in tables(node)):
        return Term("embedding", path)
    return bias_at(path, node) if isinstance(node, ParameterInput | Constant) else Term("other", path)


def bias_at(path: str, node: Node) -> Term:
    """The bias that is added at a stage."""
    return Term("bias", path, parameter=node.name if isinstance(node, ParameterInput) else "")


@dataclass(frozen=True, eq=False)
class Place:
    """The residual stream at one stage, taken apart.

    Attributes:
        path: the stage.
        terms: all that was written so far, in the order written.
        parts: (n_terms, T, d_model) float64, one tensor for each term; their sum is the stream.
        stream: (T, d_model) float64, the stage itself.
        adds: whether something was added here; else all of the stream was changed, by a norm.
    """

    path: str
    terms: tuple[Term, ...]
    parts: Tensor
    stream: Tensor
    adds: bool

    @property
    def difference(self) -> float:
        """The largest difference of the sum of the terms from the stage, relative to its largest number."""
        error = (self.parts.sum(0) - self.stream).abs().max()
        return float(error / self.stream.abs().max().clamp(min=1e-30))


@dataclass(frozen=True, eq=False)
class Parts:
    """Some terms and their rows, (n_terms, T, D) float64; their sum is what they were taken from."""

    terms: tuple[Term, ...]
    rows: Tensor

    def plus(self, other: Parts, sign: int = 1) -> Parts:
        """The terms of both; one that is in both is added up or, with the sign -1, subtracted."""
        added = other.rows if sign > 0 else -other.rows
        new = [i for i, term in enumerate(other.terms) if term not in self.terms]
        terms = (*self.terms, *(other.terms[i] for i in new))
        if len(new) == len(other.terms):
            return Parts(terms, torch.cat([self.rows, added]))
        width = max(self.rows.shape[-1], other.rows.shape[-1])  # 1 of a mean
        rows = self.rows.new_zeros(len(terms), self.rows.shape[1], width)
        rows[: len(self.terms)] = self.rows
        rows[[terms.index(term) for term in other.terms]] += added
        return Parts(terms, rows)


class Rows:
    """The rows of a sequence that are taken out of every tensor.

    ``shape`` is that of the batch: sequences and tokens.
    """

    def __init__(self, shape: tuple[int, int], item: int, tokens: slice) -> None:
        self._n_items, self._n_tokens = shape
        self._item, self._tokens = item, tokens
        self._n_rows = len(range(self._n_tokens)[tokens])

    def of(self, tensor: Tensor) -> Tensor:
        """(T, D) float64."""
        return self._of_item(tensor.detach().double())

    def _of_item(self, tensor: Tensor) -> Tensor:
        rows, width = tensor.numel() // tensor.shape[-1] if tensor.dim() else 1, tensor.shape[-1:] or (1,)
        if rows == 1 and self._n_tokens > 1:
            return tensor.reshape(1, *width).expand(self._n_rows, -1)
        if rows == self._n_items and (rows != self._n_tokens or (tensor.dim() > 2 and tensor.shape[-2] == 1)):
            return tensor.reshape(rows, *width)[self._item].expand(self._n_rows, -1)
        if rows == self._n_tokens:
            return tensor.reshape(rows, *width)[self._tokens]
        if tensor.dim() == 3 and tensor.shape[0] == self._n_tokens != self._n_items:
            return tensor[self._tokens, self._item]
        return tensor.reshape(self._n_items, self._n_tokens, *width)[self._item, self._tokens]


def with_bias(parts: Parts, bias: Node | None, path: str, rows: Rows, sums: Sums) -> Parts:
    """Terms, and the bias that was added to them at a stage."""
    if bias is None:
        return parts
    return parts.plus(Parts((bias_at(path, bias),), rows.of(sums.value(bias))[None]))
