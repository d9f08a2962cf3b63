"""A mask in words: what it is, without saying whether that is right."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from headlight.masks.intents import Intent, expected_of_blocks, recognise
from headlight.masks.language import MaskContext, express, position
from headlight.masks.mask_case import counted
from model.texts import texts_of

say = texts_of(__name__)

_LONGEST = 60
_LARGEST = 48 * 48


def name_of(allowed: Tensor, context: MaskContext) -> str:
    """Name a mask, (Tq, Tk) bool, True = may attend, over some tokens: ``causal, bottom-right aligned``.

    Rows of padding count, though nobody reads them: the name says all of the mask.
    """
    context = replace(context, query_is_padding=(False,) * context.n_queries)
    if not bool(allowed.any()):
        return say("blocked_everywhere")
    if bool(allowed.all()):
        return say("open_everywhere")
    if len(allowed) == 1:
        return _by_an_expression(allowed, context)
    if named := _by_its_edge(allowed):
        return named
    found = recognise(allowed, context)
    if found is not None and found.kind != "cached":
        return found.words_over(context)
    in_blocks = expected_of_blocks(Intent("causal"), context)
    if in_blocks is not None and bool((in_blocks == allowed).all()):
        return say("in_blocks", size=context.n_queries // context.n_keys)
    return _by_an_expression(allowed, context)


def _by_its_edge(allowed: Tensor) -> str:
    """``causal, but for 1 key more: k <= q + 1``; "" where the mask has no edge along a diagonal."""
    query, key = allowed.nonzero().unbind(-1)
    edge, last = int((key - query).max()), allowed.shape[1] - allowed.shape[0]
    if not bool((allowed == allowed.new_ones(allowed.shape).tril(edge)).all()):
        return ""
    corner = 0 if abs(edge) < abs(edge - last) else last
    words = say("causal") if not last else say("bottom_right") if corner else say("top_left")
    if edge == corner:
        return words
    if 1 < edge < last - 1:
        return say("past_length", length=edge)
    keys = counted("key", abs(edge - corner))
    condition = f"k <= {position(edge)}"
    if edge > corner:
        return say("with_more", words=words, keys=keys, condition=condition)
    return say("with_less", words=words, keys=keys, condition=condition)


def _by_an_expression(allowed: Tensor, context: MaskContext) -> str:
    expression = express(allowed, context) if allowed.numel() <= _LARGEST else ""
    if expression and len(expression) <= _LONGEST:
        return say("open_where", expression=expression)
    return say("irregular", n_open=int(allowed.sum()), n=allowed.numel())
