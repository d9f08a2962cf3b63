"""Run a model once and say of every attention what its mask is and what is wrong with it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headlight.findings import Judged, judge
from headlight.inputs import padding_of, tokens_of
from headlight.report import Report
from headlight.watching import watch

_logger = logging.getLogger(__name__)


def check(
    model: nn.Module,
    *args: Any,  # noqa: ANN401 - what any model is called with
    padding: Tensor | None = None,
    causal: bool | None = None,
    **kwargs: Any,  # noqa: ANN401
) -> Report:
    """Run a model once and say of each attention what its mask is and what is wrong with it. Raises nothing.

    Padding is read from inputs by their names: ``attention_mask`` (0 is padding), ``src_key_padding_mask`` (True is
    padding) and their like. An error that the model raises becomes a note, beside what was seen until then.

    Args:
        model: any module, as it is: in training, dropout is on.
        args: what it is called with.
        padding: (B, T) bool, True = padding, where the inputs do not say it; it is not passed to the model.
        causal: whether no token may see a later one; None judges it by the masks, and by a name such as
            ``LlamaForCausalLM``.
        kwargs: what the model is called with by name.
    """
    notes = []
    with torch.no_grad(), watch(model, to="cpu") as trace:
        try:
            model(*args, **kwargs)
        except Exception as error:  # of any model, which may raise what it likes
            _logger.info("A model that is checked raised", exc_info=True)
            notes.append(f"The model raised {type(error).__name__}: {error}")
    known = padding_of(kwargs, padding)
    rows = judge(trace, known, causal, type(model).__name__)
    tokens = tokens_of(args, kwargs)
    if tokens is not None and (along := _along_the_batch(rows, tokens, knows_padding=known.encoder is not None)):
        notes.append(along)
    return Report(rows, (*notes, *trace.notes))


def _along_the_batch(rows: Sequence[Judged], tokens: Tensor, *, knows_padding: bool) -> str:
    """A sentence where attention goes along the first axis of (B, T) ids, as if it were that of the tokens."""
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
