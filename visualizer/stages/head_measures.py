"""The behaviour of each head, as numbers: the measures of ``model.analysis.metrics`` on the tokens of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.analysis.metrics import METRICS, Attention
from model.learning.grammar import NOWHERE
from model.learning.tasks import TASKS, expected_keys, sequences
from visualizer.components.axis import SequenceName
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.runs.tokens import TokenSequence
from visualizer.settings.fields import TRAINED, WORKED_EXAMPLES


@dataclass(frozen=True)
class HeadMeasures:
    """One head of one layer.

    Attributes:
        layer: its layer.
        head: its number in the layer.
        values: by the name of the measure; NaN where it does not apply.
    """

    layer: int
    head: int
    values: Mapping[str, float]


def has_tokens(run: Run, module: str) -> bool:
    """True if the queries and keys of an attention are tokens: vectors of an example, or a prompt, are none."""
    axes = run.axes(f"{module}.weights")
    return run.settings.weights not in WORKED_EXAMPLES and all(axis.sequence is not None for axis in axes)


def measure_heads(run: Run, modules: Sequence[str]) -> tuple[HeadMeasures, ...]:
    """Measure every head of some attentions of one kind, over tokens, layer by layer, once for a run."""
    return run.once(("measures", *modules), lambda: _measured(run, modules))


def _measured(run: Run, modules: Sequence[str]) -> tuple[HeadMeasures, ...]:
    found: list[HeadMeasures] = []
    for module in modules:
        attention = _attention(run, module)
        columns = {name: metric.compute(attention).tolist() for name, metric in METRICS.items()}
        found += (
            HeadMeasures(layer_of(module), head, {name: values[head] for name, values in columns.items()})
            for head in range(attention.weights.shape[1])
        )
    return tuple(found)


def applying(found: Sequence[HeadMeasures]) -> tuple[str, ...]:
    """The names of the measures that say something of a head here, that of the task's answer first."""
    names = sorted(METRICS, key=lambda name: name != "expected_token")
    return tuple(name for name in names if not all(math.isnan(one.values[name]) for one in found))


def _attention(run: Run, module: str) -> Attention:
    rows, columns = run.axes(f"{module}.weights")
    queries, keys = (_tokens_of(run, axis.sequence) for axis in (rows, columns))
    return Attention(
        weights=run.trace[f"{module}.weights"].value[:1],
        query_ids=_ids(run, rows.sequence),
        key_ids=_ids(run, columns.sequence),
        query_is_padding=torch.tensor([queries.is_padding]),
        key_is_padding=torch.tensor([keys.is_padding]),
        is_self_attention=not run.is_cross_attention(module),
        expected_keys=_expected(run, module),
    )


def _ids(run: Run, sequence: SequenceName | None) -> Tensor:
    """The tokens of a sequence as numbers, (1, T); two vocabularies have no number in common."""
    ids = torch.tensor([_tokens_of(run, sequence).ids])
    is_apart = sequence == "target" and run.settings.has_two_vocabularies
    return ids + max(run.tokens["source"].ids) + 1 if is_apart else ids


def _tokens_of(run: Run, sequence: SequenceName | None) -> TokenSequence:
    if sequence is None:
        raise ValueError("the rows and columns of an attention must be tokens")
    return run.tokens[sequence]


def _expected(run: Run, module: str) -> Tensor | None:
    """The key that each query should find, (1, Tq); None where no task says so, or the answer is wrong."""
    if run.settings.weights != TRAINED or not _reads_the_text(run, module):
        return None
    task = TASKS[run.settings.task]
    text = task.read(run.text)
    right = sequences(task, text)
    queries = run.tokens["target" if right.target is not None else "source"]
    is_real = ~torch.tensor(queries.is_padding)
    if tuple(torch.tensor(queries.ids)[is_real].tolist()) != (
        right.source if right.target is None else right.target
    ):
        return None
    keys = torch.tensor(expected_keys(task, text))
    n_before = run.tokens["source"].is_padding.index(False)
    expected = torch.full((len(queries),), NOWHERE)
    expected[is_real] = torch.where(keys == NOWHERE, NOWHERE, keys + n_before)
    return expected[None]


def _reads_the_text(run: Run, module: str) -> bool:
    """True if this is the attention through which the answer reads the text."""
    return "target" not in run.tokens or run.is_cross_attention(module)
