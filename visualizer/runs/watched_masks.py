"""An attention of a watched model under another mask: its weights from the recorded queries and keys."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headlight.attention import Attention
from headlight.masks.language import parse
from headlight.words import Tokens
from model.texts import texts_of
from visualizer.runs.watched import plane

say = texts_of(__name__)
SAME = 1e-4
"""Largest difference at which weights that are computed again count as the recorded ones."""


@dataclass(frozen=True, eq=False)
class OtherMask:
    """The weights of one sequence of an attention as recorded, and under another mask.

    Attributes:
        recorded: (H, Tq, Tk).
        other: the same under the other mask; a query without a key has weights of zero.
        allowed: (1 or H, Tq, Tk), the other mask.
        difference: the largest one between the recorded weights and the same computed again.
    """

    recorded: Tensor
    other: Tensor
    allowed: Tensor
    difference: float


def under_another_mask(attention: Attention, expression: str, item: int) -> OtherMask:
    """Compute the weights of one sequence under a mask that an expression says.

    Raises:
        ValueError: the expression is none, or the recording does not hold what the weights are computed from.
    """
    if attention.sinks:
        raise ValueError(say("sink"))
    allowed = _allowed(attention, expression, item)
    scores = _scores(attention, item)
    if scores is None or attention.weights is None:
        raise ValueError(say("not_recorded"))
    recorded = plane(attention.weights, item)
    again = _softmax(scores, _own_mask(attention, item))
    difference = float((again - recorded).abs().nan_to_num(nan=torch.inf).max())
    if difference > SAME:
        raise ValueError(say("other_weights", difference=difference))
    return OtherMask(recorded, _softmax(scores, allowed), allowed, difference)


def _allowed(attention: Attention, expression: str, item: int) -> Tensor:
    """(1 or H, Tq, Tk): one plane for each head where the expression asks for the head."""
    _, n_heads, n_queries, n_keys = attention.shape
    said = parse(expression)
    context = replace(Tokens.without_padding(n_queries, n_keys).context(), sequence=item)
    heads = range(n_heads) if "h" in said.names else range(1)
    return torch.stack([said.evaluate(replace(context, head=head)) for head in heads])


def _scores(attention: Attention, item: int) -> Tensor | None:
    """(H, Tq, Tk) before the mask, with the bias; None where they cannot be computed."""
    query, key = attention.query, attention.key
    if query is None or key is None or attention.weights is None:
        return None
    n_heads = attention.weights.shape[1]
    one, other = _of_heads(query, attention, item), _of_heads(key, attention, item)
    if one is None or other is None or n_heads % len(one) or n_heads % len(other):
        return None
    one, other = (each.float().repeat_interleave(n_heads // len(each), 0) for each in (one, other))
    scores: Tensor = one @ other.mT * attention.scale
    return scores if attention.bias is None else scores + plane(attention.bias, item).float()


def _of_heads(tensor: Tensor, attention: Attention, item: int) -> Tensor | None:
    """(heads, tokens, width) of one sequence, out of four axes, or three that join sequences and heads."""
    if tensor.dim() == 3:
        batch = attention.shape[0]
        if len(tensor) % batch:
            return None
        tensor = tensor.view(batch, -1, *tensor.shape[1:])
    return tensor[min(item, len(tensor) - 1)] if tensor.dim() == 4 else None


def _own_mask(attention: Attention, item: int) -> Tensor | None:
    return None if attention.allowed is None else plane(attention.allowed, item)


def _softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    if allowed is None:
        return scores.softmax(-1)
    masked = scores.masked_fill(~allowed, -torch.inf)
    return masked.softmax(-1).masked_fill(~allowed.any(-1, keepdim=True), 0.0)
