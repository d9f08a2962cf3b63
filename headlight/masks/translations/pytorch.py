"""Masks for PyTorch's own attentions.

True means blocked in the masks of ``nn.MultiheadAttention`` and of what is built from it, and "takes part" in those
of ``F.scaled_dot_product_attention`` and FlexAttention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headlight.masks.translations.building import TORCH, allowed_lines, cell_lines, condition_lines, name_lines
from headlight.masks.translations.code_lines import arguments, comment, snippet, without_keys
from headlight.masks.translations.mask_to_translate import MaskToTranslate, check_is_over_one_sequence
from model.texts import texts_of

say = texts_of(__name__)

_WITHOUT_KEYS = say("without_keys")
_STACK_WITHOUT_KEYS = say("stack_without_keys")


def multihead_attention(mask: MaskToTranslate) -> str:
    """The boolean attn_mask of ``nn.MultiheadAttention``."""
    lines = [*allowed_lines(mask, TORCH), *_blocked_lines(mask, "attn_mask")]
    call = "output, weights = attention(query, key, value, attn_mask=attn_mask)"
    return _snippet(mask, say("multihead_attention"), lines, _WITHOUT_KEYS, call)


def multihead_attention_float(mask: MaskToTranslate) -> str:
    """The float attn_mask of ``nn.MultiheadAttention``."""
    lines = [
        *allowed_lines(mask, TORCH),
        *_batch_lines(mask, "attn_mask"),
        "attn_mask = torch.where(allowed, 0.0, -torch.inf)  # 0 = may attend, -inf = blocked",
    ]
    call = "output, weights = attention(query, key, value, attn_mask=attn_mask)"
    return _snippet(mask, say("multihead_attention_float"), lines, say("float_without_keys"), call)


def multihead_attention_padding(mask: MaskToTranslate) -> str:
    """The key_padding_mask of ``nn.MultiheadAttention``, and an attn_mask for what else is blocked."""
    hidden = mask.hidden_padding
    beside = _lines_beside(mask, hidden, "attn_mask")
    lines = [*beside, *_padding_lines("key_padding_mask", hidden)]
    masks = arguments([*(["attn_mask"] if beside else []), "key_padding_mask"])
    call = f"output, weights = attention(query, key, value, {masks})"
    return _snippet(mask, say("multihead_attention_padding"), lines, _WITHOUT_KEYS, call)


def transformer_encoder(mask: MaskToTranslate) -> str:
    """The mask and src_key_padding_mask of ``nn.TransformerEncoder``, whichever are needed."""
    check_is_over_one_sequence(mask, "nn.TransformerEncoder")
    lines, masks = _stack_masks(mask, "mask", "src_key_padding_mask")
    if masks == ["src_key_padding_mask"]:
        lines = [*lines, comment(say("zeroed_padding"))]
    call = f"output = encoder(source, {arguments(masks)})"
    return _snippet(mask, say("transformer_encoder"), lines, _STACK_WITHOUT_KEYS, call)


def transformer_decoder(mask: MaskToTranslate) -> str:
    """The tgt_mask and tgt_key_padding_mask of ``nn.TransformerDecoder``, whichever are needed.

    Of a cross-attention memory_mask and memory_key_padding_mask.
    """
    if not mask.crosses:
        check_is_over_one_sequence(mask, say("decoder_self_attention"))
    side = "memory" if mask.crosses else "tgt"
    lines, masks = _stack_masks(mask, f"{side}_mask", f"{side}_key_padding_mask")
    call = f"output = decoder(target, memory, {arguments(masks)})"
    return _snippet(mask, say("transformer_decoder"), lines, _STACK_WITHOUT_KEYS, call)


def scaled_dot_product_attention(mask: MaskToTranslate) -> str:
    """The boolean attn_mask of ``F.scaled_dot_product_attention``."""
    code, shape = ("allowed[None]", "(1, H, Tq, Tk)") if mask.is_per_head else ("allowed", "(Tq, Tk)")
    lines = [*allowed_lines(mask, TORCH), f"attn_mask = {code}  # {shape}, for every sequence"]
    call = "output = F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)"
    imports = ["import torch", "from torch.nn import functional as F"]
    return _snippet(mask, say("scaled_dot_product_attention"), lines, say("zeros"), call, imports)


def flex_attention(mask: MaskToTranslate) -> str:
    """The mask_mod of FlexAttention, and its block mask."""
    if mask.shared_condition is not None:
        built, cell = name_lines(mask.shared_condition, mask, TORCH), mask.shared_condition
    else:
        built, cell = cell_lines(mask, TORCH), f"allowed[{'h, ' if mask.is_per_head else ''}q, k]"
    uses_torch = any("torch." in line for line in (*built, cell))
    heads = mask.n_heads if mask.is_per_head else None
    sizes = f"B=None, H={heads}, Q_LEN={mask.n_queries}, KV_LEN={mask.n_keys}"
    imports = ["import torch"] * uses_torch + [
        "from torch.nn.attention.flex_attention import create_block_mask, flex_attention"
    ]
    lines = [
        *([*built, "", ""] if built else [""]),
        *("def mask_mod(b, h, q, k):", f"    return {cell}", "", ""),
        f'block_mask = create_block_mask(mask_mod, {sizes}, device="cpu")',
    ]
    call = "output = flex_attention(query, key, value, block_mask=block_mask)  # fast under torch.compile"
    return _snippet(mask, say("flex_attention"), lines, say("flex_zeros"), call, imports)


def _snippet(
    mask: MaskToTranslate,
    convention: str,
    lines: Sequence[str],
    without_key: str,
    call: str,
    imports: Sequence[str] = ("import torch",),
) -> str:
    return snippet(convention, imports, lines, without_keys(mask, without_key), [f"# {call}"])


def _stack_masks(mask: MaskToTranslate, cells: str, padding: str) -> tuple[list[str], list[str]]:
    """The masks of an encoder or decoder: the lines that build them, and the names of those that are needed."""
    hidden = mask.hidden_padding
    if not hidden.any() or hidden.all():
        return [*allowed_lines(mask, TORCH), *_blocked_lines(mask, cells)], [cells]
    beside = _lines_beside(mask, hidden, cells)
    return [*beside, *_padding_lines(padding, hidden)], [*([cells] if beside else []), padding]


def _lines_beside(mask: MaskToTranslate, hidden: Tensor, name: str) -> list[str]:
    """The lines of the mask that blocks what is blocked besides some hidden keys; none where nothing is."""
    beside = mask.allowed | hidden
    if beside.all():
        return []
    if torch.equal(beside, (mask.causal | hidden).expand_as(beside)):
        return [*condition_lines("k <= q", mask, TORCH), *_blocked_lines(mask, name)]
    return [*allowed_lines(mask, TORCH), *_blocked_lines(mask, name)]


def _blocked_lines(mask: MaskToTranslate, name: str) -> list[str]:
    return [*_batch_lines(mask, name), f"{name} = ~allowed  # True = blocked"]


def _batch_lines(mask: MaskToTranslate, name: str) -> list[str]:
    """Say how a mask that differs by head is brought to a batch: all heads of the first sequence come first."""
    return [f"# (B * H, Tq, Tk), here for one sequence: {name}.repeat(B, 1, 1) for B"] if mask.is_per_head else []


def _padding_lines(name: str, hidden: Tensor) -> list[str]:
    return [f"{name} = {TORCH.vector(hidden.tolist())}[None]  # (B, Tk): True = padding"]
