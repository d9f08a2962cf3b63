"""The attentions of a pass by kind, and whether they keep to a mask, for the tests of passes and proofs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.pretrained.tokenized import Tokenized
from headlight.pretrained.watched_pass import Where
from headlight.trace import Trace
from model.analysis.reach import reach


def holds(attentions: Iterable[Attention], allowed: Tensor) -> bool:
    """True if no attention gives weight to a cell that a mask blocks, where a query has any key left."""
    blocked = ~allowed & allowed.any(-1, keepdim=True)
    return all(
        not bool((attention.weights[0] * blocked).any())
        for attention in attentions
        if attention.weights is not None
    )


def attentions_of(trace: Iterable[Attention], where: Where) -> tuple[Attention, ...]:
    """The attentions of one kind."""
    if where == "self":
        return tuple(trace)
    crossing = where == "cross"
    of_decoder = where != "encoder"
    return tuple(each for each in trace if each.is_cross is crossing and each.is_decoding is of_decoder)


def promised_by(trace: Trace, given: Tokenized, allowed: Tensor | None = None) -> Tensor:
    """Return what the masks of all layers together let through to the rows of the output, (T, T) bool.

    Args:
        trace: a pass; of an encoder-decoder its decoder counts.
        given: what it was given.
        allowed: (1 or H, T, T) bool, the mask that every attention was told to keep to; None takes each one's own.
    """
    n_tokens = len(given.target or given.pieces)
    own = [
        each.allowed
        for each in trace
        if not each.is_cross and each.shape[2] == n_tokens and (not given.target or each.is_decoding)
    ]
    masks: Sequence[Tensor | None] = own if allowed is None else [allowed[None]] * len(own)
    reached = reach(masks, n_tokens)
    return reached[-1] if len(reached) else torch.eye(n_tokens, dtype=torch.bool)
