"""Words for each remark on an attention, such as that its softmax goes over the queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from headlight.attentions import Attention
from headlight.masks.mask_case import Finding, Severity


@dataclass(frozen=True)
class Remark:
    """The title of a remark, its severity, the reason, and the remedy."""

    title: str
    severity: Severity
    why: str
    mend: str


REMARKS: Mapping[str, Remark] = {
    "contradicted_flag": Remark(
        "The flag contradicts the mask",
        "error",
        "is_causal=True says that the mask is causal, PyTorch takes its word and hides later keys, and the mask "
        "that was passed, which is another one, is never read.",
        "Pass is_causal=False beside a mask that is not the causal one.",
    ),
    "nan_in_mask": Remark(
        "The mask holds NaN",
        "error",
        "A mask that is added holds NaN, as 0 * -inf gives it, and every weight of its rows becomes NaN.",
        "Fill blocked cells of a zero mask with -inf in place of multiplying by it.",
    ),
    "ones_and_zeros": Remark(
        "A mask of ones and zeros is added",
        "error",
        "A float mask is added to the scores, so 1 raises a score by 1, 0 leaves it, and nothing is blocked.",
        "Pass a boolean mask, mask.bool(), or 0 and -inf.",
    ),
    "multiplied_by_zero": Remark(
        "Blocked scores are 0 and not -inf",
        "error",
        "The scores are multiplied by a mask, and the softmax gives a score of 0 the weight of any other number.",
        "Use scores.masked_fill(~mask, -inf) before the softmax.",
    ),
    "changed_after_softmax": Remark(
        "The weights are changed after the softmax",
        "warning",
        "What is masked after the softmax took part in it, so the weights of a row no longer sum to 1.",
        "Mask the scores before the softmax.",
    ),
    "softmax_over_queries": Remark(
        "The softmax goes over the queries",
        "error",
        "The weights of each key sum to 1 and not those of each query, so that tokens compete for the wrong thing "
        "and later queries change what earlier ones get.",
        "Take the softmax over the last axis, dim=-1.",
    ),
    "softmax_over_heads": Remark(
        "The softmax goes over another axis",
        "error",
        "The weights of a query do not sum to 1 over its keys.",
        "Take the softmax over the last axis, dim=-1.",
    ),
    "heads_across_tokens": Remark(
        "Heads are cut across tokens",
        "error",
        "A tensor (B, T, D) is viewed as (B, H, T, D / H), or heads are joined to (B, T, D), without a transpose, "
        "so that a row holds numbers of several tokens, also of later ones, and no mask can keep them out.",
        "Use x.view(B, T, H, -1).transpose(1, 2), and transpose(1, 2) again before the heads are joined.",
    ),
    "own_memory": Remark(
        "A cross-attention reads its own sequence",
        "warning",
        "Its keys were computed from the same tokens as its queries, as in decoder(x, memory=x), so that it is a "
        "second self-attention; without a causal mask of its own each token sees those that come later.",
        "Pass what an encoder came to as the memory; a model without one needs no cross-attention.",
    ),
    "two_fills": Remark(
        "Two fills were added",
        "warning",
        "Some cells are blocked by a number and others by -inf, as where two masks of the lowest number are added; "
        "a row that is -inf throughout is NaN in PyTorch's softmax.",
        "Combine masks with & before they become numbers.",
    ),
    "heads_or_sequences": Remark(
        "Heads and sequences share an axis",
        "note",
        "The mask hides the padding of each sequence only if the heads come first in that axis; if the "
        "sequences do, it was repeated in the wrong order, and padding can be seen.",
        "For sequences first use mask.repeat_interleave(n_heads, 0), for heads first mask.repeat(n_heads, 1, 1).",
    ),
    "open_decoder": Remark(
        "The decoder sees later tokens",
        "note",
        "Each token sees all others, also those after it, so that in training the decoder can copy what it should "
        "predict.",
        "Pass a causal mask, which is tgt_mask in nn.Transformer, unless all tokens are predicted at once.",
    ),
    "causal_encoder": Remark(
        "The encoder hides later tokens",
        "note",
        "Its text is complete before the decoder writes, so that its tokens may see each other in both directions.",
        "Leave the mask out, which is src_mask in nn.Transformer, unless the source comes as a stream.",
    ),
    "causal_cross": Remark(
        "The cross-attention hides later tokens",
        "note",
        "Each query sees the source only up to its own number, though the source is complete before it.",
        "Leave the mask out, which is memory_mask in nn.Transformer, unless source and target run side by side.",
    ),
    "sequences_at_heads": Remark(
        "The padding of sequences stands at heads",
        "warning",
        "Each head hides keys of its own, alike in every sequence, as a mask of shape (B, 1, T) does beside as "
        "many heads.",
        "Give the mask an axis for the heads: mask[:, None, None, :].",
    ),
    "weighted_after_softmax": Remark(
        "The weights are changed once more after the softmax",
        "note",
        "Sums over heads, as in talking heads, or products and sums with numbers that block nothing meet the "
        "values: the weights are those before.",
        "Nothing to fix if it is meant.",
    ),
    "sums_below_one": Remark(
        "The weights of a row do not sum to 1",
        "note",
        "What is left goes to no key, as in a softmax with 1 added to its sum.",
        "Nothing to fix if it is meant.",
    ),
    "part": Remark(
        "This is a part of an attention",
        "note",
        "Its module computes several softmaxes in one call, of which this one has some of the heads, queries or "
        "keys, so its mask is not judged.",
        "Nothing to fix.",
    ),
    "own_keys": Remark(
        "Each query has keys of its own",
        "note",
        "Its weights meet other values for each query, as where a sequence is pooled or an expert is chosen, so "
        "that a column is no single key, and its mask is not judged.",
        "Nothing to mend.",
    ),
    "not_read": Remark(
        "The mask was not read",
        "note",
        "The weights are not those that the mask, as far as it was followed, leads to, so it is not judged.",
        "Nothing to fix: say what it should be by expected=.",
    ),
    "scores_changed": Remark(
        "The scores are changed by a function",
        "note",
        "Between the product and the softmax stands a function other than a mask or a bias, such as a soft cap.",
        "Nothing to fix if it is meant.",
    ),
}
"""The words for each remark of an ``Attention``."""


def finding_of(attention: Attention, remark: str) -> Finding:
    """A remark as a finding on all cells of an attention."""
    said, cells = REMARKS[remark], torch.ones(attention.shape[2:], dtype=torch.bool)
    return Finding(remark, said.title, said.severity, cells, said.why, said.mend)
