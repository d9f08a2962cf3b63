"""What is wrong with an attention: the lint's findings on its mask, and what its call itself shows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headlight.attention import Attention
from headlight.inputs import Padding
from headlight.words import Description, Tokens, describe
from model.mask_tools.intents import Intent
from model.mask_tools.lint import SEVERITIES, Finding, MaskCase, Severity, lint
from model.mask_tools.mask_case import NUMBER_TYPES, named
from model.masks import with_leading_axes

_CROSS = re.compile(r"cross|encoder_attn|encoder_attention|encdec|multihead_attn", re.IGNORECASE)
_OF_ENCODER = re.compile(r"(^|\.)encoder(\.|$)", re.IGNORECASE)
_OF_DECODER = re.compile(r"(^|\.)decoder(\.|$)", re.IGNORECASE)
_CAUSAL_NAMES = re.compile(r"CausalLM|LMHeadModel")


@dataclass(frozen=True, eq=False)
class Judged:
    """One attention with what is to be said of it.

    Attributes:
        attention: the attention.
        descriptions: each different mask in words, with where it stands: ``item 0``, ``head 2``, "" for everywhere.
        is_causal: whether it was taken for one that must not see later tokens.
        findings: what was found, most severe first, each once.
    """

    attention: Attention
    descriptions: tuple[tuple[str, Description], ...]
    is_causal: bool
    findings: tuple[Finding, ...]


def judge(
    attentions: Sequence[Attention], padding: Padding, causal: bool | None, model_name: str = ""
) -> tuple[Judged, ...]:
    """Every attention with its findings.

    Args:
        attentions: those of one pass.
        padding: which tokens are padding.
        causal: whether no token may see a later one; None judges that by the masks of the attentions of one kind
            and by the name of the model.
        model_name: the name of the model's class.
    """
    described = [(attention, tuple(_described(attention, padding))) for attention in attentions]
    is_causal = _causal_kinds(described, causal, model_name)
    return tuple(
        Judged(attention, _worded(masks), is_causal[_kind(attention)], _findings(attention, masks, is_causal))
        for attention, masks in described
    )


@dataclass(frozen=True, eq=False)
class _Mask:
    """One mask that differs from the others of its attention, and the sequences and heads that have it."""

    allowed: Tensor
    items: tuple[int, ...]
    heads: tuple[int, ...]
    n_items: int
    n_heads: int
    description: Description

    @property
    def where(self) -> str:
        """``item 0, head 2``; "" for all of them."""
        parts = [_numbered("item", self.items)] if len(self.items) < self.n_items else []
        parts += [_numbered("head", self.heads)] if len(self.heads) < self.n_heads else []
        return ", ".join(parts)


def _numbered(name: str, numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:3])
    more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
    return f"{name}{'s' if len(numbers) > 1 else ''} {shown}{more}"


def _described(attention: Attention, padding: Padding) -> Iterator[_Mask]:
    """Each different mask of an attention, beside each different padding."""
    batch, n_heads, n_queries, n_keys = attention.shape
    if attention.weights is not None:
        batch, n_heads = attention.weights.shape[:2]
    allowed = torch.ones(1, 1, n_queries, n_keys, dtype=torch.bool)
    if attention.allowed is not None:
        allowed = with_leading_axes(attention.allowed.cpu()).expand(-1, -1, n_queries, n_keys)
    tokens = [_tokens(attention, padding, item, batch) for item in range(batch)]
    paddings = _Different([torch.cat([known.query_is_padding, known.key_is_padding]) for known in tokens])
    masks = _Different(list(allowed.flatten(0, 1)))
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for item in range(batch):
        for head in range(n_heads):
            row = (item if len(allowed) > 1 else 0) * allowed.shape[1] + (head if allowed.shape[1] > 1 else 0)
            places.setdefault((masks.numbers[row], paddings.numbers[item]), []).append((item, head))
    for (number, _), members in places.items():
        items, heads = (tuple(sorted({member[axis] for member in members})) for axis in (0, 1))
        mask = masks.values[number]
        yield _Mask(mask, items, heads, batch, n_heads, describe(mask, tokens[items[0]]))


class _Different:
    """Which of some tensors are the same.

    Attributes:
        values: each different one.
        numbers: for each tensor the number of its value.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.values: list[Tensor] = []
        self.numbers = [self._number(tensor) for tensor in tensors]

    def _number(self, tensor: Tensor) -> int:
        for number, value in enumerate(self.values):
            if torch.equal(value, tensor):
                return number
        self.values.append(tensor)
        return len(self.values) - 1


def _tokens(attention: Attention, padding: Padding, item: int, batch: int) -> Tokens:
    """Which queries and keys of one sequence are padding, where the sizes fit."""
    _, _, n_queries, n_keys = attention.shape
    of_keys, of_queries = padding.encoder, padding.encoder
    if is_of_decoder(attention.module):
        of_queries = padding.decoder
        of_keys = padding.encoder if is_cross(attention) else padding.decoder
        if padding.decoder is None and not is_cross(attention) and padding.encoder is not None:
            of_keys = None
    keys = _row(of_keys, item, batch)
    keys = keys if keys is not None and len(keys) == n_keys else None
    queries = _row(of_queries, item, batch)
    if queries is not None and len(queries) > n_queries and not is_cross(attention):
        queries = queries[-n_queries:]  # with a key/value cache the last tokens are the queries
    queries = queries if queries is not None and len(queries) == n_queries else None
    none = Tokens.without_padding(n_queries, n_keys)
    return Tokens(
        none.query_is_padding if queries is None else queries, none.key_is_padding if keys is None else keys
    )


def _row(padding: Tensor | None, item: int, batch: int) -> Tensor | None:
    """The padding of one sequence; heads may be counted as sequences, several in a row for each."""
    if padding is None or batch % len(padding):
        return None
    return padding[item * len(padding) // batch].cpu()


def is_cross(attention: Attention) -> bool:
    """Whether the name of its module says that its keys come from another sequence than its queries."""
    return bool(_CROSS.search(attention.module))


def is_of_decoder(module: str) -> bool:
    """Whether the path of a module says that it is a decoder's."""
    return bool(_OF_DECODER.search(module))


def _kind(attention: Attention) -> str:
    """Attentions of one kind differ in the number of their layer alone."""
    return re.sub(r"\d+", "*", attention.module)


def _causal_kinds(
    described: Sequence[tuple[Attention, Sequence[_Mask]]], causal: bool | None, model_name: str
) -> Mapping[str, bool]:
    """Whether the attentions of each kind must not see later tokens: all of them if one of them seems to."""
    is_two_stacks = any(_OF_ENCODER.search(attention.module) for attention, _ in described) and any(
        _OF_DECODER.search(attention.module) for attention, _ in described
    )
    found: dict[str, bool] = {}
    for attention, masks in described:
        never = is_cross(attention) or (is_two_stacks and bool(_OF_ENCODER.search(attention.module)))
        if causal is not None or never:
            found[_kind(attention)] = bool(causal) and not never
            continue
        seems = attention.is_causal or any(_seems_causal(mask) for mask in masks)
        by_name = bool(_CAUSAL_NAMES.search(model_name))
        found[_kind(attention)] = found.get(_kind(attention), False) or seems or by_name
    return found


def _seems_causal(mask: _Mask) -> bool:
    """Whether a mask hides most later keys and shows earlier ones, or, by mistake, the other way round."""
    allowed, intent = mask.allowed, mask.description.intent
    if intent is not None and intent.kind in ("prefix", "block_causal", "bidirectional", "window_both"):
        return False
    if torch.equal(allowed, allowed[:1].expand_as(allowed)):  # it looks at the keys alone, as padding does
        return False
    offset = max(0, allowed.shape[1] - allowed.shape[0])
    later, earlier = torch.ones_like(allowed).triu(offset + 1), torch.ones_like(allowed).tril(offset - 1)
    n_later, n_earlier = int((allowed & later).sum()), int((allowed & earlier).sum())
    of_later, of_earlier = n_later / max(1, int(later.sum())), n_earlier / max(1, int(earlier.sum()))
    one_sided = min(n_later, n_earlier) == 0 < max(n_later, n_earlier)
    return one_sided or min(of_later, of_earlier) < 0.5 < max(of_later, of_earlier)


def _worded(masks: Sequence[_Mask]) -> tuple[tuple[str, Description], ...]:
    """The different masks, those with the same words as one, and those that are the same but for padding."""
    first = {mask.description.words: mask for mask in reversed(masks)}
    with_padding = {
        _bare(mask) for mask in masks if mask.description.intent is not None and mask.description.intent.padding
    }
    left = [mask for mask in masks if first[mask.description.words] is mask]
    left = [mask for mask in left if not (_is_without_padding(mask) and _bare(mask) in with_padding)]
    if len(left) == 1:
        return (("", left[0].description),)
    return tuple((mask.where, mask.description) for mask in left)


def _bare(mask: _Mask) -> Intent | None:
    """What the mask is, padding aside."""
    intent = mask.description.intent
    return None if intent is None else replace(intent, padding=False)


def _is_without_padding(mask: _Mask) -> bool:
    return not bool(mask.description.tokens.key_is_padding.any()) and mask.description.intent is not None


def _findings(attention: Attention, masks: Sequence[_Mask], is_causal: Mapping[str, bool]) -> tuple[Finding, ...]:
    found: dict[str, Finding] = {}
    for finding in (*_of_the_call(attention), *_of_the_masks(attention, masks, is_causal[_kind(attention)])):
        found.setdefault(finding.rule, finding)
    return tuple(sorted(found.values(), key=lambda finding: SEVERITIES.index(finding.severity)))


def _of_the_masks(attention: Attention, masks: Sequence[_Mask], is_causal: bool) -> Iterator[Finding]:
    has_nan = attention.weights is not None and bool(attention.weights.isnan().any())
    cases = [_case(attention, mask, is_causal) for mask in masks]
    found = [lint(case) for case in cases]
    is_inverted = any(finding.rule == "inverted" for findings in found for finding in findings)
    for case, findings in zip(cases, found, strict=True):
        if is_inverted and not any(finding.rule == "inverted" for finding in findings) and _turned_is_right(case):
            continue
        for finding in findings:
            if finding.rule == "padding_query_without_key" and not has_nan:
                continue
            if finding.rule in ("no_key_left", "blocks_everything") and attention.fill is None and not has_nan:
                empty = named("query", finding.cells.any(-1))
                why = f"No key is left for {empty}, and this function gives it weights of zero: it gets nothing."
                finding = replace(finding, why=why)
            yield finding


def _case(attention: Attention, mask: _Mask, is_causal: bool) -> MaskCase:
    return MaskCase(
        allowed=mask.allowed,
        query_is_padding=mask.description.tokens.query_is_padding,
        key_is_padding=mask.description.tokens.key_is_padding,
        causal=is_causal,
        fill=attention.fill,
        dtype=attention.dtype if attention.dtype in NUMBER_TYPES else torch.float32,
    )


def _turned_is_right(case: MaskCase) -> bool:
    """Whether the mask of another sequence, which is inverted, explains what is wrong with this one too."""
    return not any(finding.severity == "error" for finding in lint(case.with_allowed(~case.allowed)))


@dataclass(frozen=True)
class Said:
    """What a remark is called, how much it matters, why, and how to mend it."""

    title: str
    severity: Severity
    why: str
    mend: str


REMARKS: Mapping[str, Said] = {
    "contradicted_flag": Said(
        "The flag contradicts the mask",
        "error",
        "is_causal=True says that the mask is causal, PyTorch takes its word and hides later keys, and the mask "
        "that was passed, which is another one, is never read.",
        "Pass is_causal=False beside a mask that is not the causal one.",
    ),
    "nan_in_mask": Said(
        "The mask holds NaN",
        "error",
        "A mask that is added holds NaN, as 0 * -inf gives it, and every weight of its rows becomes NaN.",
        "Fill blocked cells of a zero mask with -inf in place of multiplying by it.",
    ),
    "ones_and_zeros": Said(
        "A mask of ones and zeros is added",
        "error",
        "A float mask is added to the scores, so 1 raises a score by 1, 0 leaves it, and nothing is blocked.",
        "Pass a boolean mask, mask.bool(), or 0 and -inf.",
    ),
    "multiplied_by_zero": Said(
        "Blocked scores are 0 and not -inf",
        "error",
        "The scores are multiplied by a mask, and the softmax gives a score of 0 the weight of any other number.",
        "Use scores.masked_fill(~mask, -inf) before the softmax.",
    ),
    "changed_after_softmax": Said(
        "The weights are changed after the softmax",
        "warning",
        "What is masked after the softmax took part in it, so the weights of a row no longer sum to 1.",
        "Mask the scores before the softmax.",
    ),
    "softmax_over_queries": Said(
        "The softmax goes over the queries",
        "error",
        "The weights of each key sum to 1 and not those of each query, so that tokens compete for the wrong thing "
        "and later queries change what earlier ones get.",
        "Take the softmax over the last axis, dim=-1.",
    ),
    "softmax_over_heads": Said(
        "The softmax goes over another axis",
        "error",
        "The weights of a query do not sum to 1 over its keys.",
        "Take the softmax over the last axis, dim=-1.",
    ),
    "scores_changed": Said(
        "The scores are changed by a function",
        "note",
        "Between the product and the softmax stands a function that is no mask and no bias, such as a soft cap.",
        "Nothing to mend if it is meant.",
    ),
}
"""What is said of each remark of an ``Attention``."""


def _of_the_call(attention: Attention) -> Iterator[Finding]:
    """What the call itself shows, whatever its mask is."""
    cells = torch.ones(attention.shape[2:], dtype=torch.bool)
    for remark in attention.remarks:
        said = REMARKS[remark]
        yield Finding(remark, said.title, said.severity, cells, said.why, said.mend)
    if attention.weights is not None and bool(attention.weights.isnan().any()):
        why = "A weight that is not a number spreads to every token in the next layer."
        mend = "Leave each query at least one key, or give rows without a key weights of zero."
        yield Finding("weights_are_nan", "Weights are NaN", "error", cells, why, mend)
    width = attention.query_shape[-1] if attention.query_shape else 0
    if width and not math.isclose(attention.scale * math.sqrt(width), 1.0, rel_tol=1e-3):
        why = (
            f"The scores are multiplied by {attention.scale:.3g}, and not by 1 / sqrt({width}) = "
            f"{1 / math.sqrt(width):.3g}."
        )
        mend = "Nothing to mend if the queries are scaled before, or the model is trained like this, as T5 is."
        yield Finding("unusual_scale", "The scores are scaled otherwise", "note", cells, why, mend)
