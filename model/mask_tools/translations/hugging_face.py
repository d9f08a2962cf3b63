"""Masks for the models of Hugging Face's transformers."""

from __future__ import annotations

import torch
from torch import Tensor

from model.mask_tools.translations.building import TORCH, allowed_lines
from model.mask_tools.translations.case import MaskToTranslate, check_is_over_one_sequence
from model.mask_tools.translations.lines import snippet, without_keys

_CALL = ["# output = model(input_ids, attention_mask=attention_mask)"]
_CROSSING_CALL = [
    "# output = decoder(input_ids, encoder_hidden_states=memory, encoder_attention_mask=encoder_attention_mask)"
]
_WITHOUT_KEYS = "eager attention gives even weights over all keys there, blocked ones too."


def two_axes(given: MaskToTranslate) -> str:
    """The attention_mask (B, T) that says which keys are padding; where the mask is more than that, only why."""
    if given.crosses:
        return _of_the_other_sequence(given)
    check_is_over_one_sequence(given, "a 2-D attention_mask")
    model = _model_for(given)
    if model is None:
        return snippet(_why_not(given))
    return snippet(
        f"In a 2-D attention_mask of Hugging Face, 1 = token, 0 = padding. For {model}.",
        ["import torch"],
        [f"attention_mask = {TORCH.vector(given.is_seen.int().tolist())}[None]  # (B, T)"],
        without_keys(given, _WITHOUT_KEYS),
        _CALL,
    )


def _of_the_other_sequence(given: MaskToTranslate) -> str:
    """The encoder_attention_mask (B, Tk) of a decoder."""
    if given.is_per_head or not torch.equal(given.allowed[0], given.is_seen.expand(given.n_queries, -1)):
        return snippet(
            "No 2-D encoder_attention_mask says this mask: it has one number per key, the same for all heads and "
            "queries. Use the 4-D mask."
        )
    return snippet(
        "In a 2-D encoder_attention_mask of Hugging Face, 1 = token, 0 = padding. For a decoder that looks at "
        "encoder_hidden_states.",
        ["import torch"],
        [f"encoder_attention_mask = {TORCH.vector(given.is_seen.int().tolist())}[None]  # (B, Tk)"],
        without_keys(given, _WITHOUT_KEYS),
        _CROSSING_CALL,
    )


def four_axes(given: MaskToTranslate) -> str:
    """The attention_mask (B, H or 1, Tq, Tk) that is added to the scores."""
    name = "encoder_attention_mask" if given.crosses else "attention_mask"
    axes, shape = ("None", "(B, H, Tq, Tk)") if given.is_per_head else ("None, None", "(B, 1, Tq, Tk)")
    return snippet(
        f'A 4-D {name} of Hugging Face is added to the scores by "eager" and "sdpa" attention.',
        ["import torch"],
        allowed_lines(given, TORCH),
        ["lowest = torch.finfo(torch.float32).min  # of the model's number type"],
        [f"{name} = torch.where(allowed, 0.0, lowest)[{axes}]  # {shape}: 0 = may attend"],
        without_keys(given, _WITHOUT_KEYS),
        _CROSSING_CALL if given.crosses else _CALL,
    )


def _model_for(given: MaskToTranslate) -> str | None:
    """The kind of model in which hiding some keys from all queries gives this mask; None where in none."""
    if given.is_per_head:
        return None
    if torch.equal(given.allowed[0], given.is_seen.expand(given.n_queries, -1)):
        return "a model that looks both ways, such as BERT"
    if torch.equal(given.allowed[0], given.causal & given.is_seen):
        return "a model that is causal by itself, such as GPT-2 or Llama"
    return None


def _why_not(given: MaskToTranslate) -> str:
    known = "No 2-D attention_mask says this mask: it has one number per key, the same for all heads and queries"
    if given.is_per_head:
        return f"{known}, and here heads differ. Use the 4-D mask."
    blocked = ~given.allowed[0] & given.is_seen
    # A causal model blocks a later key by itself: an earlier one that is blocked is the better example.
    earlier = blocked & given.causal
    query, key = _first(earlier if earlier.any() else blocked)
    other = _first(given.allowed[0, :, key])[0]
    example = f"query {other} sees key {key} and query {query} does not"
    if not earlier.any():
        looking, ahead = _first(given.allowed[0] & ~given.causal)
        example += f", yet query {looking} sees the later key {ahead}"
    return f"{known}, and a model adds no more than its own causal mask. Here {example}. Use the 4-D mask."


def _first(cells: Tensor) -> tuple[int, ...]:
    """The index of the first cell that is True."""
    return tuple(cells.nonzero()[0].tolist())
