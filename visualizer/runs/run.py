"""A finished run, and what a view asks of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import isclose, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.masks.faults import FAULTS
from headlight.roles import is_of_encoder
from model import (
    CombinedMask,
    MultiHeadAttention,
    Trace,
    TracedModule,
    positions_from_first_token,
)
from model.dataflow import Dataflow, Node, evaluate, parameters_of, record_dataflow
from model.sources.worked_examples import WorkedExample
from model.texts import texts_of
from model.tracing import Dims, Edit
from visualizer.components.axis import Axis, SequenceName
from visualizer.runs.cached_results import CachesResults
from visualizer.runs.head_notes import blocking, noted_name
from visualizer.runs.paths import layer_of, with_layer, without_layer
from visualizer.runs.tokens import TokenSequence
from visualizer.runs.watched import WatchedRun
from visualizer.settings.interventions import Intervention, read_interventions
from visualizer.settings.settings import Selection, Settings
from visualizer.settings.temperature import temperature_of

say = texts_of(__name__)


class Subject(NamedTuple):
    """One sequence of the batch of some settings."""

    settings: Settings
    item: int


@dataclass(frozen=True, eq=False)
class Run(CachesResults):
    """One finished forward pass, and everything needed to draw and explain it.

    Attributes:
        settings: what it was computed from.
        model: the model that computed it, in training mode where dropout is on.
        trace: every stage.
        masks: the masks that each attention was given, by its path.
        promised: the masks that were chosen for it; others only where the model is broken on purpose.
        batches: the sequences that were computed at once, ``source`` and, with a decoder beside an encoder,
            ``target``; of each line of the text one.
        vocabulary: the label of every token id that the model gives a probability to.
        head_names: what each head does, in the order of the heads; empty names where nothing is known.
        forward: runs the model once more on the tokens and masks of a run.
        example: the worked example that it is of; None for a model.
        published: the published numbers by stage; none for a model, and none without the example's own mask.
        item: the sequence of the batch that is looked at.
        complaints: one sentence for each part of the painted mask that was left out, since it cannot be read.
        n_bytes: the memory that it was expected to take; 0 for those that are always small.
        source_vocabulary: the label of every token id of the source; empty where it is ``vocabulary`` too.
        edits: by path, what was put in the place of what the model computed.
        attentions: those of a checkpoint or a recording as they were seen, by path; none of a model built here.
        trace_of_item: the stages of one sequence of a batch; None where they are cut out of these.
        axes_seen: queries and keys of a recording's attentions; None where they follow from the tokens.
        repeat: the same under the masks of other settings, where no link says what it is of; else None.
        seen: the pass whose operations are the stages; None where the model names its stages itself.
    """

    settings: Settings
    model: TracedModule
    trace: Trace
    masks: Mapping[str, CombinedMask]
    promised: Mapping[str, CombinedMask]
    batches: Mapping[SequenceName, tuple[TokenSequence, ...]]
    vocabulary: Sequence[str]
    head_names: tuple[str, ...]
    forward: Callable[[Run], object]
    example: WorkedExample | None = None
    published: Mapping[str, Tensor] = field(default_factory=dict)
    item: int = 0
    complaints: tuple[str, ...] = ()
    n_bytes: int = 0
    source_vocabulary: Sequence[str] = ()
    edits: Mapping[str, Edit] = field(default_factory=dict)
    attentions: Mapping[str, Attention] = field(default_factory=dict)
    trace_of_item: Callable[[int], Trace] | None = None
    axes_seen: tuple[Axis, Axis] | None = None
    repeat: Callable[[Settings], Run] | None = None
    seen: WatchedRun | None = None

    @cached_property
    def interventions(self) -> tuple[Intervention, ...]:
        """The interventions: what a person put in the place of what the model computed, in the order asked for."""
        return read_interventions(self.settings.edits)

    def has_edit_in(self, module: str) -> bool:
        """True if a stage of a module was edited, which what must hold in it and derivations go by."""
        return any(each.path.rpartition(".")[0] == module for each in self.interventions)

    @property
    def tokens(self) -> Mapping[SequenceName, TokenSequence]:
        """The tokens of the sequence that is looked at, and of its target."""
        return {name: batch[min(self.item, len(batch) - 1)] for name, batch in self.batches.items()}

    @property
    def subject(self) -> Subject:
        """The settings and the sequence that the numbers looked at depend on."""
        return Subject(self.settings, self.item)

    @property
    def text(self) -> str:
        """The line of the text that is looked at."""
        lines = self.settings.lines
        return lines[min(self.item, len(lines) - 1)]

    def at(self, item: int) -> Run:
        """The same run, looked at in another sequence of its batch, or the last one."""
        item = min(item, self.n_batch_items - 1)
        return self if item == self.item else self.once(("at", item), lambda: replace(self, item=item))

    def alone(self) -> Run:
        """The sequence that is looked at as the only one of its batch, for who looks at one: the same numbers.

        Its stages are views of those of the batch, and what was one tensor still is.
        """
        return self if self.n_batch_items == 1 else self.once("alone", self._alone)

    def _alone(self) -> Run:
        one = slice(self.item, self.item + 1)
        if self.trace_of_item is not None:
            trace, sequences = self.trace_of_item(self.item), {name: (each,) for name, each in self.tokens.items()}
            masks = in_items(self.masks, self.item)
            return replace(self, trace=trace, masks=masks, promised=masks, batches=sequences, trace_of_item=None)
        values = {id(stage.value): stage.value[one] for stage in self.trace.values() if stage.dims[0][0] == "B"}
        stages = {
            path: replace(stage, value=values[id(stage.value)], dims=(("B", 1), *stage.dims[1:]))
            if id(stage.value) in values
            else stage
            for path, stage in self.trace.items()
        }
        return replace(
            self,
            trace=Trace(stages),
            masks=in_items(self.masks, self.item),
            promised=in_items(self.promised, self.item),
            batches={name: (sequence,) for name, sequence in self.tokens.items()},
            published={
                path: numbers[one] if self.trace[path].dims[0][0] == "B" else numbers
                for path, numbers in self.published.items()
            },
        )

    def nearest(self, selection: Selection) -> Selection:
        """The selection with every place that this run does not have replaced by the nearest that it has."""
        path = with_layer(self.trace, selection.stage, selection.layer)
        n_rows, n_columns = (1, 1, *self.trace[path].value.shape)[-2:]
        n_heads = self.n_heads(path) or self.settings.n_heads
        return replace(
            selection,
            stage=without_layer(path),
            layer=layer_of(path) if "layers." in path else selection.layer,
            head=min(selection.head, n_heads - 1),
            query=min(selection.query, n_rows - 1),
            key=min(selection.key, n_columns - 1),
            batch=min(selection.batch, self.n_batch_items - 1),
        )

    def record_dataflow(self) -> Dataflow:
        """Record what every stage of this run was computed from, by running the model again."""
        return record_dataflow(self.model, lambda: self.forward(self), self.edits)

    @cached_property
    def dataflow(self) -> Dataflow:
        """The same, kept with the tensors from outside that it holds."""
        return self.record_dataflow()

    @cached_property
    def parameters(self) -> Mapping[str, Tensor]:
        """The parameters and buffers that its stages are computed with, by their names."""
        return parameters_of(self.model) if self.seen is None else self.seen.trace.parameters

    def values(self, node: Node) -> Tensor:
        """Compute an expression over its stages and parameters.

        Raises:
            KeyError: a stage or a parameter of another model was not kept.
        """
        return evaluate(node, self.trace, self.parameters) if self.seen is None else self.seen.values(node)

    @cached_property
    def structure(self) -> Hashable:
        """Everything the dataflow depends on: modules, parameters, lines that ran, which stages are one tensor."""
        firsts: dict[int, int] = {}
        stages = tuple(
            (
                path,
                stage.location,
                firsts.setdefault(id(stage.value), i),
                tuple(axis for axis in stage.dims if axis[0] not in _OF_THE_TEXT),
            )
            for i, (path, stage) in enumerate(self.trace.items())
        )
        modules = tuple(
            # the number in a norm's expression, and the expression of changed scores
            (path, type(module).__qualname__, getattr(module, "eps", None), getattr(module, "score_mod", None))
            for path, module in self.model.named_modules()
        )
        parameters = tuple(name for name, _ in self.model.named_parameters())  # a bias is there or not
        return modules, parameters, self.model.training, stages

    def axes(self, path: str) -> tuple[Axis, Axis]:
        """The rows and columns of a stage, with their labels."""
        return self.axes_of(path, self.trace[path].dims)

    def axes_of(self, path: str, dims: Dims) -> tuple[Axis, Axis]:
        """The same of a tensor with other axes, ``dims``, that is read where the stage stands."""
        rows, columns = (("", 1), ("", 1), *dims)[-2:]
        return self._axis(path, *rows), self._axis(path, *columns)

    def token_id(self, path: str, row: int) -> int:
        """The id of the token in a row of a stage.

        Raises:
            ValueError: the rows of the stage are not tokens.
        """
        sequence = self.axes(path)[0].sequence
        if sequence is None:
            raise ValueError(f"the rows of {path} are not tokens")
        return self.tokens[sequence].ids[row]

    def names_of(self, n_heads: int) -> tuple[str, ...]:
        """Return the names of an attention's heads, which say what each does; "" where nothing is known."""
        return (self.head_names + ("",) * n_heads)[:n_heads]

    def head_label(self, head: int, module: str = "") -> str:
        """``head 2 · same token``; of an attention with what its masks make of it."""
        name = self.names_of(head + 1)[head]
        if module:
            (name,) = self.noted([name], module)
        return say("named_head", head=head, name=name) if name else say("head", head=head)

    def is_changed(self, module: str) -> bool:
        """True if an attention computes its weights otherwise than it was built to, the temperature aside."""
        has_other_scores = f"{module}.modified_scores" in self.trace and temperature_of(self.settings.score) is None
        return has_other_scores or self.settings.fault in FAULTS or self.has_edit_in(module)

    def noted(self, names: Iterable[str], module: str) -> tuple[str, ...]:
        """The names of heads of an attention, each with what its masks make of it."""
        if self.is_changed(module):
            return tuple(names)
        masks, is_cross = blocking(self.mask_of(module)), self.is_cross_attention(module)
        return tuple(noted_name(name, masks, is_cross=is_cross) for name in names)

    def position(self, path: str, row: int, batch: int) -> int:
        """Return the position of the token in a row of a stage, as the model counts."""
        positions = self.positions.get(self.axes(path)[0].sequence or "source")
        return row if positions is None else int(positions[min(batch, len(positions) - 1), row])

    @property
    def positions(self) -> Mapping[SequenceName, Tensor]:
        """The positions of the tokens by sequence, (B, T), without sequences where they are simply 0, 1, 2, ..."""
        return positions_in(self.settings, self.batches)

    def n_heads(self, path: str) -> int | None:
        """The number of heads of a stage; None where it has no head axis."""
        return dict(self.trace[path].dims).get("H")

    @cached_property
    def n_batch_items(self) -> int:
        """The number of sequences computed at once."""
        if self.attentions:
            return len(self.batches["source"])
        return max(self.batch_size(path) for path in self.trace)

    def batch_size(self, path: str) -> int:
        """The number of batch items of a stage; 1 where it has no batch axis."""
        return dict(self.trace[path].dims).get("B", 1)

    def head_dim(self, path: str) -> int:
        """Width of one head of the attention that ``path`` belongs to."""
        return int(self.trace[f"{path.rpartition('.')[0]}.v"].value.shape[-1])

    def scales_scores(self, module: str) -> bool:
        """True if an attention divided its scores by √d_k."""
        if module in self.attentions:
            return isclose(self.temperature(module), sqrt(self.trace[f"{module}.q"].value.shape[-1]))
        attention = self.model.get_submodule(module)
        return not isinstance(attention, MultiHeadAttention) or attention.scale_scores

    def temperature(self, module: str) -> float:
        """The number that an attention divides its scores by."""
        if module in self.attentions:
            return 1 / self.attentions[module].scale
        return sqrt(self.trace[f"{module}.q"].value.shape[-1]) if self.scales_scores(module) else 1.0

    def activation(self, path: str) -> str:
        """The activation function of the feed-forward network that ``path`` belongs to."""
        return str(self.model.get_submodule(path.rpartition(".")[0]).activation)

    def mask_of(self, module: str) -> CombinedMask:
        """The masks of one attention."""
        return self.masks.get(module, CombinedMask({}))

    def blocked_by(self, module: str, query: int, key: int, batch: int, head: int) -> tuple[str, ...]:
        """The names of the masks that block a cell of an attention."""
        return self.mask_of(module).blocked_by(query, key, batch, head)

    def vocabulary_of(self, path: str) -> Sequence[str]:
        """The label of every token id in the part of the model that a stage or a parameter belongs to."""
        return (self.source_vocabulary if path.startswith("encoder.") else ()) or self.vocabulary

    def _axis(self, path: str, symbol: str, size: int) -> Axis:
        if self.axes_seen is not None and symbol in ("Tq", "Tk"):
            return self.axes_seen[symbol == "Tk"]
        sequence = self._sequence(path, symbol)
        if sequence is not None and size <= len(self.tokens[sequence].labels):
            return Axis(_AXIS_NAMES[symbol], self.tokens[sequence].labels[:size], sequence)
        if symbol == "V" and isinstance(self.vocabulary, tuple) and size == len(self.vocabulary):
            return Axis("vocabulary", self.vocabulary, None)
        parts = {"3*": "qkv", "2*": "kv"}.get(symbol[:2], ("",))
        return Axis(_AXIS_NAMES.get(symbol, "column"), side_by_side(parts, size), None)

    def _sequence(self, path: str, symbol: str) -> SequenceName | None:
        """Return the sequence of tokens that an axis runs over."""
        if symbol not in ("T", "Tq", "Tk", "S"):
            return None
        crosses = symbol == "Tk" and self.is_cross_attention(path.rpartition(".")[0])
        if crosses:
            return "source"
        return sequence_at(path, self.batches) if self.seen is None else self.seen.sequence_at(path)

    def is_cross_attention(self, module: str) -> bool:
        """True if an attention's keys come from another sequence than its queries."""
        if module in self.attentions:
            return module.endswith("cross_attention")
        return "target" in self.batches and not module.endswith("self_attention")


def sequence_at(path: str, batches: Container[SequenceName]) -> SequenceName:
    """The sequence whose tokens a stage is of: with a target that, unless it is within an encoder."""
    return "target" if "target" in batches and not is_of_encoder(path) else "source"


_OF_THE_TEXT = frozenset({"B", "T", "Tq", "Tk", "Tn", "S", "V"})
"""Axes whose sizes change with the text alone."""


@lru_cache(maxsize=32)
def side_by_side(parts: Sequence[str], size: int) -> tuple[str, ...]:
    """Labels of columns in which equal parts lie side by side: ``q 0``, ``q 1``, ..., ``k 0``, and so on."""
    width = size // len(parts)
    return tuple(f"{parts[i // width]} {i % width}".strip() for i in range(size))


def in_items(masks: Mapping[str, CombinedMask], item: int) -> dict[str, CombinedMask]:
    """The masks of one sequence of a batch; attentions that share them still do."""
    one = slice(item, item + 1)
    found = {
        id(mask): CombinedMask({name: _part(part, one) for name, part in mask.parts.items()})
        for mask in masks.values()
    }
    return {path: found[id(mask)] for path, mask in masks.items()}


def _part(mask: Tensor, one: slice) -> Tensor:
    return mask[one] if mask.dim() == 4 and len(mask) > 1 else mask


def positions_in(
    settings: Settings, batches: Mapping[SequenceName, Sequence[TokenSequence]]
) -> dict[SequenceName, Tensor]:
    """Counted from the first token that is no padding, unless the fault chosen is to count the padding too."""
    if settings.fault == "padding_counted":
        return {}
    is_padding = {
        name: torch.tensor([sequence.is_padding for sequence in batch]) for name, batch in batches.items()
    }
    return {name: positions_from_first_token(pads) for name, pads in is_padding.items() if pads[:, 0].any()}


_AXIS_NAMES = {"row": "row", "T": "token", "S": "token", "Tq": "query", "Tk": "key", "V": "vocabulary"}
