"""Masks for PyTorch's own attentions.

True means blocked in the masks of ``nn.MultiheadAttention`` and of what is built from it, and "takes part" in those
of ``F.scaled_dot_product_attention`` and FlexAttention.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headlight.masks.translations.building import TORCH, allowed_lines, cell_lines, condition_lines, name_lines
from headlight.masks.translations.case import MaskToTranslate, check_is_over_one_sequence
from headlight.masks.translations.lines import arguments, comment, snippet, without_keys
from model.texts import texts_of

say = texts_of(__name__)

_WITHOUT_KEYS = say("without_keys")
_FLOAT_WITHOUT_KEYS = say("float_without_keys")
_STACK_WITHOUT_KEYS = say("stack_without_keys")
_ZEROED_PADDING = comment(say("zeroed_padding"))


def multihead_attention(given: MaskToTranslate) -> str:
    """The boolean attn_mask of ``nn.MultiheadAttention``."""
    return snippet(
        say("multihead_attention"),
        ["import torch"],
        allowed_lines(given, TORCH),
        _blocked_lines(given, "attn_mask"),
        without_keys(given, _WITHOUT_KEYS),
        ["# output, weights = attention(query, key, value, attn_mask=attn_mask)"],
    )


def multihead_attention_float(given: MaskToTranslate) -> str:
    """The float attn_mask of ``nn.MultiheadAttention``."""
    return snippet(
        say("multihead_attention_float"),
        ["import torch"],
        allowed_lines(given, TORCH),
        _batch_lines(given, "attn_mask"),
        ["attn_mask = torch.where(allowed, 0.0, -torch.inf)  # 0 = may attend, -inf = blocked"],
        without_keys(given, _FLOAT_WITHOUT_KEYS),
        ["# output, weights = attention(query, key, value, attn_mask=attn_mask)"],
    )


def multihead_attention_padding(given: MaskToTranslate) -> str:
    """The key_padding_mask of ``nn.MultiheadAttention``, and an attn_mask for what else is blocked."""
    hidden = given.hidden_padding
    beside = _lines_beside(given, hidden, "attn_mask")
    masks = [*(["attn_mask"] if beside else []), "key_padding_mask"]
    return snippet(
        say("multihead_attention_padding"),
        ["import torch"],
        beside,
        _padding_lines("key_padding_mask", hidden),
        without_keys(given, _WITHOUT_KEYS),
        [f"# output, weights = attention(query, key, value, {arguments(masks)})"],
    )


def transformer_encoder(given: MaskToTranslate) -> str:
    """The mask and src_key_padding_mask of ``nn.TransformerEncoder``, whichever are needed."""
    check_is_over_one_sequence(given, "nn.TransformerEncoder")
    lines, masks = _stack_masks(given, "mask", "src_key_padding_mask")
    return snippet(
        say("transformer_encoder"),
        ["import torch"],
        lines,
        [_ZEROED_PADDING] if masks == ["src_key_padding_mask"] else (),
        without_keys(given, _STACK_WITHOUT_KEYS),
        [f"# output = encoder(source, {arguments(masks)})"],
    )


def transformer_decoder(given: MaskToTranslate) -> str:
    """The tgt_mask and tgt_key_padding_mask of ``nn.TransformerDecoder``, whichever are needed.

    Of a cross-attention memory_mask and memory_key_padding_mask.
    """
    if not given.crosses:
        check_is_over_one_sequence(given, say("decoder_self_attention"))
    side = "memory" if given.crosses else "tgt"
    lines, masks = _stack_masks(given, f"{side}_mask", f"{side}_key_padding_mask")
    return snippet(
        say("transformer_decoder"),
        ["import torch"],
        lines,
        without_keys(given, _STACK_WITHOUT_KEYS),
        [f"# output = decoder(target, memory, {arguments(masks)})"],
    )


def scaled_dot_product_attention(given: MaskToTranslate) -> str:
    """The boolean attn_mask of ``F.scaled_dot_product_attention``."""
    code, shape = ("allowed[None]", "(1, H, Tq, Tk)") if given.is_per_head else ("allowed", "(Tq, Tk)")
    return snippet(
        say("scaled_dot_product_attention"),
        ["import torch", "from torch.nn import functional as F"],
        allowed_lines(given, TORCH),
        [f"attn_mask = {code}  # {shape}, for every sequence"],
        without_keys(given, say("zeros")),
        ["# output = F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)"],
    )


def flex_attention(given: MaskToTranslate) -> str:
    """The mask_mod of FlexAttention, and its block mask."""
    if given.shared_condition is not None:
        built, cell = name_lines(given.shared_condition, given, TORCH), given.shared_condition
    else:
        built, cell = cell_lines(given, TORCH), f"allowed[{'h, ' if given.is_per_head else ''}q, k]"
    uses_torch = any("torch." in line for line in (*built, cell))
    heads = given.n_heads if given.is_per_head else None
    sizes = f"B=None, H={heads}, Q_LEN={given.n_queries}, KV_LEN={given.n_keys}"
    return snippet(
        say("flex_attention"),
        [
            *(["import torch"] if uses_torch else []),
            "from torch.nn.attention.flex_attention import create_block_mask, flex_attention",
        ],
        [*built, "", ""] if built else [""],
        ["def mask_mod(b, h, q, k):", f"    return {cell}", "", ""],
        [f'block_mask = create_block_mask(mask_mod, {sizes}, device="cpu")'],
        without_keys(given, say("flex_zeros")),
        ["# output = flex_attention(query, key, value, block_mask=block_mask)  # fast under torch.compile"],
    )


def _stack_masks(given: MaskToTranslate, cells: str, padding: str) -> tuple[list[str], list[str]]:
    """The masks of an encoder or decoder: the lines that build them, and the names of those that are needed."""
    hidden = given.hidden_padding
    if not hidden.any() or hidden.all():
        return [*allowed_lines(given, TORCH), *_blocked_lines(given, cells)], [cells]
    beside = _lines_beside(given, hidden, cells)
    return [*beside, *_padding_lines(padding, hidden)], [*([cells] if beside else []), padding]


def _lines_beside(given: MaskToTranslate, hidden: Tensor, name: str) -> list[str]:
    """The lines of the mask that blocks what is blocked besides some hidden keys; none where nothing is."""
    beside = given.allowed | hidden
    if beside.all():
        return []
    if torch.equal(beside, (given.causal | hidden).expand_as(beside)):
        return [*condition_lines("k <= q", given, TORCH), *_blocked_lines(given, name)]
    return [*allowed_lines(given, TORCH), *_blocked_lines(given, name)]


def _blocked_lines(given: MaskToTranslate, name: str) -> list[str]:
    return [*_batch_lines(given, name), f"{name} = ~allowed  # True = blocked"]


def _batch_lines(given: MaskToTranslate, name: str) -> list[str]:
    """Say how a mask that differs by head is brought to a batch: all heads of the first sequence come first."""
    return [f"# (B * H, Tq, Tk), here for one sequence: {name}.repeat(B, 1, 1) for B"] if given.is_per_head else []


def _padding_lines(name: str, hidden: Tensor) -> list[str]:
    return [f"{name} = {TORCH.vector(hidden.tolist())}[None]  # (B, Tk): True = padding"]
