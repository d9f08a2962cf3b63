"""Masks for the models of Hugging Face's transformers."""

from __future__ import annotations

import torch
from torch import Tensor

from headlight.masks.translations.building import TORCH, allowed_lines
from headlight.masks.translations.code_lines import snippet, without_keys
from headlight.masks.translations.mask_to_translate import MaskToTranslate, check_is_over_one_sequence
from model.texts import texts_of

say = texts_of(__name__)

_CALL = ["# output = model(input_ids, attention_mask=attention_mask)"]
_CROSSING_CALL = [
    "# output = decoder(input_ids, encoder_hidden_states=memory, encoder_attention_mask=encoder_attention_mask)"
]
_WITHOUT_KEYS = say("without_keys")


def two_axes(mask: MaskToTranslate) -> str:
    """The attention_mask (B, T) that says which keys are padding; where the mask is more than that, only why."""
    if mask.crosses:
        return _of_the_other_sequence(mask)
    check_is_over_one_sequence(mask, "a 2-D attention_mask")
    model = _model_for(mask)
    if model is None:
        return snippet(_why_not(mask))
    return snippet(
        say("two_axes", model=model),
        ["import torch"],
        [f"attention_mask = {TORCH.vector(mask.is_seen.int().tolist())}[None]  # (B, T)"],
        without_keys(mask, _WITHOUT_KEYS),
        _CALL,
    )


def _of_the_other_sequence(mask: MaskToTranslate) -> str:
    """The encoder_attention_mask (B, Tk) of a decoder."""
    if mask.is_per_head or not torch.equal(mask.allowed[0], mask.is_seen.expand(mask.n_queries, -1)):
        return snippet(say("other_2d"))
    return snippet(
        say("crossing"),
        ["import torch"],
        [f"encoder_attention_mask = {TORCH.vector(mask.is_seen.int().tolist())}[None]  # (B, Tk)"],
        without_keys(mask, _WITHOUT_KEYS),
        _CROSSING_CALL,
    )


def four_axes(mask: MaskToTranslate) -> str:
    """The attention_mask (B, H or 1, Tq, Tk) that is added to the scores."""
    name = "encoder_attention_mask" if mask.crosses else "attention_mask"
    axes, shape = ("None", "(B, H, Tq, Tk)") if mask.is_per_head else ("None, None", "(B, 1, Tq, Tk)")
    return snippet(
        say("four_axes", name=name),
        ["import torch"],
        allowed_lines(mask, TORCH),
        ["lowest = torch.finfo(torch.float32).min  # of the model's dtype"],
        [f"{name} = torch.where(allowed, 0.0, lowest)[{axes}]  # {shape}: 0 = may attend"],
        without_keys(mask, _WITHOUT_KEYS),
        _CROSSING_CALL if mask.crosses else _CALL,
    )


def _model_for(mask: MaskToTranslate) -> str | None:
    """The kind of model in which hiding some keys from all queries gives this mask; None where in none."""
    if mask.is_per_head:
        return None
    if torch.equal(mask.allowed[0], mask.is_seen.expand(mask.n_queries, -1)):
        return say("both_ways")
    if torch.equal(mask.allowed[0], mask.causal & mask.is_seen):
        return say("causal")
    return None


def _why_not(mask: MaskToTranslate) -> str:
    if mask.is_per_head:
        return say("heads_differ")
    blocked = ~mask.allowed[0] & mask.is_seen
    # A causal model blocks a later key by itself: an earlier one that is blocked is the better example.
    earlier = blocked & mask.causal
    query, key = _first(earlier if earlier.any() else blocked)
    other = _first(mask.allowed[0, :, key])[0]
    if earlier.any():
        return say("queries_differ", other=other, key=key, query=query)
    looking, ahead = _first(mask.allowed[0] & ~mask.causal)
    return say("not_causal", other=other, key=key, query=query, looking=looking, ahead=ahead)


def _first(cells: Tensor) -> tuple[int, ...]:
    """The index of the first cell that is True."""
    return tuple(cells.nonzero()[0].tolist())
