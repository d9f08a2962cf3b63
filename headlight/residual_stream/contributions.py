"""The contribution of each part of a model to its residual stream.

The residual stream is a sum: the embedding, the position, and what every head, every feed-forward network and every
bias adds. A head's part is what the attention would write if every other head's context were zero (Elhage et al.
2021, "A Mathematical Framework for Transformer Circuits"). A norm with its mean and deviation fixed to those of the
pass is linear: the terms pass through it one by one and still sum to the stream; its own bias is one term more.

Nothing here knows how a model is built. The stages of a pass are followed back through every operation that is
linear in what is added; where that ends stands a part that wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.contexts import Context, context_of, heads_of, stages_of
from headlight.residual_stream.heads import Heads, MultiHead
from headlight.residual_stream.logit_lens import LogitLens
from headlight.residual_stream.operations import LINEAR, NORMS, bias_of, input_at, undropped
from headlight.residual_stream.streams import Stream, find_streams
from headlight.residual_stream.sums import Sums
from headlight.residual_stream.terms import Parts, Place, Rows, Term, begun, with_bias
from headlight.stages import CHANGES_OF_SHAPE, Stage
from headlight.trace import Trace
from model.dataflow import Node, Operation, StageInput

_MULTI_HEAD = "multi_head_attention_forward"


class Contributions:
    """The operations of one pass, to be followed back.

    Attributes:
        streams: the residual streams of the pass, the longest first.
        lens: what the model would answer at any place of them.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node | None],
        values: Mapping[str, Tensor],
        parameters: Mapping[str, Tensor],
        contexts: Mapping[str, Context],
        multi_head: Mapping[str, MultiHead] | None = None,
        n_answers: int | None = None,
    ) -> None:
        """Follow what each stage is a sum of.

        Args:
            nodes: the expression of each stage, in the order computed.
            values: its value.
            parameters: those that the expressions name.
            contexts: the stages that are the context of an attention.
            multi_head: the stages that compute a whole attention in one function.
            n_answers: how many answers get a probability; None for as many as an embedding table has rows.
        """
        self._sums = Sums(nodes, values, parameters)
        self._heads = Heads(self._sums, contexts, multi_head or {})
        self.streams = tuple(find_streams(self._sums, self._heads))
        self.lens = LogitLens(self._sums, self.streams, contexts.keys(), n_answers)

    def places(self, stream: Stream, *, item: int = 0, tokens: slice = slice(None)) -> Iterator[Place]:
        """The stream wherever something was added to it or all of it was changed, in the order computed.

        Args:
            stream: one of ``streams``.
            item: the sequence of the batch.
            tokens: the rows taken apart.
        """
        rows = Rows(self._heads.size_at(stream.attentions[0]), item, tokens)
        known: dict[str, Parts] = {}
        reads = {path: set(self._sums.sums_in(self._sums.nodes[path])) for path in stream.steps}
        n_readers = Counter(read for of_one in reads.values() for read in of_one)
        for path in stream.steps:
            parts = known[path] = self._parts(self._sums.nodes[path], path, rows, known)
            for read in reads[path]:
                n_readers[read] -= 1
                if not n_readers[read]:
                    del known[read]  # else those of every place are kept, which are as many as all parts each time
            if path in stream.places:
                yield Place(path, parts.terms, parts.rows, rows.of(self._sums.values[path]), path in stream.sums)

    def attention_of(self, term: Term) -> str:
        """The path of the attention that a head belongs to."""
        return self._heads.attention_of(term.path)

    def attentions_of(self, stream: Stream) -> tuple[str, ...]:
        """The paths of the attentions that write to a stream, in the order computed."""
        return tuple(dict.fromkeys(map(self._heads.attention_at, stream.attentions)))

    def width_of(self, path: str) -> int:
        """The size of a stage's last axis."""
        return self._sums.values[path].shape[-1]

    def scaled(self, term: Term, stream: Stream) -> str:
        """The last stage of a stream that holds a term and nothing else: an embedding that was scaled."""
        alone = (path for path in stream.steps if self._sums.writers[path] == {term.path})
        return [term.path, *alone][-1]

    def _parts(self, node: Node | None, path: str, rows: Rows, known: Mapping[str, Parts]) -> Parts:
        """The terms of an expression."""
        if isinstance(node, StageInput) and node.path in known:
            return known[node.path]
        summands = self._sums.summands(node) if isinstance(node, Operation) else ()
        if not isinstance(node, Operation) or not summands:
            return self._written(node, path, rows)
        parts = [self._parts(part, path, rows, known) for part in summands]
        if len(parts) > 1:
            return parts[0].plus(parts[1], -1 if "sub" in node.name else 1)
        return self._through(node, path, parts[0], rows)

    def _through(self, node: Operation, path: str, parts: Parts, rows: Rows) -> Parts:
        """The terms after an operation on their sum, with all else as it was in the pass."""
        if node.name in CHANGES_OF_SHAPE:
            return parts
        if node.name in NORMS:
            return self._normed(node, path, parts, rows)
        if (whole := undropped(node)) is not node:
            before, after = (rows.of(self._sums.value(one)) for one in (whole, node))
            return replace(parts, rows=parts.rows * torch.where(before == 0, 0.0, after / before))
        inputs = [rows.of(self._sums.value(one)) for one in node.inputs]
        inputs[node.inputs.index(self._sums.summands(node)[0])] = parts.rows.clone()
        return replace(parts, rows=node.apply(tuple(inputs)))

    def _normed(self, node: Operation, path: str, parts: Parts, rows: Rows) -> Parts:
        """Each term through a norm whose mean and deviation are those of their sum."""
        signature = NORMS[node.name]
        known = node.arguments[: len(signature.parameters)]  # an exported program says more
        bound = signature.bind(*known, **node.keywords)
        bound.apply_defaults()
        stream = rows.of(self._sums.value(node.inputs[0]))
        weight, bias = (input_at(node, bound.arguments.get(name)) for name in ("weight", "bias"))
        is_centred = node.name == "layer_norm"
        centred = stream - stream.mean(-1, keepdim=True) if is_centred else stream
        eps = bound.arguments["eps"]
        eps = torch.finfo(self._sums.value(node.inputs[0]).dtype).eps if eps is None else eps
        scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
        if weight is not None:
            scale = scale * self._sums.value(weight).double()
        centred_parts = parts.rows - parts.rows.mean(-1, keepdim=True) if is_centred else parts.rows.clone()
        return with_bias(replace(parts, rows=centred_parts.mul_(scale)), bias, path, rows, self._sums)

    def _written(self, node: Node | None, path: str, rows: Rows) -> Parts:
        """The terms that a stage wrote that is no sum: the heads of an attention, or one."""
        if (heads := self._heads.written(path, rows)) is not None:
            return heads
        value = rows.of(self._sums.values[path] if node is None else self._sums.value(node))
        if not isinstance(node, Operation) or node.name not in LINEAR:
            return Parts((begun(node, path),), value[None])
        bias = bias_of(node)
        output = value if bias is None else value - rows.of(self._sums.value(bias))
        return with_bias(Parts((Term("feed_forward", path),), output[None]), bias, path, rows, self._sums)


def contributions_of(trace: Trace, n_answers: int | None = None) -> Contributions:
    """The operations of a trace, to be followed back.

    Args:
        trace: a pass whose stages and attentions were all kept.
        n_answers: as in ``Contributions``.
    """
    values = {path: stage.value for path, stage in trace.stages.items() if stage.value is not None}
    contexts: dict[str, Context] = {}
    multi_head: dict[str, MultiHead] = {}
    for attention in trace:
        known = contexts.keys() | multi_head.keys()
        if (whole := _in_one(attention, trace.stages, known)) is not None:
            multi_head.update([whole])
        elif (context := context_of(attention, trace.stages, known)) is not None:
            contexts[context.path] = context
    nodes = {path: stage.node for path, stage in trace.stages.items()}
    return Contributions(nodes, values, trace.parameters, contexts, multi_head, n_answers)


def _in_one(
    attention: Attention, stages: Mapping[str, Stage], known: Container[str]
) -> tuple[str, MultiHead] | None:
    """An attention that one function computes whole, and the stage that it is; None where none does."""
    context = heads_of(attention)
    own = [each for each in stages_of(attention, stages, known) if each.module == attention.module]
    call = next((each for each in reversed(own) if each.operation == _MULTI_HEAD), None)
    if context is None or call is None or not isinstance(call.node, Operation):
        return None
    last = next((each for each in reversed(own) if each.operation == "fused"), call)
    return last.path, MultiHead(attention.path, context, call.node)
