"""Run a model once and say of every attention what its mask is and what is wrong with it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headlight.attentions import Attention
from headlight.expected import Expected, expected_of, unknown_facts
from headlight.findings import Judged, judge, remarks_on
from headlight.inputs import inputs_of, padding_of, tokens_of
from headlight.report import Report
from headlight.watching import watch

_logger = logging.getLogger(__name__)


def check(
    model: nn.Module,
    *args: Any,  # noqa: ANN401 - what any model is called with
    padding: Tensor | None = None,
    causal: bool | None = None,
    expected: Expected | None = None,
    **kwargs: Any,  # noqa: ANN401
) -> Report:
    """Run a model once and say of each attention what its mask is and what is wrong with it. Raises nothing.

    Padding is read from inputs by their names: ``attention_mask`` (0 is padding, or what lowers a score),
    ``src_key_padding_mask`` (True is padding) and their like. An error that the model raises becomes a note, beside
    what was seen until then.

    Args:
        model: any module, as it is: in training, dropout is on.
        args: what it is called with.
        padding: (B, T) bool, True = padding, where the inputs do not say it; it is not passed to the model.
        causal: whether no token may see a later one; None where only a name such as ``LlamaForCausalLM`` says it.
        expected: what the masks should be: an expression such as ``causal and same_document``, a boolean array that
            broadcasts to (B, H, Tq, Tk), a ``mask_mod(b, h, q, k)`` or a ``BlockMask`` of one, or several of these
            by the paths of attentions or patterns of them. Each cell that differs is counted.
        kwargs: what the model is called with by name.
    """
    notes = []
    with torch.no_grad(), watch(model, to="cpu") as trace:
        try:
            trace.inputs = inputs_of(model, args, kwargs)
            model(*args, **kwargs)
        except Exception as error:  # of any model, which may raise what it likes
            _logger.info("A model that is checked raised", exc_info=True)
            notes.append(f"The model raised {type(error).__name__}: {error}")
    if notes and not trace:  # what else could be said of a pass without an attention is not why there is none
        return Report((), tuple(notes))
    try:
        known = padding_of(trace.inputs.named, padding)
    except ValueError as error:
        notes.append(f"The padding was not taken: {error}.")
        known = trace.inputs.padding
    if padding is not None and known.encoder is not None and not any(_fits(known.encoder, one) for one in trace):
        notes.append(f"The padding was not taken: it is {tuple(known.encoder.shape)}, which fits no attention.")
    rows = judge(trace, known, causal, trace.inputs.model, expected)
    if expected is not None and not any(expected_of(row.attention, expected) is not None for row in rows):
        notes.append("The expected mask was compared with none: no attention has such a path.")
    notes += unknown_facts(expected, known)
    if along := _along_the_batch(rows, tokens_of(args, kwargs), knows_padding=known.encoder is not None):
        notes.append(along)
    return Report(rows, (*notes, *trace.notes, *remarks_on(trace)))


def _fits(padding: Tensor, attention: Attention) -> bool:
    """True if an attention may go over the tokens of which some are padding, (B, T)."""
    n_sequences, _, n_queries, n_keys = attention.shape
    return n_sequences % len(padding) == 0 and padding.shape[1] in (n_queries, n_keys - attention.sinks)


def _along_the_batch(rows: Sequence[Judged], tokens: Tensor | None, *, knows_padding: bool) -> str:
    """A sentence where attention goes along the first axis of (B, T) ids, as if it were that of the tokens."""
    if tokens is None or tokens.dim() == 1:
        return ""
    batch, length = tokens.shape[:2]
    if batch == length or (tokens.is_floating_point() and not knows_padding):
        return ""
    for row in rows:
        n_sequences, _, n_queries, n_keys = row.attention.shape
        if n_queries == n_keys == batch and n_sequences == length:
            return (
                f"{row.attention.path} attends along the first axis of the input, whose size is {batch}, and not "
                f"along the second, {length}: if the first one is the batch, sequences see each other and tokens "
                "do not; nn.MultiheadAttention and nn.Transformer need batch_first=True for that."
            )
    return ""
