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
import re
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.attentions import Attention
from headlight.contexts import Context, context_of, heads_of, stages_of
from headlight.passes import LOOK_UPS
from headlight.stages import CHANGES_OF_SHAPE, Stage, may_write, value_of
from headlight.trace import Trace
from model.dataflow import Constant, Node, Operation, ParameterInput, Slot, StageInput, inputs_of

Kind = Literal["embedding", "position", "head", "feed_forward", "bias", "other"]

_ADDED = frozenset(("add", "iadd", "sub", "isub"))
_MULTIPLIED = frozenset(("mul", "imul", "div", "idiv", "truediv", "true_divide"))
_MOVED = frozenset(("transpose", "permute", "movedim", "swapaxes", "mT", "T"))
_NORMS = {"layer_norm": inspect.signature(F.layer_norm), "rms_norm": inspect.signature(F.rms_norm)}
_PASSED = CHANGES_OF_SHAPE | _NORMS.keys() | {"dropout", "neg", "mean"}
_FILLED = frozenset(("masked_fill", "where"))
_FOLLOWED = _MULTIPLIED | _PASSED | _FILLED
_BY_COLUMNS = CHANGES_OF_SHAPE | {"dropout", "mul", "rms_norm"}
_INPUT_OF = {"linear": 0, "matmul": 0, "addmm": 1}
_LINEAR = _INPUT_OF.keys() | {"einsum"}
_MULTI_HEAD = "multi_head_attention_forward"
_SOFTMAX = frozenset(("softmax", "log_softmax"))
_OF_POSITIONS = re.compile(r"(?:^|[._])(?:pos|wpe)", re.IGNORECASE)
_OF_A_LAYER = re.compile(r"(?:^|\.)\d+\.")


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
        places: the stages of the stream in the order computed, from the input of the first layer on: where
            something was added, and where it was changed by a norm after that.
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
        if n_layers_normed <= starts_normed:
            return self.sums[-1]
        return next((path for path in reversed(self.places) if _OF_A_LAYER.search(path)), self.path)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Some terms and their rows, (n_terms, T, D) float64; their sum is what they were taken from."""

    terms: tuple[Term, ...]
    rows: Tensor

    def plus(self, other: _Parts, sign: int = 1) -> _Parts:
        """The terms of both; one that is in both is added up or, with the sign -1, subtracted."""
        added = other.rows if sign > 0 else -other.rows
        new = [i for i, term in enumerate(other.terms) if term not in self.terms]
        terms = (*self.terms, *(other.terms[i] for i in new))
        if len(new) == len(other.terms):
            return _Parts(terms, torch.cat([self.rows, added]))
        width = max(self.rows.shape[-1], other.rows.shape[-1])  # 1 of a mean
        rows = self.rows.new_zeros(len(terms), self.rows.shape[1], width)
        rows[: len(self.terms)] = self.rows
        rows[[terms.index(term) for term in other.terms]] += added
        return _Parts(terms, rows)


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
        self._path_of = {id(node): path for path, node in nodes.items() if path in values and node is not None}
        self._writers: dict[str, frozenset[str]] = {}
        for path, node in nodes.items():
            known = node is not None and path in values
            self._writers[path] = self._written_by(node, path) if known and node else frozenset((path,))
        self._inner: dict[str, str] = {}
        for path in nodes:
            if (inner := self._projected_before(path)) is not None:
                self._inner[path] = inner
        self.streams = tuple(self._find_streams())

    def places(self, stream: Stream, *, item: int = 0, tokens: slice = slice(None)) -> Iterator[Place]:
        """The stream wherever something was added to it or all of it was changed, in the order computed.

        Args:
            stream: one of ``streams``.
            item: the sequence of the batch.
            tokens: the rows taken apart.
        """
        rows = _Rows(self._shape_of(stream), item, tokens)
        known: dict[str, _Parts] = {}
        reads = {path: set(self._sums_in(self._nodes[path])) for path in stream.steps}
        n_readers = Counter(read for of_one in reads.values() for read in of_one)
        for path in stream.steps:
            parts = known[path] = self._parts(self._nodes[path], path, rows, known)
            for read in reads[path]:
                n_readers[read] -= 1
                if not n_readers[read]:
                    del known[read]  # else those of every place are kept, which are as many as all parts each time
            if path in stream.places:
                yield Place(path, parts.terms, parts.rows, rows.of(self._values[path]), path in stream.sums)

    def attention_of(self, term: Term) -> str:
        """The path of the attention that a head belongs to."""
        found = self._contexts.get(term.path) or self._multi_head[term.path]
        return found.attention

    def attentions_of(self, stream: Stream) -> tuple[str, ...]:
        """The paths of the attentions that write to a stream, in the order computed."""
        found = (self._attention_at(path) for path in stream.attentions)
        contexts = [path if at is None else at[0] for path, at in zip(stream.attentions, found, strict=True)]
        return tuple(dict.fromkeys(self.attention_of(Term("head", path)) for path in contexts))

    def width_of(self, path: str) -> int:
        """The size of a stage's last axis."""
        return self._values[path].shape[-1]

    def scaled(self, term: Term, stream: Stream) -> str:
        """The last stage of a stream that holds a term and nothing else: an embedding that was scaled."""
        alone = (path for path in stream.steps if self._writers[path] == {term.path})
        return [term.path, *alone][-1]

    # The logit lens ----------------------------------------------------------------------------------------------

    def answer_of(self, stream: Stream) -> str | None:
        """The stage of the logits of every token that are computed from the end of a stream; None without one."""
        sizes = {len(self._value(table)) for node in self._nodes.values() for table in _tables(node)}
        n_rows = self._values[stream.end].shape[:-1].numel()
        for path in reversed(list(self._values)):
            if path in {each.path for each in self.streams}:
                return None  # what comes before is a stage of a layer
            value, node = self._values[path], self._nodes[path]
            if isinstance(node, Operation) and node.name in _SOFTMAX:
                continue
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
        if not isinstance(node, Operation) or node.name not in _INPUT_OF:
            return None
        place = _INPUT_OF[node.name]
        read, weight = node.inputs[place : place + 2]
        while isinstance(read, Operation) and read.name in CHANGES_OF_SHAPE:
            read = read.inputs[0]
        if read != StageInput(stream.path):
            return None
        return self._value(weight) if node.name == "linear" else self._value(weight).mT

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
        read = set(_stages_in(node))
        if not read or not read <= self._values.keys():
            return ()  # it begins here, or the model wrote over what it reads
        if node.name in _ADDED:
            numbers = [each for each in node.arguments if not isinstance(each, Slot)]
            is_sum = not any(numbers) and not node.keywords and len(node.inputs) + len(numbers) == 2
            return node.inputs if is_sum else ()
        if node.name not in _FOLLOWED:
            return ()
        shape, undropped = self._shape(node), _undropped(node)
        if shape is None:
            return ()
        if undropped is not node:
            return (undropped,) if self._shape(undropped) == shape else ()
        if node.name in _FILLED:
            return ()
        if node.name in _MULTIPLIED:
            of_stages = [part for part in node.inputs if _reads_a_stage(part) and self._shape(part) == shape]
            is_divisor = "div" in node.name and of_stages == list(node.inputs[1:])
            return () if len(of_stages) != 1 or is_divisor else (of_stages[0],)
        before = self._shape(node.inputs[0])
        if before is None:
            return ()
        if node.name == "mean":
            return node.inputs[:1] if shape == (*before[:-1], 1) else ()
        if node.name in _MOVED and _is_mixed(node, before):
            return ()
        return node.inputs[:1] if shape[-1] == before[-1] and shape.numel() == before.numel() else ()

    def _shape(self, node: Node) -> torch.Size | None:
        """The shape of an expression; None where it is no stage and tensors from outside are in it."""
        return self._value(node).shape if id(node) in self._path_of or _is_closed(node) else None

    def _shape_of(self, stream: Stream) -> tuple[int, int]:
        """The number of sequences and tokens there are in a stream."""
        first = stream.attentions[0]
        if first in self._multi_head:
            context = self._multi_head[first].context
            return context.shape[0], context.shape[2]
        path, _ = self._attention_at(first) or (first, ())
        return self._contexts[path].size

    def _find_streams(self) -> Iterator[Stream]:
        """Each last stage of a sum of attentions, as long as there are attentions in none."""
        attentions = {path for path in self._nodes if self._attention_at(path) is not None}
        attentions |= self._multi_head.keys()
        attentions -= set(self._inner.values())
        while attentions:
            counts = {
                path: len(writers & attentions)
                for path, writers in self._writers.items()
                if not isinstance(self._nodes[path], StageInput)  # another name of a stage, at who reads it
            }
            most = max(counts.values())
            if not most:
                return
            last = [path for path, count in counts.items() if count == most][-1]
            steps = self._steps_to(last)
            within = self._writers[last] & attentions
            attentions -= within
            wrote = tuple(path for path in self._nodes if path in within)
            plateaus = list(self._plateaus(steps))
            inputs = list(takewhile(lambda plateau: self._is_input(plateau[0]), plateaus))
            plateaus = [*inputs[-1:], *plateaus[len(inputs) :]]
            places = tuple(path for plateau in plateaus for path in plateau)
            stream = Stream(last, wrote, places, tuple(plateau[0] for plateau in plateaus), steps)
            if self._has_a_row_for_each_token(stream):
                yield stream

    def _has_a_row_for_each_token(self, stream: Stream) -> bool:
        """False where tokens are sent to experts or windows with attentions of their own, which have other rows."""
        n_items, n_tokens = self._shape_of(stream)
        shape = self._values[stream.path].shape
        if len(shape) > 2 and n_items not in shape[:2]:
            return False
        *steps, last = (self._values[path].shape[:-1].numel() for path in stream.steps)
        return last == n_items * n_tokens and set(steps) <= {1, n_tokens, last}

    def _is_input(self, path: str) -> bool:
        """True if neither an attention nor a linear layer wrote to a stage."""
        nodes = [self._nodes[writer] for writer in self._writers[path]]
        of_layers = (isinstance(node, Operation) and node.name in _LINEAR for node in nodes)
        return self._writers[path].isdisjoint(self._multi_head) and not any(of_layers)

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

    def _plateaus(self, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The stages of the stream that nothing was added between: the first, the last of a layer, the last.

        The stream is what holds the part that was written first. A stage with the numbers of the first is left out.
        """
        first = next(path for path in steps if self._writers[path] == {path})
        stream = [path for path in steps if first in self._writers[path]]
        entering = next((path for path in stream if self._takes_vectors(path)), stream[0])
        stream = stream[stream.index(entering) :]  # before that a part alone, which is added to what comes in
        for _, same in groupby(stream, self._writers.__getitem__):
            alike = tuple(same)
            ends = [*[path for path in alike if _OF_A_LAYER.search(path)][-1:], alike[-1]]
            changed = (path for path in ends if not torch.equal(self._values[alike[0]], self._values[path]))
            yield tuple(dict.fromkeys((alike[0], *changed)))

    def _takes_vectors(self, path: str) -> bool:
        """True if vectors of tokens that come from outside are added at a stage."""
        node = self._nodes[path]
        parts = self._summands(node) if isinstance(node, Operation) else ()
        return len(parts) > 1 and any(isinstance(part, Constant) and _are_vectors(part.value) for part in parts)

    # Its numbers -------------------------------------------------------------------------------------------------

    def _parts(self, node: Node | None, path: str, rows: _Rows, known: Mapping[str, _Parts]) -> _Parts:
        """The terms of an expression."""
        if isinstance(node, StageInput) and node.path in known:
            return known[node.path]
        summands = self._summands(node) if isinstance(node, Operation) else ()
        if not isinstance(node, Operation) or not summands:
            return self._written(node, path, rows)
        parts = [self._parts(part, path, rows, known) for part in summands]
        if len(parts) > 1:
            return parts[0].plus(parts[1], -1 if "sub" in node.name else 1)
        return self._through(node, path, parts[0], rows)

    def _through(self, node: Operation, path: str, parts: _Parts, rows: _Rows) -> _Parts:
        """The terms after an operation on their sum, with all else as it was in the pass."""
        if node.name in CHANGES_OF_SHAPE:
            return parts
        if node.name in _NORMS:
            return self._normed(node, path, parts, rows)
        undropped = _undropped(node)
        if undropped is not node:
            before, after = (rows.of(self._value(one)) for one in (undropped, node))
            return replace(parts, rows=parts.rows * torch.where(before == 0, 0.0, after / before))
        inputs = [rows.of(self._value(one)) for one in node.inputs]
        inputs[node.inputs.index(self._summands(node)[0])] = parts.rows.clone()
        return replace(parts, rows=node.apply(tuple(inputs)))

    def _normed(self, node: Operation, path: str, parts: _Parts, rows: _Rows) -> _Parts:
        """Each term through a norm whose mean and deviation are those of their sum."""
        bound = _NORMS[node.name].bind(*node.arguments, **node.keywords)
        bound.apply_defaults()
        stream = rows.of(self._value(node.inputs[0]))
        weight, bias = (self._input_at(node, bound.arguments.get(name)) for name in ("weight", "bias"))
        is_centred = node.name == "layer_norm"
        centred = stream - stream.mean(-1, keepdim=True) if is_centred else stream
        eps = bound.arguments["eps"]
        eps = torch.finfo(self._value(node.inputs[0]).dtype).eps if eps is None else eps
        scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
        if weight is not None:
            scale = scale * self._value(weight).double()
        centred_parts = parts.rows - parts.rows.mean(-1, keepdim=True) if is_centred else parts.rows.clone()
        return self._with_bias(replace(parts, rows=centred_parts.mul_(scale)), bias, path, rows)

    def _written(self, node: Node | None, path: str, rows: _Rows) -> _Parts:
        """The terms that a stage wrote that is no sum: the heads of an attention, or one."""
        attention = self._attention_at(path)
        if attention is not None and isinstance(node, Operation):
            return self._heads(node, path, *attention, rows)
        if path in self._multi_head:
            return self._heads_in_one(self._multi_head[path], path, rows)
        value = rows.of(self._values[path] if node is None else self._value(node))
        if not isinstance(node, Operation) or node.name not in _LINEAR:
            return _Parts((_begun(node, path),), value[None])
        bias = self._bias_of(node)
        output = value if bias is None else value - rows.of(self._value(bias))
        return self._with_bias(_Parts((Term("feed_forward", path),), output[None]), bias, path, rows)

    def _heads(
        self, node: Operation, path: str, attention: str, between: Sequence[Operation], rows: _Rows
    ) -> _Parts:
        """The part of each head of an attention, and the bias that its last projection adds."""
        if node.name == "einsum" or path in self._inner:
            outputs = torch.stack([rows.of(output) for output in self._outputs_of_heads(node, path, attention)])
        else:
            place = _INPUT_OF[node.name]
            read, weight = rows.of(self._value(node.inputs[place])), self._value(node.inputs[place + 1]).double()
            columns = self._columns_of_heads(attention, between)
            weight = weight if node.name == "linear" else weight.T
            outputs = torch.einsum("thc,dhc->htd", read[:, columns], weight[:, columns])
        parts = _Parts(tuple(Term("head", attention, head) for head in range(len(outputs))), outputs)
        return self._with_bias(parts, self._bias_of(node), path, rows)

    def _outputs_of_heads(self, node: Operation, path: str, attention: str) -> Iterator[Tensor]:
        """The output of a projection without a bias where all heads but one are zero, for each head."""
        again = self._between(path, {attention}) if path in self._inner else ()
        value, context = self._values[attention], self._contexts[attention]
        heads = torch.arange(value.shape[context.axis], device=value.device) % context.n_heads
        for head in range(context.n_heads):
            is_own = (heads == head).view(-1, *[1] * (value.dim() - context.axis - 1))
            yield self._value(node, {attention: value * is_own}, again)

    def _columns_of_heads(self, attention: str, between: Sequence[Operation]) -> Tensor:
        """(H, Dh), the columns that each head has in what a projection reads of an attention."""
        value, context = self._values[attention], self._contexts[attention]
        heads = torch.zeros_like(value, dtype=torch.int64).movedim(context.axis, -1)
        heads += torch.arange(heads.shape[-1], device=value.device) % context.n_heads
        heads = heads.movedim(-1, context.axis)
        for change in between:
            if change.name in CHANGES_OF_SHAPE:
                heads = change.apply((heads, *(self._value(other) for other in change.inputs[1:])))
        return heads.flatten(0, -2)[0].argsort(stable=True).view(context.n_heads, -1)

    def _heads_in_one(self, whole: MultiHead, path: str, rows: _Rows) -> _Parts:
        """The same where one function computes the whole attention."""
        node, context = whole.node, whole.context.double()
        signature = inspect.signature(F.multi_head_attention_forward)
        arguments = signature.bind(*node.arguments, **node.keywords).arguments
        weight, bias = (self._input_at(node, arguments[name]) for name in ("out_proj_weight", "out_proj_bias"))
        n_heads, width = context.shape[1], context.shape[-1]
        columns = self._value(weight or node).double().T.reshape(n_heads, width, -1)
        outputs = torch.einsum("bhtc,hcd->hbtd", context, columns)
        terms = tuple(Term("head", path, head) for head in range(n_heads))
        parts = _Parts(terms, torch.stack([rows.of(one) for one in outputs]))
        return self._with_bias(parts, bias, path, rows)

    def _with_bias(self, parts: _Parts, bias: Node | None, path: str, rows: _Rows) -> _Parts:
        """Terms, and the bias that was added to them at a stage."""
        if bias is None:
            return parts
        return parts.plus(_Parts((_bias_at(path, bias),), rows.of(self._value(bias))[None]))

    def _attention_at(self, path: str) -> tuple[str, tuple[Operation, ...]] | None:
        """The stage of the context that a stage projects, and the operations in between; None where it is none."""
        node = self._nodes[path]
        if not isinstance(node, Operation) or node.name not in _LINEAR:
            return None
        if node.name == "einsum":
            read = list(_stages_in(node))
            return (read[0], ()) if len(read) == 1 and read[0] in self._contexts else None
        if path in self._inner:
            return self._attention_at(self._inner[path])
        return self._from_context(node.inputs[_INPUT_OF[node.name]])

    def _projected_before(self, path: str) -> str | None:
        """The projection of a context that a stage projects once more, both without a bias; None where none is.

        A product of two matrices of low rank is such (Hu et al. 2021, "LoRA", 4.1).
        """
        node = self._nodes[path]
        if not isinstance(node, Operation) or node.name not in _INPUT_OF or self._bias_of(node) is not None:
            return None
        read: Node | None = node.inputs[_INPUT_OF[node.name]]
        while read is not None:
            if isinstance(read, StageInput):
                inner = self._nodes.get(read.path)
                if isinstance(inner, Operation) and inner.name in _LINEAR:
                    return read.path if self._bias_of(inner) is None and self._attention_at(read.path) else None
                read = inner
            elif isinstance(read, Operation) and read.name in CHANGES_OF_SHAPE | {"dropout"}:
                read = read.inputs[0]
            else:
                return None
        return None

    def _from_context(self, node: Node | None, *after: Operation) -> tuple[str, tuple[Operation, ...]] | None:
        """The stage of the context that an expression is made of column by column, and the operations since."""
        if isinstance(node, StageInput):
            if node.path in self._contexts:
                return node.path, after
            node = self._nodes.get(node.path)
        if not isinstance(node, Operation) or node.name not in _BY_COLUMNS:
            return None
        parts = node.inputs if node.name in _MULTIPLIED else node.inputs[:1]
        return next((found for part in parts if (found := self._from_context(part, node, *after))), None)

    @staticmethod
    def _bias_of(node: Operation) -> Node | None:
        """The bias that a projection adds to every token."""
        if node.name == "addmm":
            return node.inputs[0]
        return node.inputs[2] if node.name == "linear" and len(node.inputs) > 2 else None

    @staticmethod
    def _input_at(node: Operation, argument: object) -> Node | None:
        """The input that an argument of an operation is."""
        return node.inputs[argument.index] if isinstance(argument, Slot) else None

    def _value(self, node: Node, instead: Mapping[str, Tensor] | None = None, again: Sequence[str] = ()) -> Tensor:
        """Compute an expression.

        Args:
            node: the expression.
            instead: other values of some stages.
            again: the stages that are computed from these.
        """
        if not instead and id(node) in self._path_of:
            return self._values[self._path_of[id(node)]].detach()
        if isinstance(node, Operation):
            inputs = [self._value(part, instead, again) for part in node.inputs]
            if inputs and may_write(node):
                inputs[0] = inputs[0].clone()
            return node.apply(tuple(inputs))
        if isinstance(node, StageInput):
            if instead and node.path in instead:
                return instead[node.path]
            expression = self._nodes.get(node.path)
            if node.path in again and expression is not None:
                return self._value(expression, instead, again)
            return self._values[node.path].detach()
        return (self._parameters[node.name] if isinstance(node, ParameterInput) else node.value).detach()


class _Rows:
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


def contributions_of(trace: Trace) -> Contributions:
    """The operations of a trace, to be followed back.

    Args:
        trace: a pass whose stages and attentions were all kept.
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
    return Contributions(nodes, values, trace.parameters, contexts, multi_head)


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


def _begun(node: Node | None, path: str) -> Term:
    """The term of what no part of a layer wrote: the tokens, their positions, a bias."""
    parameters = [leaf.name for leaf in _leaves(node) if isinstance(leaf, ParameterInput)]
    if any(map(_OF_POSITIONS.search, (path, *parameters))):
        return Term("position", path)
    are_vectors = isinstance(node, Constant) and _are_vectors(node.value)
    if are_vectors or any(True for _ in _tables(node)):
        return Term("embedding", path)
    return _bias_at(path, node) if isinstance(node, ParameterInput | Constant) else Term("other", path)


def _tables(node: Node | None) -> Iterator[ParameterInput]:
    """The tables in which an expression looks tokens up by their ids."""
    if not isinstance(node, Operation):
        return
    tables = [part for part in node.inputs if isinstance(part, ParameterInput)]
    if node.name in LOOK_UPS and len(node.inputs) > len(tables):
        yield from tables
    for part in node.inputs:
        yield from _tables(part)


def _are_vectors(value: Tensor) -> bool:
    """True if a tensor from outside has more than one row, as the tokens of a model that is given vectors."""
    return value.dim() > 1 and value.shape[-2] > 1


def _bias_at(path: str, node: Node) -> Term:
    return Term("bias", path, parameter=node.name if isinstance(node, ParameterInput) else "")


def _undropped(node: Operation) -> Node:
    """The input of what sets some numbers to zero: dropout, written out too (``x * drawn / keep``), or a mask.

    The operation itself where it is none.
    """
    inner: Node = node
    is_dropped = False
    while isinstance(inner, Operation):
        if inner.name in _FILLED:
            if (unfilled := _unfilled(inner)) is None:
                break
            inner, is_dropped = unfilled, True
        elif inner.name == "dropout" or inner.name in _MULTIPLIED:
            if not all(isinstance(other, Constant) for other in inner.inputs[1:]):
                break
            is_dropped |= inner.name == "dropout" or len(inner.inputs) > 1
            inner = inner.inputs[0]
        else:
            break
    return inner if is_dropped else node


def _unfilled(node: Operation) -> Node | None:
    """The numbers of which a mask sets some to zero; None where it sets them to anything else."""
    arguments = (*node.arguments, *node.keywords.values())
    if len(arguments) != 3:
        return None
    numbers, fill = arguments[1 if node.function is torch.where else 0], arguments[2]
    if isinstance(fill, Slot):
        filled = node.inputs[fill.index]
        is_zero = all(isinstance(leaf, Constant) for leaf in _leaves(filled)) and not value_of(filled, {}, {}).any()
    else:
        is_zero = fill == 0
    return node.inputs[numbers.index] if isinstance(numbers, Slot) and is_zero else None


def _is_mixed(node: Operation, shape: Sequence[int]) -> bool:
    """True if a change of the order of axes moves the last one, or more than sequences and tokens."""
    moved = node.apply((torch.empty(shape, device="meta"),))
    steps = [step for step, size in zip(moved.stride(), moved.shape, strict=True) if size > 1]
    return steps[-1:] != [1] or (len(shape) > 3 and steps != sorted(steps, reverse=True))


def _is_closed(node: Node) -> bool:
    """True if an expression is made of stages and parameters alone."""
    if isinstance(node, Operation):
        return bool(node.inputs) and all(map(_is_closed, node.inputs))
    return not isinstance(node, Constant)


def _leaves(node: Node | None) -> Iterator[StageInput | ParameterInput]:
    return iter(()) if node is None else inputs_of(node)


def _stages_in(node: Node | None) -> Iterator[str]:
    """The stages that an expression reads."""
    return (leaf.path for leaf in _leaves(node) if isinstance(leaf, StageInput))


def _reads_a_stage(node: Node) -> bool:
    return any(_stages_in(node))
