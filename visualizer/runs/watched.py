"""A pass of another model that was watched: its attentions by kind, what is said of them, and its tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.findings import Judged, judge, remarks_on
from headlight.masks.lint import Finding
from headlight.roles import is_of_decoder, is_of_encoder
from headlight.stages import value_of
from headlight.trace import Trace
from model.dataflow import Node, n_shared
from model.masks import with_leading_axes
from visualizer.components.axis import SequenceName
from visualizer.runs.cached_results import CachesResults


@dataclass(frozen=True, eq=False)
class WatchedRun(CachesResults):
    """A trace and what follows from it, each computed once, when it is first asked for.

    Attributes:
        trace: what was seen.
        title: what it is called.
        causal: whether no token may see a later one; None judges that by the masks.
        model_name: the name of the model's class; "" if unknown.
        vocabulary: the label of all that the model gives a probability to; empty where it is not known.
        source_vocabulary: the text of every token id that it reads; empty where it is ``vocabulary`` too.
    """

    trace: Trace
    title: str
    causal: bool | None = None
    model_name: str = ""
    vocabulary: Sequence[str] = ()
    source_vocabulary: Sequence[str] = ()

    @cached_property
    def n_bytes(self) -> int:
        """The memory of its tensors, those that several things share counted once."""
        attentions = [
            tensor
            for one in self.trace
            for tensor in (one.allowed, one.bias, one.weights, one.context, one.query, one.key, one.value)
        ]
        stages = [stage.value for stage in self.trace.stages.values()]
        found = [each for each in (*attentions, *stages, *self.trace.parameters.values()) if each is not None]
        storages = [each.untyped_storage() for each in found]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    @cached_property
    def kinds(self) -> tuple[tuple[Attention, ...], ...]:
        """The attentions of one shape whose names differ in their numbers alone, one for each layer."""
        found: dict[tuple[object, ...], list[Attention]] = {}
        for attention in self.trace:
            shape = None if attention.weights is None else tuple(attention.weights.shape)
            found.setdefault((_without_numbers(attention.path), attention.shape, shape), []).append(attention)
        return tuple(map(tuple, found.values()))

    def kind_of(self, attention: Attention) -> tuple[Attention, ...]:
        """The attentions of the same kind, in the order computed."""
        return next(kind for kind in self.kinds if attention in kind)

    @property
    def first_shown(self) -> Attention:
        """The first attention with an error, or the first one.

        Raises:
            IndexError: the trace has no attention.
        """
        wrong = (
            judged.attention
            for judged in self.judged
            if any(finding.severity == "error" for finding in judged.findings)
        )
        return next(wrong, self.trace[0])

    def attention_near(self, stage: str) -> Attention | None:
        """The attention at a path, or the one that is nearest to an operation; None where neither is there."""
        if stage in self.trace.paths:
            return self.trace[stage]
        module = stage.rpartition(".")[0]  # also of a known step that several operations are
        if stage not in self.trace.stages and not any(path.startswith(f"{module}.") for path in self.trace.stages):
            return None
        near = max(self.trace, key=lambda one: n_shared(one.module, stage), default=None)
        return near if near is not None and n_shared(near.module, stage) else None

    def attention_at(self, stage: str, layer: int) -> Attention | None:
        """The same in the nearest layer; the stage may also be that of an attention in the paper's names."""
        named = self.attention_near(stage) or self._first_of(stage.rpartition(".")[0])
        if named is None:
            return None
        kind = self.kind_of(named)
        return kind[min(layer, len(kind) - 1)]

    def _first_of(self, module: str) -> Attention | None:
        """The first attention of a kind in the paper's names, such as ``decoder.cross_attention``."""
        if not module.endswith("_attention"):
            return None
        has_one_stack = not self.trace.texts.decoder
        for one in self.trace:
            is_in_stack = has_one_stack or one.is_decoding is module.startswith("decoder")
            if is_in_stack and one.is_cross is module.endswith("cross_attention"):
                return one
        return None

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """Every attention with its mask in words and what was found."""
        inputs = self.trace.inputs
        return judge(self.trace, inputs.padding, self.causal, self.model_name or inputs.model)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what could not be seen, and on what is worth knowing of several attentions."""
        return (*self.trace.notes, *remarks_on(self.trace))

    def judged_of(self, attention: Attention) -> Judged:
        """The same of one attention."""
        return next(judged for judged in self.judged if judged.attention is attention)

    @property
    def findings(self) -> tuple[tuple[str, Finding], ...]:
        """Everything that was found, each with the path of its attention."""
        return tuple((judged.attention.path, found) for judged in self.judged for found in judged.findings)

    def sequence_at(self, path: str) -> SequenceName:
        """The sequence whose tokens a stage is of: that of what it was computed from, or of what reads it."""
        if not self.trace.texts.decoder:
            return "source"
        for ways in self._ways:
            reached = [path]
            for each in reached:  # grows as it is followed
                module = each.rpartition(".")[0]
                found = self.once(("sequence", module), partial(self._sequence_by_name, module))
                if found is not None:
                    return found
                reached += [one for one in ways.get(each, ()) if one not in reached]
        return "target"

    @cached_property
    def _ways(self) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
        """The stages that each was computed from, and those that were computed from it."""
        inputs = {path: stage.inputs for path, stage in self.trace.stages.items()}
        outputs: dict[str, list[str]] = {}
        for path, names in inputs.items():
            for name in names:
                outputs.setdefault(name, []).append(path)
        return inputs, outputs

    def _sequence_by_name(self, module: str) -> SequenceName | None:
        """The sequence that the attentions with the nearest names attend from; None where they differ."""
        shared = [n_shared(one.module, module) for one in self.trace]
        nearest = max([1, *shared])
        near = {one.is_decoding for one, n_parts in zip(self.trace, shared, strict=True) if n_parts == nearest}
        if len(near) != 1:
            return "source" if is_of_encoder(module) else "target" if is_of_decoder(module) else None
        return "target" if near.pop() else "source"

    def tokens_of(self, sequence: SequenceName, item: int) -> tuple[str, ...]:
        """The text of every token of a sequence, () where it is not known; tokens alone are the first stack's."""
        texts = self.trace.texts
        roles = {one.role for one in self.trace}
        has_source = bool(texts.encoder) or "cross" not in roles or "encoder" in roles
        known, is_first = (texts.decoder, not has_source) if sequence == "target" else (texts.encoder, has_source)
        return _of_item(known, item) or (self.trace.tokens if is_first else ())

    def values(self, node: Node) -> Tensor:
        """Return the value of an expression, from the stages and the parameters that are there.

        Raises:
            KeyError: a stage or a parameter is not there.
        """
        return value_of(node, self.trace.stages, self.trace.parameters)

    @cached_property
    def looking_ahead(self) -> tuple[Attention, ...]:
        """The attentions of a sequence to itself in which some query sees a later key."""
        return tuple(attention for attention in self.trace if not attention.is_cross and sees_later(attention))

    def labels(self, attention: Attention, item: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The text of every query and of every key of one sequence; () where it is not known. Sinks come last."""
        _, _, n_queries, n_keys = attention.shape
        n_keys -= attention.sinks
        own = self.tokens_of("target" if attention.is_decoding else "source", item)
        of_keys = self.tokens_of("source", item) if attention.is_cross else own
        queries = own[-n_queries:] if len(own) == n_keys and not attention.is_cross else own
        return (
            queries if len(queries) == n_queries else (),
            (*of_keys, *("sink",) * attention.sinks) if len(of_keys) == n_keys else (),
        )


def in_bytes(size: int) -> str:
    """``25 bytes``, ``12 KiB``, ``3.4 MiB``."""
    if size < 2**10:
        return f"{size} bytes"
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{max(1, round(size / 2**10)):,} KiB"


def sizes_in_words(shape: Sequence[int]) -> str:
    """``1 × 4 × 9 × 9``."""
    return " × ".join(f"{size:,}" for size in shape)


def n_items(attention: Attention) -> int:
    """Return the number of sequences that are kept of an attention."""
    return attention.shape[0] if attention.weights is None else len(attention.weights)


def plane(tensor: Tensor, item: int) -> Tensor:
    """(1 or H, Tq, Tk) of one sequence, out of what can be broadcast to (B, H, Tq, Tk)."""
    four = with_leading_axes(tensor)
    return four[min(item, len(four) - 1)]


def sees_later(attention: Attention) -> bool:
    """True if some query sees a key after it: the last query stands beside the last key, as with a cache.

    By the mask, or by the weights where the mask is not known.
    """
    _, _, n_queries, n_keys = attention.shape
    later = torch.ones(n_queries, n_keys, dtype=torch.bool).triu(max(0, n_keys - attention.sinks - n_queries) + 1)
    later[:, n_keys - attention.sinks :] = False
    if attention.allowed is not None:
        return bool((attention.allowed.cpu() & later).any())
    if attention.weights is not None:
        return bool((attention.weights.cpu() * later != 0).any())
    return bool(later.any()) and not attention.is_causal


def key_groups(attention: Attention) -> tuple[int, ...]:
    """For each head the number of the key/value head that it reads; () where each has its own."""
    n_heads, n_keys = attention.n_heads, attention.key_heads
    n_kept = n_heads if attention.weights is None else attention.weights.shape[1]
    if not 0 < n_keys < n_heads or n_heads % n_keys or n_kept != n_heads:
        return ()
    return tuple(head // (n_heads // n_keys) for head in range(n_heads))


def _of_item(texts: Sequence[tuple[str, ...]], item: int) -> tuple[str, ...]:
    return texts[min(item, len(texts) - 1)] if texts else ()


def _without_numbers(path: str) -> str:
    return re.sub(r"(?<=\.)\d+|^\d+", "*", path.partition(":")[0])
