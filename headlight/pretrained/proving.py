"""A test that a checkpoint keeps to its masks: which rows of its output depend on which tokens, by derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from headlight.influence import differentiated, first_stage, influence, sampled, stage_in_words
from headlight.passes import Pass, Subject
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.passes import plain
from headlight.pretrained.tokens import Tokenized
from headlight.proving import assert_padding_ignored

MOST_ROWS = 128
"""Above so many tokens the rows that are measured are a sample."""

N_SAMPLED = 64

Progress = Callable[[float], None]
_SHARE = 0.8
"""The share of the whole that measuring the rows takes; the rest is the search for the first stage."""


@dataclass(frozen=True)
class Leak:
    """A row that depends on a token that it must not depend on.

    Attributes:
        row: the first such row.
        token: its first such token.
        stage: a sentence on the first stage that does.
    """

    row: int
    token: int
    stage: str


@dataclass(frozen=True, eq=False)
class Dependence:
    """The measured dependence of the output's rows on the tokens, and what the masks let through.

    Attributes:
        rows: the rows that were measured.
        sizes: (rows, T) float64, how far each token moves each row in a random direction; 0 only where it does not.
        promised: (T, T) bool, what the masks of all layers together let through.
        beyond_masks: the first leak of what the masks forbid; None where there is none.
        ahead: the first row that depends on a later token; None where there is none, or where nobody asked.
    """

    rows: tuple[int, ...]
    sizes: Tensor
    promised: Tensor
    beyond_masks: Leak | None
    ahead: Leak | None

    @property
    def n_tokens(self) -> int:
        """T."""
        return self.sizes.shape[1]

    @cached_property
    def forbidden(self) -> Tensor:
        """(rows, T) bool, where the masks let nothing through."""
        return ~self.promised[list(self.rows)]

    @property
    def later(self) -> Tensor:
        """(rows, T) bool, where the token comes after the row."""
        return later(self.n_tokens)[list(self.rows)]


def later(n_tokens: int) -> Tensor:
    """(T, T) bool, where the token comes after the row."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1)


def depends(
    checkpoint: Checkpoint, given: Tokenized, promised: Tensor, progress: Progress = lambda _: None
) -> Dependence:
    """Differentiate the output of a checkpoint by the embeddings of its tokens.

    Args:
        checkpoint: the model.
        given: one sequence, with the mask that is to be proved; of an encoder-decoder the target counts.
        promised: (T, T) bool, what the masks let through.
        progress: called with the fraction done. An error that it raises ends the measurement.

    Raises:
        ValueError: the model has no derivative by its tokens.
    """
    of = "decoder_input_ids" if given.target else "input_ids"
    subject = Subject(checkpoint.model, (), {**given.inputs, **plain(checkpoint)}, of, 1, None)
    with checkpoint.lock:
        found = differentiated(subject)
    if found is None:
        raise ValueError(f"{checkpoint.name} has no derivative by its tokens.")
    rows = rows_measured(subject.n_tokens)
    sizes = influence(found, subject, rows, lambda done: progress(_SHARE * done))
    moved = torch.zeros(subject.n_tokens, subject.n_tokens, dtype=torch.bool)
    moved[list(rows)] = sizes != 0
    is_causal = checkpoint.part != "encoder"
    ahead = _leak(checkpoint, subject, found, moved, later(subject.n_tokens)) if is_causal else None
    progress((1 + _SHARE) / 2)
    beyond = _leak(checkpoint, subject, found, moved, ~promised)
    progress(1.0)
    return Dependence(rows, sizes, promised, beyond, ahead)


def padding_ignored(checkpoint: Checkpoint, given: Tokenized) -> tuple[bool, str]:
    """Return whether padding changes nothing for the tokens of a batch, and a sentence on it.

    Args:
        checkpoint: the model.
        given: several sequences, filled up to one length.
    """
    inputs = {**given.inputs, **plain(checkpoint)}
    with checkpoint.lock:
        try:
            return True, str(assert_padding_ignored(checkpoint.model, **inputs, alone=True))
        except AssertionError as error:
            return False, f"{str(error)[:1].upper()}{str(error)[1:]}."


def rows_measured(n_tokens: int) -> tuple[int, ...]:
    """All rows, or above ``MOST_ROWS`` some of them with the first and the last."""
    return tuple(sampled(n_tokens, MOST_ROWS, N_SAMPLED))


def _leak(checkpoint: Checkpoint, subject: Subject, found: Pass, moved: Tensor, forbidden: Tensor) -> Leak | None:
    """The first cell that moves though it is forbidden, and the first stage of which such a row depends on it."""
    leaks = (moved & forbidden).nonzero()
    if not len(leaks):
        return None
    row, token = leaks[0].tolist()
    only = torch.zeros(1, subject.n_tokens, dtype=torch.bool)
    only[0, token] = True
    stage = first_stage(found, forbidden[None, :, token], only, subject)
    with checkpoint.lock:
        words = stage_in_words(stage, subject, causal=checkpoint.part == "decoder")
    return Leak(row, token, words)
