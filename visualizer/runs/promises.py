"""The promises of the masks about who influences whom, set beside what is measured on the model itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from model import TracedModule
from model.analysis.influence import (
    Influence,
    Leak,
    Verdict,
    first_leak,
    judge,
    measure_dependence,
    measure_influence,
)
from model.analysis.reach import allowed_dependence, reach
from model.masks import causal
from model.randomness import named_generator
from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.runs.paths import of_every_layer, without_layer
from visualizer.runs.run import Run
from visualizer.settings.settings import Settings, masked_attention
from visualizer.settings.view_choices import Claim

say = texts_of(__name__)

AT_ONCE = 64**2 * 64**2 * 2
"""The effort up to which nobody has to ask for a measurement: about two seconds on two cores."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """The measurement of one run.

    Attributes:
        influence: the Jacobian norms of each layer's output and of the logits; of a checkpoint those of its output.
        dependence: which rows of each stage depend on which tokens at all.
        seconds: how long it took.
        rows: those that were measured, where they are a sample; else none.
    """

    influence: Influence
    dependence: Mapping[str, Tensor]
    seconds: float
    rows: tuple[int, ...] = ()

    @property
    def output(self) -> str:
        """The path of what the model puts out: its logits, or what an attention alone finds."""
        return self.influence.paths[-1]

    @property
    def measured(self) -> list[int] | slice:
        """The rows that were measured, as an index."""
        return list(self.rows) or slice(None)

    def row(self, number: int) -> int:
        """The row of the output that was measured at a number."""
        return self.rows[number] if self.rows else number


@dataclass(frozen=True, eq=False)
class Proof:
    """A measurement judged by a claim.

    Attributes:
        allowed: by path, (rows measured, T) bool: where the claim lets a row depend on a token.
        verdicts: one per output.
        leak: the first stage that depends on what the claim forbids; None where there is none.
        cut_off: (rows, T) bool: where the output should depend on a token and the masks leave no way.
        unmeasured: (rows, T) bool: where there is a way and what is measured of it is zero all the same.
    """

    allowed: Mapping[str, Tensor]
    verdicts: tuple[Verdict, ...]
    leak: Leak | None
    cut_off: Tensor
    unmeasured: Tensor

    @property
    def passes(self) -> bool:
        """True if nothing leaks anywhere, and everything that should get through has a way."""
        return self.leak is None and not self.cut_off.any() and all(verdict.passes for verdict in self.verdicts)


def effort(settings: Settings, n_tokens: int) -> int:
    """Return the effort of a measurement, to be compared with ``AT_ONCE``."""
    return settings.depth * (n_tokens * settings.d_model) ** 2


def measure(
    run: Run, sequence: SequenceName, progress: Callable[[float], None], *, of_encoder: bool = False
) -> Measurement:
    """Differentiate a model by the embeddings of a sequence.

    Args:
        run: a run without dropout.
        sequence: whose embeddings.
        progress: called with the fraction done.
        of_encoder: whether the outputs are those of the encoder beside a decoder.
    """
    model, edits = _measurable(run), run.edits
    started = time.perf_counter()
    forward = partial(run.forward, run)
    influence = measure_influence(model, forward, sequence, of_encoder=of_encoder, edits=edits, progress=progress)
    generator = named_generator(run.settings.seed, "directions of the proof")
    dependence = measure_dependence(model, forward, generator, sequence, of_encoder=of_encoder, edits=edits)
    return Measurement(influence, dependence, time.perf_counter() - started)


@dataclass(frozen=True, eq=False)
class Intended:
    """The cells that the masks of one attention should let through.

    Attributes:
        path: the attention, without a layer.
        cells: (Tq, Tk) bool, the cells that should be open in every layer and head.
        ignores_padding: whether no other attention should let padding through either.
    """

    path: str
    cells: Tensor
    ignores_padding: bool = False


def prove(
    run: Run, measurement: Measurement, sequence: SequenceName, claim: Claim, intended: Intended | None = None
) -> Proof:
    """Judge a measurement.

    Args:
        run: the run that was measured.
        measurement: what was found.
        sequence: whose embeddings it is about.
        claim: ``intended`` is what the masks should allow, layer upon layer; ``promised`` what those that were
            chosen allow; ``causal`` that no row depends on a later token.
        intended: for the claim of that name, what one attention should allow; the others hold as they are.

    Raises:
        ValueError: the claim is ``intended`` and nothing is given for it.
    """
    masks = {path: mask.allowed for path, mask in run.promised.items()}
    promised = _over_all_layers(run, measurement, masks, sequence)
    if claim == "promised":
        allowed = promised
    elif claim == "causal":
        allowed = {path: causal(*may.shape) for path, may in promised.items()}
    elif intended is not None:
        allowed = _intended(run, measurement, intended, sequence)
    else:
        raise ValueError("to prove what is intended takes the cells that are")
    allowed = {path: may[measurement.measured] for path, may in allowed.items()}
    last = measurement.output
    may, masks_let = allowed[last], promised[last][measurement.measured]
    wanted = may & ~_padding_rows(run, last) if claim == "intended" else torch.zeros_like(may)
    silent = measurement.influence.norms[-1] == 0
    return Proof(
        allowed,
        judge(measurement.influence, allowed),
        first_leak(measurement.dependence, allowed),
        cut_off=wanted & ~masks_let,
        unmeasured=wanted & masks_let & silent,
    )


def _over_all_layers(
    run: Run, measurement: Measurement, masks: Mapping[str, Tensor | None], sequence: SequenceName
) -> dict[str, Tensor]:
    """Return the tokens that each row of each stage may depend on, by the masks of every layer, (rows, T) bool."""
    if not run.attentions:
        return allowed_dependence(run.trace, masks, sequence)
    of_layers = of_every_layer(masks, masked_attention(run.settings.architecture))
    return {measurement.output: reach(of_layers, len(run.tokens[sequence]))[-1]}


def _padding_rows(run: Run, path: str) -> Tensor:
    """(rows, 1), True for the rows of a stage that nobody reads: those of padding. A checkpoint's text has none."""
    if run.attentions:
        return torch.zeros(1, 1, dtype=torch.bool)
    rows = run.axes(path)[0]
    if rows.sequence is None:
        return torch.zeros(len(rows.labels), 1, dtype=torch.bool)
    return torch.tensor(run.tokens[rows.sequence].is_padding)[:, None]


def _intended(run: Run, measurement: Measurement, intended: Intended, sequence: SequenceName) -> dict[str, Tensor]:
    """Return the tokens that each row may depend on if every layer of one attention attends as intended.

    The rows of padding may depend on all.
    """
    masks = {path: _intended_mask(run, path, intended) for path in run.promised}
    allowed = _over_all_layers(run, measurement, masks, sequence)
    return {path: may | _padding_rows(run, path) for path, may in allowed.items()}


def _intended_mask(run: Run, path: str, intended: Intended) -> Tensor | None:
    """Return the cells that one attention should allow: those meant, or those its masks allow, without padding."""
    weights = f"{path}.weights"
    if without_layer(path) == intended.path:
        return intended.cells | _padding_rows(run, weights)
    allowed = run.promised[path].allowed
    of_keys = run.axes(weights)[1].sequence
    if not intended.ignores_padding or of_keys is None:
        return allowed
    no_padding = ~torch.tensor(run.tokens[of_keys].is_padding)
    cells = no_padding if allowed is None else allowed & no_padding
    return cells | _padding_rows(run, weights)


def _measurable(run: Run) -> TracedModule:
    if run.example is not None:
        raise ValueError(say("worked_example"))
    return run.model
