"""The findings on an attention: those of the lint on its mask, and those that its call itself shows."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.expected import Expected, Mask, cells_of, difference, expected_of
from headlight.inputs import Padding
from headlight.mask_words import Description, Tokens, describe
from headlight.masks.intents import Intent
from headlight.masks.lint import SEVERITIES, Finding, MaskCase, Severity, lint
from headlight.masks.mask_case import NUMBER_TYPES, named
from headlight.remarks import finding_of
from headlight.roles import is_of_decoder
from model.masks import with_leading_axes
from model.texts import capitalized, listed

_logger = logging.getLogger(__name__)
_CAUSAL_NAME = "CausalLM"


@dataclass(frozen=True, eq=False)
class Judged:
    """One attention with what is to be said of it.

    Attributes:
        attention: the attention.
        descriptions: each different mask in words, with where it stands: ``item 0``, ``head 2``, "" for everywhere.
        findings: what was found, most severe first, each once.
    """

    attention: Attention
    descriptions: tuple[tuple[str, Description], ...]
    findings: tuple[Finding, ...]


def judge(
    attentions: Sequence[Attention],
    padding: Padding,
    causal: bool | None,
    model_name: str = "",
    expected: Expected | None = None,
) -> tuple[Judged, ...]:
    """Every attention with its findings. Only what was said is judged, and what cannot be meant.

    Args:
        attentions: those of one pass.
        padding: which tokens are padding, and of which document each is.
        causal: whether no token may see a later one; None where it was not said: then a name such as
            ``LlamaForCausalLM`` says it, and a sequence that another layer hides later tokens of.
        model_name: the name of the model's class.
        expected: what the masks should be.
    """
    roles = {attention.role for attention in attentions}
    has_encoder = "encoder" in roles or any(is_of_decoder(attention.module) for attention in attentions)
    if "cross" in roles and not has_encoder and padding.decoder is None:
        padding = replace(padding, encoder=None, decoder=padding.encoder)  # that of the decoder alone
    if "encoder" in roles and padding.encoder is None:
        padding = replace(padding, encoder=padding.source)
    described = [_or_not_read(attention, padding) for attention in attentions]
    said = _Said(described, causal, model_name)
    return tuple(
        Judged(attention, _worded(attention, masks), _findings(attention, masks, said, padding, expected))
        for attention, masks in described
    )


def _or_not_read(attention: Attention, padding: Padding) -> tuple[Attention, Sequence[_Mask]]:
    """An attention with its masks; without them where they cannot be told apart."""
    try:
        return attention, tuple(_described(attention, padding))
    except Exception:
        _logger.info("the masks of %s could not be read", attention.path, exc_info=True)
        return replace(attention, remarks=(*attention.remarks, "not_read")), ()


@dataclass(frozen=True, eq=False)
class _Mask:
    """One mask that differs from the others of its attention, and the sequences and heads that have it.

    ``knows_padding`` is False where there is padding, but the sizes do not tell which queries and keys it is, as
    where a sequence is cut into parts.
    """

    allowed: Tensor
    items: tuple[int, ...]
    heads: tuple[int, ...]
    n_items: int
    n_heads: int
    description: Description
    is_padded: bool
    knows_padding: bool = True

    @property
    def sees_all(self) -> bool:
        """True if every query sees every key, padding aside."""
        return bool((self.allowed | self.description.tokens.key_is_padding).all())

    @property
    def where(self) -> str:
        """``item 0, head 2``; "" for all of them."""
        parts = [_numbered("item", self.items)] if len(self.items) < self.n_items else []
        parts += [_numbered("head", self.heads)] if len(self.heads) < self.n_heads else []
        return ", ".join(parts)


def _numbered(name: str, numbers: Sequence[int]) -> str:
    return f"{name}{'s' if len(numbers) > 1 else ''} {listed(numbers, 3)}"


def _described(attention: Attention, padding: Padding) -> Iterator[_Mask]:
    """Each different mask of an attention, beside each different padding."""
    _, n_heads, n_queries, n_keys = attention.shape
    n_keys -= attention.sinks
    if attention.weights is not None:
        n_heads = attention.weights.shape[1]
    allowed = torch.ones(1, 1, n_queries, n_keys, dtype=torch.bool)
    if attention.allowed is not None:
        allowed = with_leading_axes(attention.allowed.cpu()).expand(-1, -1, n_queries, -1)
        allowed = allowed[..., :n_keys].expand(-1, -1, -1, n_keys)
    tokens = _all_tokens(attention, padding)
    batch = len(tokens)
    marked = (each for each in (padding.encoder, padding.decoder, padding.source) if each is not None)
    knows_padding = any(bool(_facts(each).any()) for each in tokens) or not any(bool(each.any()) for each in marked)
    paddings = _Different([_facts(known) for known in tokens])
    masks = _Different(list(allowed.flatten(0, 1)))
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for item in range(batch):
        for head in range(n_heads):
            row = (item if len(allowed) > 1 else 0) * allowed.shape[1] + (head if allowed.shape[1] > 1 else 0)
            places.setdefault((masks.numbers[row], paddings.numbers[item]), []).append((item, head))
    for (number, _), members in places.items():
        items, heads = (tuple(sorted({member[axis] for member in members})) for axis in (0, 1))
        mask = masks.values[number]
        known = tokens[items[0]]
        is_padded = bool(known.key_is_padding.any())
        yield _Mask(mask, items, heads, batch, n_heads, describe(mask, known), is_padded, knows_padding)


class _Different:
    """The distinct values among some tensors.

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


def _all_tokens(attention: Attention, padding: Padding) -> list[Tokens]:
    """The facts that are known of the tokens of each sequence."""
    return _tokens_of_each(attention, padding, heads_first=_seem_heads_first(attention, padding))


def _tokens_of_each(attention: Attention, padding: Padding, *, heads_first: bool) -> list[Tokens]:
    batch = attention.shape[0] if attention.weights is None else len(attention.weights)
    return [_tokens(attention, padding, item, batch, heads_first) for item in range(batch)]


def _seem_heads_first(attention: Attention, padding: Padding) -> bool:
    """True where heads and sequences share an axis, and the mask hides padding only if heads come first in it."""
    if attention.allowed is None or attention.shape[1] > 1 or attention.sinks:
        return False
    planes = with_leading_axes(attention.allowed.cpu())[:, 0]

    def shows_padding(heads_first: bool) -> bool:
        tokens = _tokens_of_each(attention, padding, heads_first=heads_first)
        return any(
            bool((plane & ~known.query_is_padding[:, None] & known.key_is_padding).any())
            for plane, known in zip(planes.expand(len(tokens), -1, -1), tokens, strict=True)
        )

    return shows_padding(False) and not shows_padding(True)


def _facts(tokens: Tokens) -> Tensor:
    """Everything that is known of some tokens, as numbers."""
    documents = torch.tensor(tokens.documents, dtype=torch.long)
    return torch.cat([tokens.query_is_padding.long(), tokens.key_is_padding.long(), documents])


def _tokens(attention: Attention, padding: Padding, item: int, batch: int, heads_first: bool) -> Tokens:
    """Return the tokens of one sequence, with the padding among its queries and keys where the sizes fit."""
    _, _, n_queries, n_keys = attention.shape
    n_keys -= attention.sinks
    crosses = attention.is_cross
    own = padding.decoder if attention.is_decoding else padding.encoder
    of_source = padding.encoder if padding.source is None else padding.source
    of_keys = of_source if crosses else own
    keys, queries = (_row(each, item, batch, heads_first) for each in (of_keys, own))
    keys = keys if keys is not None and len(keys) == n_keys else None
    if queries is not None and len(queries) == n_keys > n_queries and not crosses:
        queries = queries[-n_queries:]  # with a key/value cache the last tokens are the queries
    queries = queries if queries is not None and len(queries) == n_queries else None
    documents = None if crosses else _row(padding.documents, item, batch, heads_first)
    none = Tokens.without_padding(n_queries, n_keys)
    return Tokens(
        none.query_is_padding if queries is None else queries,
        none.key_is_padding if keys is None else keys,
        tuple(documents.tolist()) if documents is not None and len(documents) == n_queries == n_keys else (),
    )


def _row(padding: Tensor | None, item: int, batch: int, heads_first: bool) -> Tensor | None:
    """The padding of one sequence; heads may be counted as sequences, several in a row for each, or in front."""
    if padding is None or batch % len(padding):
        return None
    return padding[item % len(padding) if heads_first else item * len(padding) // batch].cpu()


def _is_not_judged(attention: Attention) -> bool:
    """True if its mask alone says nothing."""
    return not {"part", "own_keys"}.isdisjoint(attention.remarks)


def _kind(attention: Attention) -> str:
    """Attentions of one kind differ in the number of their layer alone."""
    return re.sub(r"\d+", "*", attention.module)


def _layer(attention: Attention) -> str:
    return attention.module.rpartition(".")[0]


def _decoder_layers(attentions: Sequence[Attention]) -> set[str]:
    """The layers in which a decoder's self-attention comes before a cross-attention, as in the paper."""
    decoding: set[str] = set()
    found: set[str] = set()
    for attention in attentions:
        if attention.role == "decoder":
            decoding.add(_layer(attention))
        elif attention.role == "cross" and _layer(attention) in decoding:
            found.add(_layer(attention))
    return found


class _Said:
    """All that was said of which tokens see later ones.

    Args:
        described: the attentions of a pass with their masks.
        causal: whether the caller says that none does; None if nothing was said.
        model_name: the name of the model's class, which may say it.
    """

    def __init__(
        self, described: Sequence[tuple[Attention, Sequence[_Mask]]], causal: bool | None, model_name: str
    ) -> None:
        self._causal = causal
        self._is_named_causal = _CAUSAL_NAME in model_name
        self._decoder_layers = _decoder_layers([attention for attention, _ in described])
        self._causal_sizes = {
            attention.shape[2:] for attention, masks in described for mask in masks if _is_exactly_causal(mask)
        }
        self._hides_later = {
            (_kind(attention), attention.shape, item)
            for attention, masks in described
            for mask in masks
            if _is_exactly_causal(mask)
            for item in mask.items
        }

    def is_causal(self, attention: Attention, mask: _Mask) -> bool:
        """True where a mask must hide later tokens."""
        if attention.role in ("cross", "encoder") or _is_not_judged(attention):
            return False
        if (sees_all := mask.sees_all) and not self._is_of_tokens(attention):
            return False
        if self._causal is not None:
            return self._causal
        if "own_memory" in attention.remarks and self._causal_sizes:
            return True
        if attention.is_causal or _is_exactly_causal(mask) or _is_causal_by_mistake(mask):
            return True
        places = {(_kind(attention), attention.shape, item) for item in mask.items}
        return sees_all and (self._is_named_causal or places <= self._hides_later)

    def unusual(self, attention: Attention, mask: _Mask) -> str:
        """The remark on a mask that is seldom meant where it is; "" where it is usual, or its purpose was said."""
        if self._causal is not None or attention.shape[2] < 2:
            return ""
        if attention.role in ("encoder", "cross"):
            intent = mask.description.intent
            return f"causal_{attention.role}" if intent is not None and intent.kind == "causal" else ""
        return "open_decoder" if _layer(attention) in self._decoder_layers and mask.sees_all else ""

    def is_turned_over(self, attention: Attention, mask: _Mask) -> bool:
        """True where tokens see themselves and later ones alone, and no attention of the pass is causal."""
        if self._causal is not None or self._causal_sizes or attention.role in ("cross", "encoder"):
            return False
        is_later = _is_one_of(mask, [torch.ones_like(mask.allowed).triu()])
        return is_later and "softmax_over_queries" not in attention.remarks

    def _is_of_tokens(self, attention: Attention) -> bool:
        """False where sequences share their keys, or where those that hide later tokens have other sizes."""
        batch, *_ = attention.shape
        query, key = attention.query_shape, attention.key_shape
        is_shared = batch > 1 and bool(key) and (len(key) < len(query) or (key[0] == 1 < query[0]))
        return not is_shared and (not self._causal_sizes or attention.shape[2:] in self._causal_sizes)


def _is_exactly_causal(mask: _Mask) -> bool:
    """True where a mask hides every later token and else only padding, other documents, or what is far away."""
    intent = mask.description.intent
    return intent is not None and intent.kind in ("causal", "window") and mask.allowed.shape[0] > 1


def _is_causal_by_mistake(mask: _Mask) -> bool:
    """True for the causal mask off by one or inverted, which nobody means."""
    ones = torch.ones_like(mask.allowed)
    return _is_one_of(mask, [ones.tril(1), ones.tril(-1), ones.triu(1)])


def _is_one_of(mask: _Mask, planes: Sequence[Tensor]) -> bool:
    """True if a mask of as many queries as keys, three at least, is one of some, padding aside."""
    n_queries, n_keys = mask.allowed.shape
    tokens = mask.description.tokens
    if n_queries != n_keys or int((~tokens.query_is_padding).sum()) < 3:
        return False
    real = ~tokens.query_is_padding[:, None] & ~tokens.key_is_padding
    return any(torch.equal(mask.allowed & real, plane & real) for plane in planes)


def _worded(attention: Attention, masks: Sequence[_Mask]) -> tuple[tuple[str, Description], ...]:
    """The different masks, those with the same words as one, and those that are the same but for padding."""
    if "not_read" in attention.remarks:
        tokens = Tokens.without_padding(*attention.shape[2:])
        return (("", Description("not read", None, tokens)),)
    first = {mask.description.words: mask for mask in reversed(masks)}
    padded = [mask for mask in masks if mask.is_padded]
    with_padding = {_bare(mask) for mask in padded if (intent := mask.description.intent) and intent.padding}
    left = [mask for mask in masks if first[mask.description.words] is mask]
    left = [mask for mask in left if mask.is_padded or _bare(mask) not in with_padding]
    if len(left) == 1:
        return (("", left[0].description),)
    return tuple((mask.where, mask.description) for mask in left)


def _bare(mask: _Mask) -> Intent | None:
    """Return the intention that the mask follows, padding aside."""
    intent = mask.description.intent
    return None if intent is None else replace(intent, padding=False)


def _findings(
    attention: Attention, masks: Sequence[_Mask], said: _Said, padding: Padding, expected: Expected | None
) -> tuple[Finding, ...]:
    found: dict[str, Finding] = {}
    of_masks = list(_of_the_call(attention))
    mask = None if expected is None else expected_of(attention, expected)
    if "not_read" not in attention.remarks and masks:
        if _seem_heads_first(attention, padding):
            of_masks.append(finding_of(attention, "heads_or_sequences"))
        if mask is not None and not attention.is_cross:
            of_masks += _beside_expected(attention, mask, _all_tokens(attention, padding))
        elif not _is_not_judged(attention):
            of_masks += _of_the_masks(attention, masks, said)
            of_masks += _of_documents(masks)
            unusual = {said.unusual(attention, mask) for mask in masks}
            if len(unusual) == 1 and "" not in unusual:
                of_masks.append(finding_of(attention, unusual.pop()))
            if _has_sequences_at_heads(attention):
                of_masks = _with_sequences_at_heads(attention, of_masks)
    for finding in of_masks:
        found.setdefault(finding.rule, finding)
    return tuple(sorted(found.values(), key=lambda finding: SEVERITIES.index(finding.severity)))


def _has_sequences_at_heads(attention: Attention) -> bool:
    """True if there are as many heads as sequences, and each head alone hides keys, alike in every sequence."""
    n_items, n_heads, *_ = attention.shape
    if attention.allowed is None or not 1 < n_items == n_heads:
        return False
    allowed = with_leading_axes(attention.allowed.cpu())
    hidden = ~allowed.any(-2, keepdim=True)
    is_by_keys = torch.equal(allowed, allowed.any(1, keepdim=True) & ~hidden)
    return is_by_keys and bool((hidden != hidden[:, :1]).any()) and bool((allowed == allowed[:1]).all())


def _with_sequences_at_heads(attention: Attention, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with this cause in place of the padding that can be seen for it."""
    others = [finding for finding in findings if finding.rule != "visible_padding"]
    severity: Severity = "warning" if len(others) == len(findings) else "error"
    return [*others, replace(finding_of(attention, "sequences_at_heads"), severity=severity)]


def _beside_expected(attention: Attention, mask: Mask, tokens: Sequence[Tokens]) -> Iterator[Finding]:
    _, n_heads, n_queries, n_keys = attention.shape
    allowed = attention.allowed
    if allowed is not None and attention.sinks:
        allowed = allowed[..., : n_keys - attention.sinks]
    try:
        finding = difference(allowed, cells_of(mask, attention, tokens), tokens, n_heads)
    except Exception as error:  # the person's own function or expression may raise anything
        _logger.info("an expected mask was not compared", exc_info=True)
        cells = torch.ones(n_queries, n_keys, dtype=torch.bool)
        why = f"{capitalized(error) if isinstance(error, ValueError) else f'{type(error).__name__}: {error}'}."
        mend = "Pass an expression, a boolean array or a mask_mod that fits."
        finding = Finding("not_compared", "The expected mask was not compared", "error", cells, why, mend)
    if finding is not None:
        yield finding


def _of_documents(masks: Sequence[_Mask]) -> Iterator[Finding]:
    """Documents, of which positions that restart tell, see each other."""
    for mask in masks:
        tokens = mask.description.tokens
        if not tokens.documents:
            continue
        documents = torch.tensor(tokens.documents)
        is_real = ~tokens.query_is_padding[:, None] & ~tokens.key_is_padding
        leaks = mask.allowed & is_real & (documents[:, None] != documents)
        if leaks.any():
            query, key = leaks.nonzero()[0].tolist()
            n_documents = len(set(tokens.documents))
            why = (
                f"The positions restart, so that {n_documents} documents lie side by side, but "
                f"{int(leaks.sum()):,} cells are open from one to another: query {query} sees key {key}."
            )
            mend = "Block keys of other documents: mask & (document[:, None] == document[None, :])."
            yield Finding("documents_leak", "Documents see each other", "error", leaks, why, mend)


def _of_the_masks(attention: Attention, masks: Sequence[_Mask], said: _Said) -> Iterator[Finding]:
    has_nan = attention.weights is not None and bool(attention.weights.isnan().any())
    cases = [
        _case(attention, mask, said.is_causal(attention, mask) or said.is_turned_over(attention, mask))
        for mask in masks
    ]
    found = [lint(case) for case in cases]
    is_inverted = any(finding.rule == "inverted" for findings in found for finding in findings)
    for mask, case, findings in zip(masks, cases, found, strict=True):
        if is_inverted and not any(finding.rule == "inverted" for finding in findings) and _turned_is_right(case):
            continue
        for finding in findings:
            if finding.rule in _WITHOUT_KEY and not mask.knows_padding:
                continue  # the queries that are left without a key may be padding
            if finding.rule == "padding_query_without_key" and not has_nan:
                continue
            if finding.rule in ("no_key_left", "own_key_hidden") and _leaves_one_key(attention, mask):
                why = "Where no other key is left, all weight goes to one key, whose fill is the highest."
                mend = "Nothing to mend if it is meant."
                finding = replace(finding, title="One key is a last resort", severity="note", why=why, mend=mend)
            if finding.rule == "transposed" and case.causal and not said.is_causal(attention, mask):
                mend = f"{finding.mend} Nothing to mend in a model that reads from right to left."
                finding = replace(finding, severity="warning", mend=mend)
            if finding.rule == "aligned_top_left" and not attention.is_causal:
                continue  # the keys after the last query may be empty places of a cache
            if finding.rule == "fill_leaks":
                leak = _leak(attention)
                if leak is not None and leak < torch.finfo(case.number_type).eps:
                    continue
            if finding.rule in ("no_key_left", "blocks_everything") and attention.fill is None and not has_nan:
                empty = named("query", finding.cells.any(-1))
                why = f"No key is left for {empty}, and this function gives it weights of zero: it gets nothing."
                severity: Severity = "warning" if case.is_square else "note"
                finding = replace(finding, why=why, severity=severity)
            yield finding


def _leaves_one_key(attention: Attention, mask: _Mask) -> bool:
    """True if each query with blocked keys alone gives all weight to one of them, and none to a later one."""
    weights = attention.weights
    rows = (~mask.allowed.any(-1) & ~mask.description.tokens.query_is_padding).nonzero().flatten()
    if weights is None or weights.shape[-1] != mask.allowed.shape[-1] or not len(rows):
        return False
    of_rows = weights.cpu()[list(mask.items)][:, list(mask.heads)][..., rows, :]
    n_queries, n_keys = mask.allowed.shape
    is_earlier = of_rows.argmax(-1) <= rows if n_queries == n_keys else torch.ones((), dtype=torch.bool)
    return bool((((of_rows > 0).sum(-1) == 1) & is_earlier).all())


_WITHOUT_KEY = ("no_key_left", "blocks_everything", "own_key_hidden", "inverted")
"""Rules that start from a query without a key."""


def _leak(attention: Attention) -> float | None:
    """The largest weight that a blocked key has where another one is open; None if no weights are known."""
    if attention.weights is None or attention.allowed is None:
        return None
    allowed = attention.allowed.to(attention.weights.device)
    leaks = attention.weights.nan_to_num(0.0).masked_fill(allowed | ~allowed.any(-1, keepdim=True), 0.0)
    return float(leaks.max()) if leaks.numel() else None


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
    """True if the mask of another sequence, which is inverted, explains what is wrong with this one too."""
    return not any(finding.severity == "error" for finding in lint(case.with_allowed(~case.allowed)))


def _of_the_call(attention: Attention) -> Iterator[Finding]:
    """Yield the findings that the call itself shows, whatever its mask is."""
    cells = torch.ones(attention.shape[2:], dtype=torch.bool)
    yield from (finding_of(attention, remark) for remark in attention.remarks)
    if attention.weights is not None and bool(attention.weights.isnan().any()):
        why = "A weight that is not a number spreads to every token in the next layer."
        mend = "Leave each query at least one key, or give rows without a key weights of zero."
        yield Finding("weights_are_nan", "Weights are NaN", "error", cells, why, mend)


def remarks_on(attentions: Sequence[Attention]) -> tuple[str, ...]:
    """Sentences on what is worth knowing of several attentions and wrong with none."""
    scaled: dict[tuple[str, float, int], list[str]] = {}
    for attention in attentions:
        width = attention.query_shape[-1] if attention.query_shape else 0
        if width and not math.isclose(attention.scale * math.sqrt(width), 1.0, rel_tol=1e-3):
            scaled.setdefault((f"{attention.scale:.3g}", attention.scale, width), []).append(attention.path)
    if not scaled:
        return ()
    (scale, _, width), paths = next(iter(scaled.items()))
    n_others = sum(len(others) for others in scaled.values()) - 1
    others = f" and {n_others} more" if n_others else ""
    return (
        f"The scores of {paths[0]}{others} are scaled otherwise: by {scale} and not by 1 / sqrt({width}) = "
        f"{1 / math.sqrt(width):.3g}; it is as meant if the queries are scaled before, or the model is trained so.",
    )
