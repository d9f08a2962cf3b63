"""A pass that was watched as a run: its stages are the operations, and the known steps that several of them are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from headlight.patterns import Folded
from headlight.stages import Stage as Operation
from model import Trace, TracedModule
from model.dataflow import Node, Slot
from model.dataflow import Operation as Computed
from model.tracing import Dims, Stage
from visualizer.components.axis import SequenceName
from visualizer.runs.paths import number_in
from visualizer.runs.recording_run import sequence_of
from visualizer.runs.run import Run
from visualizer.runs.seen import not_repeated
from visualizer.runs.tokens import TokenSequence
from visualizer.runs.watched import WatchedRun, sizes_in_words
from visualizer.settings.fields import RECORDED
from visualizer.settings.settings import Settings

_OF_FILE = Settings(weights=RECORDED)

Arrangement = tuple[Callable[..., Tensor], *tuple[int, ...]]
"""A function of PyTorch that changes axes, and its arguments."""

TOKENS_FIRST: Arrangement = (torch.transpose, 0, 1)
"""For tokens that stand before sequences, as within ``nn.MultiheadAttention``."""

ONE_SEQUENCE: Arrangement = (torch.unsqueeze, 0)
"""For the heads of one sequence, (H, T, D), where no axis is for sequences."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OperationStage(Stage):
    """An operation of a pass, or a known step, as a stage.

    Attributes:
        operation: the operation; of a step the last one of it.
        step: the step; None of a single operation.
        arrangement: the change of axes by which ``value`` comes from the model's own tensor; None where it is that.
    """

    operation: Operation
    step: Folded | None
    arrangement: Arrangement | None

    @property
    def module_path(self) -> str:
        """The path of the module that called it."""
        return self.operation.module if self.step is None else self.step.module

    @property
    def shape_text(self) -> str:
        """The sizes of its tensor, such as ``1 × 4 × 9 × 9``; "" where its numbers are not known."""
        if self.operation.value is None:
            return ""
        return sizes_in_words(self.operation.value.shape)

    @property
    def own_dims(self) -> Dims:
        """The axes of the model's own tensor."""
        if self.arrangement is ONE_SEQUENCE:
            return self.dims[1:]
        return self.dims if self.arrangement is None else (self.dims[1], self.dims[0], *self.dims[2:])

    @property
    def node(self) -> Node | None:
        """The expression that gives ``value``; None where the pass was recorded without."""
        node = self.operation.node
        if node is None or self.arrangement is None:
            return node
        function, *axes = self.arrangement
        return Computed(function.__name__, (node,), function, (Slot(0), *axes))


def run_of_operations(seen: WatchedRun, item: int = 0, settings: Settings = _OF_FILE) -> Run:
    """The run whose stages are the operations of a pass.

    Args:
        seen: the pass.
        item: the sequence of its batch that is looked at, or the last one.
        settings: the settings that give it again; those of a recording where none do.
    """
    return seen.once(("operations", item), lambda: _run(seen, item, settings))


def _run(seen: WatchedRun, item: int, settings: Settings) -> Run:
    return Run(
        settings,
        cast(TracedModule, nn.Module()),
        Trace(_Stages(seen)),
        masks={},
        promised={},
        batches=_batches(seen),
        vocabulary=seen.vocabulary,
        source_vocabulary=seen.source_vocabulary,
        head_names=(),
        forward=not_repeated,
        item=item,
        seen=seen,
    )


def _batches(seen: WatchedRun) -> dict[SequenceName, tuple[TokenSequence, ...]]:
    """The tokens of every sequence, as far as they are known."""
    texts = seen.trace.texts
    source = tuple(map(sequence_of, texts.encoder or (seen.trace.tokens,)))
    return {"source": source, **({"target": tuple(map(sequence_of, texts.decoder))} if texts.decoder else {})}


class _Stages(Mapping[str, Stage]):
    """The stages by path: every operation in the order computed, then every known step."""

    def __init__(self, seen: WatchedRun) -> None:
        self._seen = seen
        self._made: dict[str, Stage] = {}

    def __getitem__(self, path: str) -> Stage:
        if path not in self._made:
            operations = self._seen.trace.stages
            step = None if path in operations else self._seen.trace.patterns[path]
            self._made[path] = self._stage(path, operations[path if step is None else step.stages[-1]], step)
        return self._made[path]

    def __iter__(self) -> Iterator[str]:
        yield from self._seen.trace.stages
        yield from self._seen.trace.patterns

    def __len__(self) -> int:
        return len(self._seen.trace.stages) + len(self._seen.trace.patterns)

    def _stage(self, path: str, operation: Operation, step: Folded | None) -> Stage:
        computed = torch.empty(0) if operation.value is None else operation.value
        arrangement = arrangement_of(self._seen, computed)
        value = arranged(computed, arrangement)
        dims = dims_of(self._seen, path, value.shape)
        return OperationStage(path, value, dims, ("", 0), operation=operation, step=step, arrangement=arrangement)


@dataclass(frozen=True)
class _Sizes:
    """The sizes by which the axes of a pass are told apart.

    Attributes:
        tokens: of each sequence that is read, how many tokens.
        batches: pairs of the number of sequences and of their tokens.
        heads: how many heads there are, and how many they share their keys with.
        cross: the modules that attend from a target to a source of as many tokens: which is which is not known.
    """

    tokens: Mapping[SequenceName, frozenset[int]]
    batches: frozenset[tuple[int, int]]
    heads: frozenset[int]
    cross: tuple[str, ...]


def _sizes_of(seen: WatchedRun) -> _Sizes:
    tokens = {name: frozenset(map(len, batch)) for name, batch in _batches(seen).items()}
    is_ambiguous = bool(tokens["source"] & tokens.get("target", frozenset()))
    return _Sizes(
        tokens,
        frozenset((one.shape[0], size) for one in seen.trace for size in one.shape[2:]),
        frozenset(count for one in seen.trace for count in (one.n_heads, one.key_heads)),
        tuple(f"{one.module}." for one in seen.trace if is_ambiguous and one.is_cross),
    )


def arranged(value: Tensor, arrangement: Arrangement | None) -> Tensor:
    """A tensor with its axes changed; the very tensor where that is not needed."""
    if arrangement is None:
        return value
    function, *axes = arrangement
    return function(value, *axes)


def arrangement_of(seen: WatchedRun, value: Tensor) -> Arrangement | None:
    """The change of axes that puts the sequences of a tensor in front; None where it needs none."""
    if value.dim() != 3:
        return None
    sizes = seen.once("sizes", lambda: _sizes_of(seen))
    first, second, third = value.shape
    if (first, second) not in sizes.batches and (second, first) in sizes.batches:
        return TOKENS_FIRST
    lengths = {n_tokens for n_sequences, n_tokens in sizes.batches if n_sequences == 1}
    of_heads = first > 1 and first in sizes.heads and bool(lengths & {second, third})
    return ONE_SEQUENCE if of_heads and len(lengths) == len(sizes.batches) else None


def dims_of(seen: WatchedRun, path: str, shape: Sequence[int]) -> Dims:
    """The axes of a tensor of another model, with their symbols as far as it is known what they count.

    Rows are tokens where there are as many, and so are columns that are as many as they, in each head or for all
    heads at once. Columns are the vocabulary where there are as many, and the stage is in no layer. What counts no
    heads is ``I``.
    """
    sizes = seen.once("sizes", lambda: _sizes_of(seen))
    symbols = [*("B", "I")[: max(0, len(shape) - 2)], *[""] * len(shape)][: len(shape)]
    if len(shape) > 3 and shape[1] in sizes.heads:
        symbols[1] = "H"
    if len(shape) > 1:
        of_tokens = () if path.startswith(sizes.cross) else sizes.tokens[seen.sequence_at(path)]
        symbols[-2] = "T" if shape[-2] in of_tokens else "row"
        is_of_heads = len(shape) == 4 and (symbols[1] == "H" or shape[1] == 1)
        if is_of_heads and symbols[2] == "T" and shape[-1] == shape[-2]:
            symbols[-1] = "T"
        elif shape[-1] == len(seen.vocabulary) and symbols[-2] == "T" and number_in(path) is None:
            symbols[-1] = "V"
    return tuple(zip(symbols, shape, strict=True))


def plain_dims(shape: Sequence[int]) -> Dims:
    """The rows and columns of a parameter, which count nothing in particular."""
    rows, columns = (1, 1, *shape)[-2:]
    return (("row", rows), ("", columns))
