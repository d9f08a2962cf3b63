"""The attentions of a pass as parts of its residual streams: what each head wrote."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.contexts import Context
from headlight.residual_stream.operations import INPUT_OF, LINEAR, MULTIPLIED, bias_of, input_at, stages_in
from headlight.residual_stream.sums import Sums
from headlight.residual_stream.terms import Parts, Rows, Term, with_bias
from headlight.stages import CHANGES_OF_SHAPE
from model.dataflow import Node, Operation, StageInput

_BY_COLUMNS = CHANGES_OF_SHAPE | {"dropout", "mul", "rms_norm"}


@dataclass(frozen=True, eq=False)
class MultiHead:
    """An attention computed in one function: its path, its context, (B, H, T, Dh), and the call of the function."""

    attention: str
    context: Tensor
    node: Operation


class Heads:
    """The attentions of one pass.

    Attributes:
        contexts: the stages that are the context of one.
        multi_head: the stages that compute a whole one in one function.
        stages: those by which they write to a residual stream.
    """

    def __init__(self, sums: Sums, contexts: Mapping[str, Context], multi_head: Mapping[str, MultiHead]) -> None:
        """Find what projects a context among the stages of the pass."""
        self._sums, self.contexts, self.multi_head = sums, contexts, multi_head
        self._inner: dict[str, str] = {}
        for path in sums.nodes:
            if (inner := self._projected_before(path)) is not None:
                self._inner[path] = inner
        projections = {path for path in sums.nodes if self._attention_at(path) is not None}
        self.stages = (projections | multi_head.keys()) - set(self._inner.values())

    def attention_of(self, context: str) -> str:
        """The path of the attention whose context a stage is, or that it computes whole."""
        found = self.contexts.get(context) or self.multi_head[context]
        return found.attention

    def attention_at(self, path: str) -> str:
        """The path of the attention that writes by a stage."""
        at = self._attention_at(path)
        return self.attention_of(path if at is None else at[0])

    def size_at(self, path: str) -> tuple[int, int]:
        """The number of sequences and tokens of the attention that writes by a stage."""
        if path in self.multi_head:
            context = self.multi_head[path].context
            return context.shape[0], context.shape[2]
        at = self._attention_at(path)
        return self.contexts[path if at is None else at[0]].size

    def written(self, path: str, rows: Rows) -> Parts | None:
        """The part of each head that writes by a stage, and the bias added there; None where none does."""
        node, attention = self._sums.nodes[path], self._attention_at(path)
        if attention is not None and isinstance(node, Operation):
            return self._heads(node, path, *attention, rows)
        if path in self.multi_head:
            return self._heads_in_one(self.multi_head[path], path, rows)
        return None

    def _heads(self, node: Operation, path: str, attention: str, between: Sequence[Operation], rows: Rows) -> Parts:
        """The part of each head of an attention, and the bias that its last projection adds."""
        if node.name == "einsum" or path in self._inner:
            outputs = torch.stack([rows.of(output) for output in self._outputs_of_heads(node, path, attention)])
        else:
            place = INPUT_OF[node.name]
            read, matrix = map(self._sums.value, node.inputs[place : place + 2])
            weight = (matrix if node.name == "linear" else matrix.T).double()
            columns = self._columns_of_heads(attention, between)
            outputs = torch.einsum("thc,dhc->htd", rows.of(read)[:, columns], weight[:, columns])
        parts = Parts(tuple(Term("head", attention, head) for head in range(len(outputs))), outputs)
        return with_bias(parts, bias_of(node), path, rows, self._sums)

    def _outputs_of_heads(self, node: Operation, path: str, attention: str) -> Iterator[Tensor]:
        """The output of a projection without a bias where all heads but one are zero, for each head."""
        again = self._sums.between(path, {attention}) if path in self._inner else ()
        value, context = self._sums.values[attention], self.contexts[attention]
        heads = torch.arange(value.shape[context.axis], device=value.device) % context.n_heads
        for head in range(context.n_heads):
            is_own = (heads == head).view(-1, *[1] * (value.dim() - context.axis - 1))
            yield self._sums.value(node, {attention: value * is_own}, again)

    def _columns_of_heads(self, attention: str, between: Sequence[Operation]) -> Tensor:
        """(H, Dh), the columns that each head has in what a projection reads of an attention."""
        value, context = self._sums.values[attention], self.contexts[attention]
        heads = torch.zeros_like(value, dtype=torch.int64).movedim(context.axis, -1)
        heads += torch.arange(heads.shape[-1], device=value.device) % context.n_heads
        heads = heads.movedim(-1, context.axis)
        for change in between:
            if change.name in CHANGES_OF_SHAPE:
                heads = change.apply((heads, *(self._sums.value(other) for other in change.inputs[1:])))
        return heads.flatten(0, -2)[0].argsort(stable=True).view(context.n_heads, -1)

    def _heads_in_one(self, whole: MultiHead, path: str, rows: Rows) -> Parts:
        """The same where one function computes the whole attention."""
        node, context = whole.node, whole.context.double()
        signature = inspect.signature(F.multi_head_attention_forward)
        arguments = signature.bind(*node.arguments, **node.keywords).arguments
        weight, bias = (input_at(node, arguments[name]) for name in ("out_proj_weight", "out_proj_bias"))
        n_heads, width = context.shape[1], context.shape[-1]
        columns = self._sums.value(weight or node).double().T.reshape(n_heads, width, -1)
        outputs = torch.einsum("bhtc,hcd->hbtd", context, columns)
        terms = tuple(Term("head", path, head) for head in range(n_heads))
        parts = Parts(terms, torch.stack([rows.of(one) for one in outputs]))
        return with_bias(parts, bias, path, rows, self._sums)

    def _attention_at(self, path: str) -> tuple[str, tuple[Operation, ...]] | None:
        """The stage of the context that a stage projects, and the operations in between; None where it is none."""
        node = self._sums.nodes[path]
        if not isinstance(node, Operation) or node.name not in LINEAR:
            return None
        if node.name == "einsum":
            read = list(stages_in(node))
            return (read[0], ()) if len(read) == 1 and read[0] in self.contexts else None
        if path in self._inner:
            return self._attention_at(self._inner[path])
        return self._from_context(node.inputs[INPUT_OF[node.name]])

    def _projected_before(self, path: str) -> str | None:
        """The projection of a context that a stage projects once more, both without a bias; None where none is.

        A product of two matrices of low rank is such (Hu et al. 2021, "LoRA", 4.1).
        """
        node = self._sums.nodes[path]
        if not isinstance(node, Operation) or node.name not in INPUT_OF or bias_of(node) is not None:
            return None
        read: Node | None = node.inputs[INPUT_OF[node.name]]
        while read is not None:
            if isinstance(read, StageInput):
                inner = self._sums.nodes.get(read.path)
                if isinstance(inner, Operation) and inner.name in LINEAR:
                    return read.path if bias_of(inner) is None and self._attention_at(read.path) else None
                read = inner
            elif isinstance(read, Operation) and read.name in CHANGES_OF_SHAPE | {"dropout"}:
                read = read.inputs[0]
            else:
                return None
        return None

    def _from_context(self, node: Node | None, *after: Operation) -> tuple[str, tuple[Operation, ...]] | None:
        """The stage of the context that an expression is made of column by column, and the operations since."""
        if isinstance(node, StageInput):
            if node.path in self.contexts:
                return node.path, after
            node = self._sums.nodes.get(node.path)
        if not isinstance(node, Operation) or node.name not in _BY_COLUMNS:
            return None
        parts = node.inputs if node.name in MULTIPLIED else node.inputs[:1]
        return next((found for part in parts if (found := self._from_context(part, node, *after))), None)
