"""The contribution of each part of a model to its residual stream.

The residual stream is a sum: the embedding, the position, and what every head, every feed-forward network and every
bias adds. A head's part is what the attention would write if every other head's context were zero (Elhage et al.
2021, "A Mathematical Framework for Transformer Circuits"). A norm with its mean and deviation fixed to those of the
pass is linear: the terms pass through it one by one and still sum to the stream; its own bias is one term more.

Nothing here knows how a model is built. The stages of a pass are followed back through every operation that is
linear in what is added; where that ends stands a part that wrote.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.stages import CHANGES_OF_SHAPE, may_write
from headlight.trace import Trace
from model.dataflow import Constant, Node, Operation, ParameterInput, Slot, StageInput

Kind = Literal["embedding", "head", "feed_forward", "bias", "other"]
Parts = dict["Term", Tensor]

_ADDED = frozenset(("add", "iadd", "sub", "isub"))
_MULTIPLIED = frozenset(("mul", "imul", "div", "idiv", "truediv", "true_divide"))
_NORMS = frozenset(("layer_norm", "rms_norm"))
_PASSED = CHANGES_OF_SHAPE | _NORMS | {"dropout", "neg", "mean"}
_INPUT_OF = {"linear": 0, "matmul": 0, "addmm": 1}
_MULTI_HEAD = "multi_head_attention_forward"
_CLOSE = 1e-3


@dataclass(frozen=True)
class Term:
    """One summand of the residual stream.

    Attributes:
        kind: what wrote it.
        path: the stage that wrote it; of a head its context, where that is a stage.
        head: the number of the head; None for what is none.
    """

    kind: Kind
    path: str
    head: int | None = None


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


@dataclass(frozen=True)
class Stream:
    """A residual stream, from the first part that writes to it on.

    Attributes:
        path: the last stage of it.
        attentions: the stages by which its attentions write to it.
        places: the stages of the stream in the order computed: where something was added, and where it was changed
            by a norm after that.
        sums: those of them where something was added.
        steps: every stage that its terms pass through, in the order computed.
    """

    path: str
    attentions: tuple[str, ...]
    places: tuple[str, ...]
    sums: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def end(self) -> str:
        """The last place before a norm that belongs to no layer: what the logit lens goes on from."""
        n_layers_normed = len(self.places) - len(self.sums) - (self.places[-1] not in self.sums)
        starts_normed = len(self.places) > 1 and self.places[1] not in self.sums
        return self.path if n_layers_normed > starts_normed else self.sums[-1]


@dataclass(frozen=True, eq=False)
class Context:
    """The heads of a stage that is a context: of which attention, how many, and the axis that counts them."""

    attention: str
    n_heads: int
    axis: int


@dataclass(frozen=True, eq=False)
class MultiHead:
    """An attention computed in one function: its path, its context, (B, H, T, Dh), and the call of the function."""

    attention: str
    context: Tensor
    node: Operation


class Contributions:
    """The operations of one pass, to be followed back.

    Attributes:
        streams: the residual streams of the pass, the longest first.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node | None],
        values: Mapping[str, Tensor],
        parameters: Mapping[str, Tensor],
        contexts: Mapping[str, Context],
        multi_head: Mapping[str, MultiHead] | None = None,
    ) -> None:
        """Follow what each stage is a sum of.

        Args:
            nodes: the expression of each stage, in the order computed.
            values: its value.
            parameters: those that the expressions name.
            contexts: the stages that are the context of an attention.
            multi_head: the stages that compute a whole attention in one function.
        """
        self._nodes, self._values, self._parameters = nodes, values, parameters
        self._contexts, self._multi_head = contexts, multi_head or {}
        self._path_of = {id(node): path for path, node in nodes.items() if path in values}
        self._writers: dict[str, frozenset[str]] = {}
        for path, node in nodes.items():
            known = node is not None and path in values
            self._writers[path] = self._written_by(node, path) if known and node else frozenset((path,))
        self.streams = tuple(self._find_streams())

    def places(self, stream: Stream, *, item: int = 0, tokens: slice = slice(None)) -> Iterator[Place]:
        """The stream wherever something was added to it or all of it was changed, in the order computed.

        Args:
            stream: one of ``streams``.
            item: the sequence of the batch.
            tokens: the rows taken apart.
        """
        rows = _Rows(self._shape_of(stream), item, tokens)
        known: dict[str, Parts] = {}
        for path in stream.steps:
            known[path] = self._parts(self._nodes[path], path, rows, known)
            if path in stream.places:
                value = rows.of(self._values[path])
                terms = tuple(known[path])
                parts = torch.stack([part.expand_as(value) for part in known[path].values()])
                yield Place(path, terms, parts, value, path in stream.sums)

    def attention_of(self, term: Term) -> str:
        """The path of the attention that a head belongs to."""
        found = self._contexts.get(term.path) or self._multi_head[term.path]
        return found.attention

    def attentions_of(self, stream: Stream) -> tuple[str, ...]:
        """The paths of the attentions that write to a stream, in the order computed."""
        found = (self._attention_at(path) for path in stream.attentions)
        contexts = [path if at is None else at[0] for path, at in zip(stream.attentions, found, strict=True)]
        return tuple(self.attention_of(Term("head", path)) for path in contexts)

    # The logit lens ----------------------------------------------------------------------------------------------

    def answer_of(self, stream: Stream) -> str | None:
        """The stage of the logits of every token that are computed from the end of a stream; None without one."""
        sizes = {self._n_embedded(path) for path in self._nodes}
        n_rows = self._values[stream.end].shape[:-1].numel()
        for path in reversed(list(self._values)):
            if path in {each.path for each in self.streams}:
                return None  # what comes before is a stage of a layer
            value = self._values[path]
            if value.shape[-1] in sizes and value.shape[:-1].numel() == n_rows:
                reads = self._between(path, {each.end for each in self.streams})
                if stream.end in reads and self._contexts.keys().isdisjoint(reads):
                    return path
        return None

    def lens(self, stream: Stream, rows: Tensor) -> Tensor:
        """Logits as if the model went on from here as it does from the end of a stream.

        Args:
            stream: one with an ``answer_of``.
            rows: (N, d_model), what stands in the place of the end, a token each.

        Returns:
            (N, vocab_size), computed in the number type of the model.
        """
        answer, end = self.answer_of(stream), self._values[stream.end]
        if answer is None:
            raise ValueError(f"no logits are computed from {stream.path}")
        again = tuple(self._between(answer, {stream.end}))
        most = end.shape[:-1].numel()
        logits = []
        for first in range(0, len(rows), most):  # as many at once as the model's own pass has
            some = rows[first : first + most]
            filled = end.new_zeros(most, end.shape[-1])
            filled[: len(some)] = some
            found = self._value(StageInput(answer), {stream.end: filled.view(end.shape)}, again)
            logits.append(found.flatten(0, -2)[: len(some)])
        return torch.cat(logits)

    def unembedding_of(self, stream: Stream) -> Tensor | None:
        """(vocab_size, d_model), where the logits are the last stage of a stream times a matrix; else None."""
        answer = self.answer_of(stream)
        node = None if answer is None else self._nodes[answer]
        if not isinstance(node, Operation) or node.name != "linear":
            return None
        read, weight = node.inputs[:2]
        while isinstance(read, Operation) and read.name in CHANGES_OF_SHAPE:
            read = read.inputs[0]
        return self._value(weight) if read == StageInput(stream.path) else None

    def _n_embedded(self, path: str) -> int:
        """The number of tokens an embedding knows; 0 of another stage."""
        node = self._nodes[path]
        if not isinstance(node, Operation) or node.name != "embedding":
            return 0
        return max(len(self._value(part)) for part in node.inputs if isinstance(part, ParameterInput))

    def _between(self, last: str, ends: Collection[str]) -> list[str]:
        """Every stage that one was computed from, and itself, back to some ends, with these."""
        found, waiting = dict.fromkeys((last,)), [last]
        while waiting:
            path = waiting.pop()
            if path in ends:
                continue
            for leaf in _stages_in(self._nodes.get(path)):
                if leaf not in found:
                    found[leaf] = None
                    waiting.append(leaf)
        return list(found)

    # What each stage is a sum of -------------------------------------------------------------------------------

    def _written_by(self, node: Node, path: str) -> frozenset[str]:
        """The stages by which the parts of an expression were written; ``path`` where it is no sum itself."""
        if isinstance(node, StageInput):
            return self._writers.get(node.path, frozenset((path,)))
        if not isinstance(node, Operation):
            return frozenset()
        summands = self._summands(node)
        if not summands:
            return frozenset((path,))
        return frozenset().union(*(self._written_by(part, path) for part in summands))

    def _summands(self, node: Operation) -> tuple[Node, ...]:
        """The inputs in which an operation is linear, all others being fixed; () where it is linear in none."""
        if not node.inputs or any(path not in self._values for path in _stages_in(node)):
            return ()  # the model wrote over what it reads
        shape = self._shape(node)
        if node.name in _ADDED:
            is_of_tensors = all(isinstance(each, Slot) for each in node.arguments) and not node.keywords
            return node.inputs if is_of_tensors and len(node.inputs) == 2 else ()
        if node.name in _MULTIPLIED:
            of_stages = [part for part in node.inputs if _reads_a_stage(part) and self._shape(part) == shape]
            is_divisor = "div" in node.name and of_stages == list(node.inputs[1:])
            return () if len(of_stages) != 1 or is_divisor else (of_stages[0],)
        if node.name not in _PASSED:
            return ()
        before = self._shape(node.inputs[0])
        if node.name == "mean":
            return node.inputs[:1] if shape == (*before[:-1], 1) else ()
        return node.inputs[:1] if shape[-1] == before[-1] and shape.numel() == before.numel() else ()

    def _shape(self, node: Node) -> torch.Size:
        return self._value(node).shape

    def _shape_of(self, stream: Stream) -> tuple[int, int]:
        """The number of sequences and tokens there are in a stream."""
        first = stream.attentions[0]
        if first in self._multi_head:
            context = self._multi_head[first].context
            return context.shape[0], context.shape[2]
        path, _ = self._attention_at(first) or (first, ())
        shape, layout = self._values[path].shape, self._contexts[path]
        if layout.axis == 0:
            return shape[0] // layout.n_heads, shape[1]
        return shape[0], shape[3 - layout.axis]

    def _find_streams(self) -> Iterator[Stream]:
        """Each last stage of a sum of attentions, as long as there are attentions in none."""
        attentions = {path for path in self._nodes if self._attention_at(path) is not None}
        attentions |= self._multi_head.keys()
        while attentions:
            counts = {path: len(written & attentions) for path, written in self._writers.items()}
            most = max(counts.values())
            if not most:
                return
            last = [path for path, count in counts.items() if count == most][-1]
            steps = self._steps_to(last)
            within = self._writers[last] & attentions
            attentions -= within
            wrote = tuple(path for path in self._nodes if path in within)
            alike = list(self._plateaus(steps))
            places = tuple(path for first, last in alike for path in dict.fromkeys((first, last)))
            yield Stream(last, wrote, places, tuple(first for first, _ in alike), steps)

    def _steps_to(self, last: str) -> tuple[str, ...]:
        """The stages that the terms of one pass through, in the order computed."""
        found, waiting = set[str](), [last]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                waiting += self._sums_in(self._nodes[path])
        return tuple(path for path in self._nodes if path in found)

    def _sums_in(self, node: Node | None) -> Iterator[str]:
        """The stages that an expression is a sum of."""
        if isinstance(node, StageInput):
            yield node.path
        elif isinstance(node, Operation):
            for part in self._summands(node):
                yield from self._sums_in(part)

    def _plateaus(self, steps: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """The first and the last stage of the stream that nothing was added between, once where they are alike.

        The stream is what holds the part that was written first.
        """
        first = next(path for path in steps if self._writers[path] == {path})
        stream = [path for path in steps if first in self._writers[path]]
        for _, same in groupby(stream, self._writers.__getitem__):
            alike = tuple(same)
            is_changed = not torch.equal(self._values[alike[0]], self._values[alike[-1]])
            yield alike[0], alike[-1] if is_changed else alike[0]

    # Its numbers -------------------------------------------------------------------------------------------------

    def _parts(self, node: Node | None, path: str, rows: _Rows, known: Mapping[str, Parts]) -> Parts:
        """The terms of an expression, (T, D) float64 each or (1, D) where they are the same for all tokens."""
        if isinstance(node, StageInput) and node.path in known:
            return known[node.path]
        if isinstance(node, ParameterInput | Constant):
            return {Term("bias", path): rows.of(self._value(node))}
        summands = self._summands(node) if isinstance(node, Operation) else ()
        if not isinstance(node, Operation) or not summands:
            return self._written(node, path, rows)
        parts = [self._parts(part, path, rows, known) for part in summands]
        if node.name in _ADDED:
            sign = -1 if "sub" in node.name else 1
            return _sum_of(parts[0], {term: sign * part for term, part in parts[1].items()})
        return self._through(node, path, parts[0], rows)

    def _through(self, node: Operation, path: str, parts: Parts, rows: _Rows) -> Parts:
        """The terms after an operation on their sum, with all else as it was in the pass."""
        if node.name in CHANGES_OF_SHAPE:
            return parts
        if node.name in _NORMS:
            return self._normed(node, path, parts, rows)
        if node.name == "dropout":
            before, after = (rows.of(self._value(one)) for one in (node.inputs[0], node))
            factor = torch.where(before == 0, 0.0, after / before)
            return {term: part * factor for term, part in parts.items()}
        given = [rows.of(self._value(one)) for one in node.inputs]
        place = node.inputs.index(self._summands(node)[0])
        return {
            term: node.apply((*given[:place], part.clone(), *given[place + 1 :])) for term, part in parts.items()
        }

    def _normed(self, node: Operation, path: str, parts: Parts, rows: _Rows) -> Parts:
        """Each term through a norm whose mean and deviation are those of their sum."""
        function = F.layer_norm if node.name == "layer_norm" else F.rms_norm
        given = inspect.signature(function).bind(*node.arguments, **node.keywords)
        given.apply_defaults()
        stream = rows.of(self._value(node.inputs[0]))
        weight, bias = (self._given(node, given.arguments.get(name)) for name in ("weight", "bias"))
        is_centred = node.name == "layer_norm"
        centred = stream - stream.mean(-1, keepdim=True) if is_centred else stream
        eps = given.arguments["eps"]
        eps = torch.finfo(self._value(node.inputs[0]).dtype).eps if eps is None else eps
        scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
        if weight is not None:
            scale = scale * self._value(weight).double()
        normed = {
            term: (part - part.mean(-1, keepdim=True) if is_centred else part) * scale
            for term, part in parts.items()
        }
        if bias is None:
            return normed
        return _sum_of(normed, {Term("bias", path): rows.of(self._value(bias))})

    def _written(self, node: Node | None, path: str, rows: _Rows) -> Parts:
        """The terms that a stage wrote that is no sum: the heads of an attention, or one."""
        attention = self._attention_at(path)
        if attention is not None and isinstance(node, Operation):
            return self._heads(node, path, *attention, rows)
        if path in self._multi_head:
            return self._heads_in_one(self._multi_head[path], path, rows)
        value = rows.of(self._values[path] if node is None else self._value(node))
        if not isinstance(node, Operation) or node.name not in _INPUT_OF:
            is_embedded = isinstance(node, Operation) and node.name == "embedding"
            return {Term("embedding" if is_embedded else "other", path): value}
        bias = self._bias_of(node)
        if bias is None:
            return {Term("feed_forward", path): value}
        added = rows.of(self._value(bias))
        return {Term("feed_forward", path): value - added, Term("bias", path): added}

    def _heads(self, node: Operation, path: str, attention: str, between: Sequence[str], rows: _Rows) -> Parts:
        """The part of each head of an attention, and the bias that its last projection adds."""
        context = self._contexts[attention]
        value = self._values[attention].detach().double()
        bias = self._bias_of(node)
        none = rows.of(self._value(node, {attention: torch.zeros_like(value)}, between))
        parts = {}
        for head in range(context.n_heads):
            alone = self._value(node, {attention: _alone(value, context, head)}, between)
            parts[Term("head", attention, head)] = rows.of(alone) - none
        return parts if bias is None else {**parts, Term("bias", path): none}

    def _heads_in_one(self, whole: MultiHead, path: str, rows: _Rows) -> Parts:
        """The same where one function computes the whole attention."""
        node, context = whole.node, whole.context.double()
        given = inspect.signature(F.multi_head_attention_forward).bind(*node.arguments, **node.keywords).arguments
        weight, bias = (self._given(node, given[name]) for name in ("out_proj_weight", "out_proj_bias"))
        n_heads, width = context.shape[1], context.shape[-1]
        columns = self._value(weight or node).double().T.reshape(n_heads, width, -1)
        written = torch.einsum("bhtc,hcd->hbtd", context, columns)
        parts = {Term("head", path, head): rows.of(one) for head, one in enumerate(written)}
        if bias is None:
            return parts
        return {**parts, Term("bias", path): rows.of(self._value(bias))}

    def _attention_at(self, path: str) -> tuple[str, tuple[str, ...]] | None:
        """The stage of the context that a stage projects, and the stages between both; None where it is none."""
        node = self._nodes[path]
        if not isinstance(node, Operation) or node.name not in _INPUT_OF:
            return None
        between: list[str] = []
        node = node.inputs[_INPUT_OF[node.name]]
        while True:
            if isinstance(node, StageInput):
                if node.path in self._contexts:
                    return node.path, tuple(between)
                between.append(node.path)
                node = self._nodes.get(node.path)
            if not isinstance(node, Operation) or node.name not in CHANGES_OF_SHAPE | {"dropout", "mul"}:
                return None
            node = node.inputs[0]

    @staticmethod
    def _bias_of(node: Operation) -> Node | None:
        """The bias that a projection adds to every token."""
        if node.name == "addmm":
            return node.inputs[0]
        return node.inputs[2] if node.name == "linear" and len(node.inputs) > 2 else None

    @staticmethod
    def _given(node: Operation, given: object) -> Node | None:
        """The input that an argument of an operation is."""
        return node.inputs[given.index] if isinstance(given, Slot) else None

    def _value(self, node: Node, instead: Mapping[str, Tensor] | None = None, again: Sequence[str] = ()) -> Tensor:
        """Compute an expression.

        Args:
            node: the expression.
            instead: other values of some stages; where they are float64, all is computed in that.
            again: the stages that are computed from these.
        """
        if not instead and id(node) in self._path_of:
            return self._values[self._path_of[id(node)]].detach()
        if isinstance(node, Operation):
            given = [self._value(part, instead, again) for part in node.inputs]
            if given and may_write(node):
                given[0] = given[0].clone()
            return node.apply(tuple(given))
        if isinstance(node, StageInput):
            if instead and node.path in instead:
                return instead[node.path]
            expression = self._nodes.get(node.path)
            if node.path in again and expression is not None:
                return self._value(expression, instead, again)
            value = self._values[node.path]
        else:
            value = self._parameters[node.name] if isinstance(node, ParameterInput) else node.value
        value = value.detach()
        is_exact = instead and next(iter(instead.values())).dtype is torch.float64
        return value.double() if is_exact and value.is_floating_point() else value


class _Rows:
    """The rows of a sequence that are taken out of every tensor.

    ``shape`` is that of the batch: sequences and tokens.
    """

    def __init__(self, shape: tuple[int, int], item: int, tokens: slice) -> None:
        self._n_items, self._n_tokens = shape
        self._item, self._tokens = item, tokens

    def of(self, tensor: Tensor) -> Tensor:
        """(T, D) float64, or (1, D) of what is the same for all tokens."""
        return self._of_item(tensor.detach().double())

    def _of_item(self, tensor: Tensor) -> Tensor:
        rows, width = tensor.numel() // tensor.shape[-1] if tensor.dim() else 1, tensor.shape[-1:] or (1,)
        if rows == 1 and self._n_tokens > 1:
            return tensor.reshape(1, *width)
        if rows == self._n_tokens:
            return tensor.reshape(rows, *width)[self._tokens]
        if tensor.dim() == 3 and tensor.shape[0] == self._n_tokens != self._n_items:
            return tensor[self._tokens, self._item]
        return tensor.reshape(self._n_items, self._n_tokens, *width)[self._item, self._tokens]


def contributions_of(trace: Trace) -> Contributions:
    """The operations of a trace, to be followed back.

    Args:
        trace: a pass whose stages and attentions were all kept.
    """
    values = {path: stage.value for path, stage in trace.stages.items() if stage.value is not None}
    contexts: dict[str, Context] = {}
    multi_head: dict[str, MultiHead] = {}
    for attention in trace:
        if attention.context is None:
            continue
        context = attention.context.reshape(*attention.shape[:3], -1)
        stages = [each for each in trace.stages.values() if each.module == attention.module and each.path in values]
        new = [each for each in stages if each.path not in contexts and each.path not in multi_head]
        call = next((each for each in new if each.operation == _MULTI_HEAD), None)
        if call is not None and isinstance(call.node, Operation):
            last = next((each for each in new if each.operation == "fused"), call)
            multi_head[last.path] = MultiHead(attention.path, context, call.node)
            continue
        layouts = ((each.path, _layout_of(attention.path, context, each.value)) for each in new)
        contexts |= dict(islice(((path, found) for path, found in layouts if found is not None), 1))
    nodes = {path: stage.node for path, stage in trace.stages.items()}
    return Contributions(nodes, values, trace.parameters, contexts, multi_head)


def _layout_of(attention: str, context: Tensor, value: Tensor | None) -> Context | None:
    """The way in which a stage holds a context, (B, H, T, Dh); None where it does not."""
    n_items, n_heads, n_queries, width = context.shape
    layouts = {
        (n_items, n_heads, n_queries, width): (1, context),
        (n_items, n_queries, n_heads, width): (2, context.transpose(1, 2)),
        (n_items * n_heads, n_queries, width): (0, context.flatten(0, 1)),
    }
    if value is None or tuple(value.shape) not in layouts:
        return None
    axis, expected = layouts[tuple(value.shape)]
    gap = (value.detach().to(expected) - expected).abs().max()
    return Context(attention, n_heads, axis) if bool(gap <= _CLOSE * expected.abs().max()) else None


def _alone(value: Tensor, context: Context, head: int) -> Tensor:
    """A context with the numbers of one head alone."""
    one = torch.zeros_like(value)
    if context.axis == 0:
        one[head :: context.n_heads] = value[head :: context.n_heads]
    else:
        one.select(context.axis, head).copy_(value.select(context.axis, head))
    return one


def _sum_of(one: Parts, other: Parts) -> Parts:
    """Both, and what is in both once, added up."""
    return {**one, **{term: part + one[term] if term in one else part for term, part in other.items()}}


def _stages_in(node: Node | None) -> Iterator[str]:
    """The stages that an expression reads."""
    if isinstance(node, StageInput):
        yield node.path
    elif isinstance(node, Operation):
        for part in node.inputs:
            yield from _stages_in(part)


def _reads_a_stage(node: Node) -> bool:
    return any(_stages_in(node))
