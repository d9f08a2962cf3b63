"""The answer of a model that stops at some place of a residual stream ("logit lens", nostalgebraist 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import torch
from torch import Tensor

from headlight.residual_stream.operations import INPUT_OF, tables
from headlight.residual_stream.streams import Stream
from headlight.residual_stream.sums import Sums
from headlight.stages import CHANGES_OF_SHAPE
from model.dataflow import Operation, StageInput

_SOFTMAX = frozenset(("softmax", "log_softmax"))


@dataclass(frozen=True, eq=False)
class LogitLens:
    """The way on from the ends of the streams of a pass.

    Attributes:
        sums: the stages of the pass.
        streams: its residual streams.
        contexts: the stages that are the context of an attention.
        n_answers: how many answers get a probability; None for as many as an embedding table has rows.
    """

    sums: Sums
    streams: Sequence[Stream]
    contexts: AbstractSet[str]
    n_answers: int | None = None

    def answer_of(self, stream: Stream) -> str | None:
        """The stage of the logits of every token that are computed from the end of a stream; None without one."""
        of_tables = {len(self.sums.value(table)) for node in self.sums.nodes.values() for table in tables(node)}
        sizes = of_tables if self.n_answers is None else {self.n_answers}
        n_rows = self.sums.values[stream.end].shape[:-1].numel()
        for path in reversed(list(self.sums.values)):
            if path in {each.path for each in self.streams}:
                return None  # what comes before is a stage of a layer
            value, node = self.sums.values[path], self.sums.nodes[path]
            if isinstance(node, Operation) and node.name in _SOFTMAX:
                continue
            if value.shape[-1] in sizes and value.shape[:-1].numel() == n_rows:
                reads = self.sums.between(path, {each.end for each in self.streams})
                if stream.end in reads and self.contexts.isdisjoint(reads):
                    return path
        return None

    def logits(self, stream: Stream, rows: Tensor) -> Tensor:
        """Logits as if the model went on from here as it does from the end of a stream.

        Args:
            stream: one with an ``answer_of``.
            rows: (N, d_model), what stands in the place of the end, a token each.

        Returns:
            (N, vocab_size), computed in the number type of the model.
        """
        answer, end = self.answer_of(stream), self.sums.values[stream.end]
        if answer is None:
            raise ValueError(f"no logits are computed from {stream.path}")
        again = tuple(self.sums.between(answer, {stream.end}))
        most = end.shape[:-1].numel()
        logits = []
        for first in range(0, len(rows), most):  # as many at once as the model's own pass has
            some = rows[first : first + most]
            filled = end.new_zeros(most, end.shape[-1])
            filled[: len(some)] = some
            found = self.sums.value(StageInput(answer), {stream.end: filled.view(end.shape)}, again)
            logits.append(found.flatten(0, -2)[: len(some)])
        return torch.cat(logits)

    def unembedding_of(self, stream: Stream) -> Tensor | None:
        """(vocab_size, d_model), where the logits are the last stage of a stream times a matrix; else None."""
        answer = self.answer_of(stream)
        node = None if answer is None else self.sums.nodes[answer]
        if not isinstance(node, Operation) or node.name not in INPUT_OF:
            return None
        place = INPUT_OF[node.name]
        read, weight = node.inputs[place : place + 2]
        while isinstance(read, Operation) and read.name in CHANGES_OF_SHAPE:
            read = read.inputs[0]
        if read != StageInput(stream.path):
            return None
        return self.sums.value(weight) if node.name == "linear" else self.sums.value(weight).mT
