"""The questions about a covered result, and their right answers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.components.tensor_grid.element import Panel
from visualizer.runs.run import Run
from visualizer.settings.settings import Selection
from visualizer.stages.informative import TIE
from visualizer.stages.panels import stage_panel

say = texts_of(__name__)

Kind = Literal["seen", "most"]
Flags = NDArray[np.bool_]
Codes = NDArray[np.uint8]

NOTHING, AS_EXPECTED, NOT_SO, MISSED = range(4)
"""A cell once a result is revealed: neither, marked and right, marked and wrong, right and not marked."""

OF_TOKENS = ("logits", "probabilities")
"""The stages whose rows are asked for a token."""

_GIVEN_AWAY = ("scaled_scores", "masked_scores", "weights", "dropped_weights", *OF_TOKENS)
"""The stages of whose inputs one shows the answer as it is."""

_ABOUT_MASKS = ("mask", "masked_scores")
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class CellQuestion:
    """A question about the cells of a matrix that a person expects to be something.

    Attributes:
        kind: "seen": the cells whose query sees the key; "most": of each row the cell with the largest number.
        result: what tells the result from every other of the run; several questions are about one.
        panel: what was computed.
        right: the cells that are it, (rows, columns).
        row: the row that is looked at.
        of_weights: whether the numbers are attention weights.
    """

    kind: Kind
    result: Hashable
    panel: Panel
    right: Flags
    row: int
    of_weights: bool

    @property
    def place(self) -> Hashable:
        """The place that tells it from every other question of a run."""
        return (self.kind, self.result)

    @property
    def scope(self) -> str:
        """The same place as a text: marks of one place cannot be undone in another."""
        return repr(self.place)


@dataclass(frozen=True, eq=False)
class Asked:
    """The question that is chosen about some cells, and what can be asked in its place.

    Attributes:
        question: the one that is chosen.
        path: the stage.
        head: of it.
        batch: the sequence.
        kinds: the questions that can be asked.
        places: for ``layer`` and ``head``, as far as they are chosen here, the one chosen and the names of all.
    """

    question: CellQuestion
    path: str
    head: int
    batch: int
    kinds: tuple[Kind, ...]
    places: Mapping[str, tuple[int, Sequence[str]]]


@dataclass(frozen=True, eq=False)
class TokenQuestion:
    """A question about the token that a person expects to be the most likely one.

    Attributes:
        result: what tells it from every other result of a run.
        labels: the tokens to choose from.
        shares: the probability of each.
        offered: the indices of those that can come.
    """

    result: Hashable
    labels: tuple[str, ...]
    shares: NDArray[np.float32]
    offered: tuple[int, ...]

    @property
    def place(self) -> Hashable:
        """The result has this one question."""
        return ("token", self.result)

    @property
    def best(self) -> int:
        """The most likely of the tokens that can come."""
        return max(self.offered, key=lambda token: float(self.shares[token]))


def gives_away(path: str) -> bool:
    """True if the inputs of a stage show what would be asked about it."""
    return path.rpartition(".")[2] in _GIVEN_AWAY


def kinds_at(run: Run, path: str) -> tuple[Kind, ...]:
    """Return the questions about the cells of a stage, the usual one first."""
    stage = run.trace[path]
    is_of_attention = [name for name, _ in stage.dims[-2:]] == ["Tq", "Tk"]
    has_mask = is_of_attention and bool(run.mask_of(stage.module_path).names)
    if stage.name == "mask":
        return ("seen",)
    if not has_mask:
        return ("most",)
    return ("seen", "most") if stage.name in _ABOUT_MASKS else ("most", "seen")


def result_at(run: Run, path: str, *, head: int, batch: int) -> Hashable:
    """The place of a stage's result, in one head of it, the same in every view that shows it."""
    return (path, head if run.n_heads(path) else 0, batch)


def question_at(run: Run, path: str, *, kind: Kind, head: int, batch: int, row: int) -> CellQuestion:
    """The question about one stage, in one head of it."""
    panel = stage_panel(run, path, head=head, batch=batch)
    of_weights = run.trace[path].name in ("weights", "dropped_weights")
    right = _seen(run, path, head=head, batch=batch) if kind == "seen" else largest(panel, of_weights=of_weights)
    return CellQuestion(
        kind=kind,
        result=result_at(run, path, head=head, batch=batch),
        panel=panel,
        right=right,
        row=min(row, len(panel.rows.labels) - 1),
        of_weights=of_weights,
    )


def asked_at(
    run: Run, path: str, selection: Selection, *, head: int, batch: int, masks_first: bool = False
) -> Asked:
    """Return the question about a stage, in one head of it; about its mask first, if so wanted."""
    kinds = kinds_at(run, path)[:: -1 if masks_first else 1]
    kind = next((kind for kind in kinds if kind == selection.question), kinds[0])
    question = question_at(run, path, kind=kind, head=head, batch=batch, row=selection.query)
    # without what each does, which would tell the answer
    heads = [say("head", head=index) for index in range(run.n_heads(path) or 0)]
    return Asked(question, path, head, batch, kinds, {"head": (head, heads)} if len(heads) > 1 else {})


def asked_of_layers(run: Run, modules: Sequence[str], selection: Selection, *, masks_first: bool = False) -> Asked:
    """Return the question about the weights of one head, out of those of an attention in every layer."""
    layer = min(selection.layer, len(modules) - 1)
    path = f"{modules[layer]}.weights"
    head = min(selection.head, (run.n_heads(path) or 1) - 1)
    batch = min(selection.batch, run.batch_size(path) - 1)
    asked = asked_at(run, path, selection, head=head, batch=batch, masks_first=masks_first)
    layers = [say("layer", layer=index) for index in range(len(modules))]
    head_alone = (head, [say("head", head=head)])
    return replace(asked, places={"layer": (layer, layers), "head": head_alone, **asked.places})


def codes(question: CellQuestion, expected: Flags) -> Codes:
    """Return the kind of each cell, (rows, columns): of the largest number, only in the rows that were answered."""
    right = question.right
    missed = right & ~expected
    if question.kind == "most":
        is_wrong = expected.any(axis=1, keepdims=True) & ~(expected & right).any(axis=1, keepdims=True)
        missed &= is_wrong
    found = np.full(right.shape, NOTHING, np.uint8)
    found[expected & right], found[expected & ~right], found[missed] = AS_EXPECTED, NOT_SO, MISSED
    return found


def _seen(run: Run, path: str, *, head: int, batch: int) -> Flags:
    """The cells of an attention whose query sees the key: no mask blocks it, or it has a weight all the same."""
    module = run.trace[path].module_path
    weights = stage_panel(run, f"{module}.weights", head=head, batch=batch)
    if weights.blocked is None:
        return np.ones(weights.array.shape, np.bool_)
    seen: Flags = (weights.blocked == 0) | (weights.array > 0)
    return seen


def largest(panel: Panel, *, of_weights: bool) -> Flags:
    """Return of each row the cells with its largest number, several where they tie; none where no key is left."""
    values = np.where(np.isnan(panel.array), -np.inf, panel.array)
    most = values.max(axis=1, keepdims=True)
    slack = _ROUNDING * np.maximum(1e-6, np.abs(np.where(np.isfinite(most), most, 0)))
    if of_weights:
        slack = np.full_like(slack, TIE + _ROUNDING)
    found: Flags = (values >= most - slack) & np.isfinite(most)
    if of_weights:
        found &= values > 0
    if panel.blocked is not None:
        found &= (panel.blocked == 0) | (values > 0)
    return found
