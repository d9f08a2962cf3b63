"""The dependence of a checkpoint's layers and output on its tokens, by derivatives, and where it first comes in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.influence import differentiated, first_nan, first_stage, influence, sampled, stage_in_words
from headlight.passes import Pass, StageOutput, Subject
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.tokenized import Tokenized
from headlight.pretrained.watched_pass import encoder_of, plain
from headlight.proving import assert_padding_ignored
from model.texts import capitalized

MOST_ROWS = 128
"""Above so many tokens the rows that are measured are a sample."""

N_SAMPLED = 64

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Dependence:
    """The measured dependence of the rows of a layer, or of the output, on the tokens.

    Attributes:
        rows: the rows that were measured.
        sizes: (rows, T) float64, how far each token moves each row in a random direction; 0 only where it does not.
    """

    rows: tuple[int, ...]
    sizes: Tensor


def depends(
    checkpoint: Checkpoint,
    encoding: Tokenized,
    progress: Progress = lambda _: None,
    *,
    after: Attention | None = None,
) -> Dependence:
    """Differentiate the output of a checkpoint, or of one of its layers, by the embeddings of its tokens.

    Args:
        checkpoint: the model.
        encoding: one sequence, with the mask that is to be proved; of an encoder-decoder the target counts.
        progress: called with the fraction done. An error that it raises ends the measurement.
        after: an attention in the layer; within an encoder beside a decoder the source counts.

    Raises:
        ValueError: the model has no derivative by its tokens, it is NaN, or the layer has no row for each of them.
    """
    of_encoder = bool(encoding.target) and after is not None and not after.is_decoding
    subject, found = _differentiated(checkpoint, encoding, of_encoder=of_encoder)
    stage = found.output_stage(subject) if after is None else _layer_of(after, found.stages)
    rows = rows_measured(subject.n_tokens)
    sizes = influence(stage, rows, found, subject, progress)
    if bool(sizes.isnan().any()):
        raise ValueError(f"The derivative of {checkpoint.name} is NaN{first_nan(found)}.")
    return Dependence(rows, sizes)


def where_it_begins(checkpoint: Checkpoint, encoding: Tokenized, rows: Tensor, token: int) -> str:
    """Find the first stage of which some rows depend on a token, in a sentence without its full stop.

    Args:
        checkpoint: the model.
        encoding: as in ``depends``.
        rows: (T,) bool, the rows that must not depend on it.
        token: the token.

    Raises:
        ValueError: as in ``depends``.
    """
    subject, found = _differentiated(checkpoint, encoding)
    only = torch.zeros(1, subject.n_tokens, dtype=torch.bool)
    only[0, token] = True
    stage = first_stage(found, rows[None], only, subject)
    with checkpoint.lock:
        return stage_in_words(stage, subject, causal=checkpoint.part == "decoder")


def padding_ignored(checkpoint: Checkpoint, encoding: Tokenized) -> tuple[bool, str]:
    """Return whether padding changes nothing for the tokens of a batch, and a sentence on it.

    Args:
        checkpoint: the model.
        encoding: several sequences, filled up to one length.
    """
    inputs = {**encoding.inputs, **plain(checkpoint)}
    with checkpoint.lock:
        try:
            return True, str(assert_padding_ignored(checkpoint.model, **inputs, alone=True))
        except AssertionError as error:
            return False, f"{capitalized(error)}."


def rows_measured(n_tokens: int) -> tuple[int, ...]:
    """All rows, or above ``MOST_ROWS`` some of them with the first and the last."""
    return tuple(sampled(n_tokens, MOST_ROWS, N_SAMPLED))


def _layer_of(attention: Attention, stages: Sequence[StageOutput]) -> StageOutput:
    """The output of the layer that an attention is in; layers that share their parameters are one module."""
    layer = re.match(r"(?:[^.]*\.)*?\d+(?=\.)", f".{attention.module}")
    modules = [each for each in stages if each.kind != "attention"]
    outputs = [each for each in modules if layer and layer[0].endswith(f".{each.module}")]
    number = int(attention.path.partition(":")[2] or 1)
    if len(outputs) < number:
        raise ValueError(f"The layer of {attention.path} gives no row for each token: it cannot be measured.")
    return outputs[number - 1]


def _differentiated(
    checkpoint: Checkpoint, encoding: Tokenized, *, of_encoder: bool = False
) -> tuple[Subject, Pass]:
    inputs = {**encoding.inputs, **plain(checkpoint)}
    model, inputs = encoder_of(checkpoint, inputs) if of_encoder else (checkpoint.model, inputs)
    of_target = encoding.target and not of_encoder
    subject = Subject(model, (), inputs, "decoder_input_ids" if of_target else "input_ids", 1, None)
    with checkpoint.lock:
        found = differentiated(subject)
    if found is None:
        raise ValueError(f"The output of {checkpoint.name} cannot be differentiated by its tokens.")
    return subject, found
