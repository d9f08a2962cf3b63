"""Intentions for a mask, each with a name, the cells that they expect, and how a mask differs from them.

No array tells whether it is right; what was meant does. So an intention is said by a person, and everything else is
a comparison with it: which cells are open though they should not be, which are blocked though they should be open,
and which other mask this is in fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from headlight.masks.intent_kinds import CELLS_OF_THEIR_OWN, INTENT_KINDS
from headlight.masks.language import MaskContext, parse, position
from headlight.masks.mask_case import Finding, counted
from model.texts import texts_of

say = texts_of(__name__)


@dataclass(frozen=True)
class Intent:
    """The intention behind a mask: what it should be.

    Attributes:
        kind: a name in ``INTENT_KINDS``.
        number: the width, length, size or offset that the kind needs.
        documents: whether no query sees into another document.
        padding: whether no query sees padding.
        cache: how many keys stand before query 0, as in a key/value cache; None sets the last query beside the last
            key, or the first beside the first where there are fewer keys than queries.
        condition: of the kind ``expression``, what should hold of an open cell.

    Raises:
        ValueError: the kind is unknown, a number is too small, or the condition is none.
    """

    kind: str
    number: int = 0
    documents: bool = False
    padding: bool = False
    cache: int | None = None
    condition: str = ""

    def __post_init__(self) -> None:
        if self.kind not in INTENT_KINDS:
            raise ValueError(f"kind ({self.kind!r}) must be one of: {', '.join(INTENT_KINDS)}")
        least = INTENT_KINDS[self.kind].least
        if INTENT_KINDS[self.kind].number and self.number < least:
            raise ValueError(f"number ({self.number}) of {self.kind} must be at least {least}")
        if self.cache is not None and self.cache < 0:
            raise ValueError(f"cache ({self.cache}) must be at least 0")
        if self.kind == "expression":
            parse(self.condition)

    def standing(self, context: MaskContext) -> Intent:
        """The same with ``cache`` as a number, where it makes a difference to these tokens."""
        if not self.follows_position:
            return replace(self, cache=None)
        if context.n_queries == context.n_keys and not self.cache:
            return replace(self, cache=None)
        before = max(0, context.n_keys - context.n_queries)
        return self if self.cache is not None else replace(self, cache=before)

    @property
    def follows_position(self) -> bool:
        """True if it depends on how many keys stand before the first query."""
        return INTENT_KINDS[self.kind].follows_position

    @property
    def words(self) -> str:
        """``causal, after 5 keys in the cache, padding ignored``."""
        at = "" if self.cache is None else say("in_cache", keys=counted("key", self.cache))
        return self._said(say("from_first_key") if self.cache == 0 else at)

    def words_over(self, context: MaskContext) -> str:
        """``causal, bottom-right aligned, window 5 (itself and 4 before)``, over some tokens."""
        cache = self.standing(context).cache
        more = context.n_keys - context.n_queries
        at = "" if cache is None else say("past_length", cache=cache)
        if cache is not None and cache in (0, more):
            at = say("bottom_right") if cache else say("top_left")
        return self._said(at)

    def _said(self, at: str) -> str:
        of_kind = INTENT_KINDS[self.kind].words(self.number, at)
        said = say("open_where", condition=self.condition) if self.condition else of_kind
        return ", ".join([said, *[say("documents")] * self.documents, *[say("padding")] * self.padding])

    def expression_over(self, context: MaskContext) -> str:
        """The cells that are open over some tokens, as an expression; "" where all are.

        A prefix is counted from the first token: padding before it does not count.
        """
        n_before = _leading_padding(context) if self.kind == "prefix" else 0
        return replace(self.standing(context), number=self.number + n_before).expression

    @property
    def expression(self) -> str:
        """The cells that are open, as an expression; "" where all are. Without a ``cache``, query 0 is at key 0."""
        query = f"q + {self.cache}" if self.cache else "q"
        of_kind = INTENT_KINDS[self.kind].expression.format(n=self.number, q=query)
        of_kind = of_kind.replace("(q)", "q")  # a position alone needs no brackets
        parts = [self.condition or of_kind]
        parts += ["segment(q) == segment(k)"] * self.documents + ["not is_pad(k)"] * self.padding
        said = [part for part in parts if part]
        return " and ".join(f"({part})" if " or " in part and len(said) > 1 else part for part in said)

    def expected(self, context: MaskContext) -> Tensor | None:
        """The cells that should be open, (Tq, Tk) bool; None where they are given and not said.

        Raises:
            MaskExpressionError: the condition cannot be worked out over these tokens.
        """
        if self.kind in CELLS_OF_THEIR_OWN:
            return None
        expression = self.expression_over(context)
        if not expression:
            return torch.ones(context.n_queries, context.n_keys, dtype=torch.bool)
        return parse(expression).evaluate(context)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A mask beside what it should be. Rows of padding queries, which nobody reads, do not count.

    Attributes:
        more: (Tq, Tk) bool, the cells that are open and should not be.
        less: (Tq, Tk) bool, the cells that are blocked and should be open.
        cause: one sentence, which other mask this is; "" where it is none that is known.
        expression: what should be open, as an expression; "" where everything should, or cells were given.
        words: what it should be.
    """

    more: Tensor
    less: Tensor
    cause: str
    expression: str
    words: str

    @property
    def agrees(self) -> bool:
        """True if the mask is what it should be."""
        return not bool(self.more.any() or self.less.any())

    @property
    def sentence(self) -> str:
        """``7 cells open that should be blocked: query 3 sees key 4. 1 cell blocked that should be open: ...``"""
        if self.agrees:
            return say("agrees")
        more, less = self.more.nonzero(), self.less.nonzero()
        said = [say("more", cells=len(more), query=q, key=k) for q, k in more[:1].tolist()]
        return " ".join(said + [say("less", cells=len(less), query=q, key=k) for q, k in less[:1].tolist()])


def compare(intent: Intent, allowed: Tensor, context: MaskContext, cells: Tensor | None = None) -> Comparison:
    """Set a mask, (Tq, Tk) bool, beside what it should be.

    Where there are fewer keys than queries, and as many queries for each, a key can be a token or a block of
    tokens, which a query may see where it may see all that the block holds: the nearer one is compared with.

    Args:
        intent: what it should be.
        allowed: the mask.
        context: its tokens.
        cells: (Tq, Tk) bool, what should be open, for an intention whose cells are given; where an axis has one
            entry, it is for all.

    Raises:
        ValueError: the mask and the tokens, or the mask and the cells, differ in size.
    """
    size = (context.n_queries, context.n_keys)
    if tuple(allowed.shape) != size:
        raise ValueError(f"allowed has shape {tuple(allowed.shape)}: it must be {size}")
    rows, words = _read_rows(context), intent.words_over(context)
    expected = intent.expected(context)
    in_blocks, cause, expression = expected_of_blocks(intent, context), "", ""
    if expected is None:
        expected = allowed if cells is None else _spread(cells, size)
    elif in_blocks is not None and int((in_blocks ^ allowed).sum()) < int((expected ^ allowed).sum()):
        words, cause = say("in_blocks", words=intent.words, size=size[0] // size[1]), say("seen_blocks")
        expected = in_blocks
    else:
        expression = intent.expression_over(context)
        if bool(((allowed ^ expected) & rows).any()):
            cause = _cause(intent.standing(context), allowed, expected, context)
    return Comparison(allowed & ~expected & rows, expected & ~allowed & rows, cause, expression, words)


def _spread(cells: Tensor, size: tuple[int, int]) -> Tensor:
    if any(actual not in (1, wanted) for actual, wanted in zip(cells.shape, size, strict=True)):
        actual, wanted = (" queries by ".join(map(str, one)) for one in (tuple(cells.shape), size))
        raise ValueError(f"the mask has {wanted} keys, and what it should be has {actual} keys")
    return cells.expand(size)


def expected_of_blocks(intent: Intent, context: MaskContext) -> Tensor | None:
    """Return the cells that are expected of keys that are blocks of tokens, (Tq, Tk); None where they cannot be."""
    n_queries, n_keys = context.n_queries, context.n_keys
    has_facts = intent.documents or intent.padding or intent.kind == "expression"
    if has_facts or intent.cache or not 1 < n_keys < n_queries or n_queries % n_keys:
        return None
    expected = replace(intent, cache=None).expected(plain_context(n_queries, n_queries))
    return None if expected is None else expected.view(n_queries, n_keys, -1).all(-1)


def as_finding(comparison: Comparison, allowed: Tensor) -> Finding | None:
    """The difference as a finding, with the mask that was meant; None where there is none."""
    if comparison.agrees:
        return None
    return Finding(
        rule="not_as_meant",
        title=say("not_as_meant", words=comparison.words),
        severity="error",
        cells=comparison.more | comparison.less,
        why=f"{comparison.sentence} {comparison.cause}".rstrip(),
        mend=say("should_be_open", expression=comparison.expression) if comparison.expression else "",
        mended=(allowed & ~comparison.more) | comparison.less,
    )


def plain_context(n_queries: int, n_keys: int) -> MaskContext:
    """Tokens of which nothing is known but how many there are."""
    queries, keys = (0,) * n_queries, (0,) * n_keys
    return MaskContext(queries, keys, (False,) * n_queries, (False,) * n_keys, queries, keys)


def recognise(allowed: Tensor, context: MaskContext) -> Intent | None:
    """The intention that a mask, (Tq, Tk), fulfils to the cell; None where it is none that is known.

    Of several the plainest: documents and padding count only where they make a difference.
    """
    rows = _read_rows(context)
    open_cells = allowed & rows
    for intent in _candidates(open_cells, context):
        expected = intent.expected(context)
        if expected is not None and torch.equal(open_cells, expected & rows):
            return intent
    return None


def _read_rows(context: MaskContext) -> Tensor:
    """(Tq, 1), True for the queries whose rows are read: those that are no padding."""
    return ~torch.tensor(context.query_is_padding, dtype=torch.bool)[:, None]


def _candidates(open_cells: Tensor, context: MaskContext) -> Iterator[Intent]:
    """Every intention that these cells, (Tq, Tk), can fulfil, the plainest first.

    The furthest open cell in each direction leaves one number for each kind.
    """
    query, key = open_cells.nonzero().unbind(-1)
    if not len(query):
        return
    before = max(0, context.n_keys - context.n_queries)
    n_padding = _leading_padding(context)
    kinds = list(_kinds_at(query + before, key, None, n_padding))
    if before:
        kinds += list(_kinds_at(query, key, 0, n_padding))
    kinds.append(Intent("cached", max(1, int((key - query).max()))))
    documents = (False, True) if len(set(context.key_segments)) > 1 else (False,)
    padding = (False, True) if any(context.key_is_padding) else (False,)
    for kind, isolated, ignored in product(kinds, documents, padding):
        yield replace(kind, documents=isolated, padding=ignored)


def _leading_padding(context: MaskContext) -> int:
    """Count the padding keys before the first token."""
    pads = context.key_is_padding
    return pads.index(False) if False in pads else len(pads)


def _kinds_at(position: Tensor, key: Tensor, cache: int | None, n_padding: int) -> Iterator[Intent]:
    """The kinds that open cells can be of.

    ``position`` is where their queries stand among the keys, of which the first ``n_padding`` are padding.
    """
    back, ahead = int((position - key).max()), int((key - position).max())
    seen_early = int(torch.where(key > position, key, 0).max())
    first_row = int(key[position == position.min()].max())
    yield Intent("causal", cache=cache)
    yield Intent("bidirectional")
    yield Intent("window", max(1, back + 1), cache=cache)
    yield Intent("window_both", max(back, ahead, 0) + 1, cache=cache)
    yield Intent("prefix", max(0, seen_early + 1 - n_padding), cache=cache)
    yield Intent("block_causal", first_row + 1, cache=cache)


def _cause(intent: Intent, allowed: Tensor, expected: Tensor, context: MaskContext) -> str:
    """Say in one sentence what the mask is instead."""
    rows = _read_rows(context)
    if not bool((allowed & rows).any()):
        return say("blocks_everything")
    if torch.equal(allowed & rows, ~expected & rows):
        return say("inverted")
    if allowed.shape[0] == allowed.shape[1] and torch.equal(allowed.T & rows, expected & rows):
        return say("transposed")
    for cause, without in _lacks(intent):
        cells = without.expected(context)
        if cells is not None and torch.equal(allowed & rows, cells & rows):
            return cause
    if intent.kind in ("causal", "window") and (moved := _moved(intent, allowed, rows, context)):
        return moved
    other = recognise(allowed, context)
    return _of_another(intent, other, context)


def _moved(intent: Intent, allowed: Tensor, rows: Tensor, context: MaskContext) -> str:
    """Say how far a causal mask has its edge from where it should be; "" where it is none."""
    query, key = (allowed & rows).nonzero().unbind(-1)
    edge, before = int((key - query).max()), intent.cache or 0
    if edge == before or edge >= context.n_keys - 1 or (edge > before and intent.kind != "causal"):
        return ""
    at_edge = replace(intent, cache=max(edge, before)).expected(context)
    if at_edge is None or not torch.equal(allowed & rows, at_edge.tril(edge) & rows):
        return ""
    last = context.n_keys - context.n_queries
    if last and {edge, before} == {0, last}:
        return say("from_top_left") if edge == 0 else say("from_bottom_right", edge=position(last))
    if edge == before - 1:
        return say("own_key_hidden", edge=position(edge))
    if edge == before + 1:
        return say("one_key_too_many", edge=position(edge))
    if edge < before:
        return say("keys_too_few", off=before - edge, edge=position(edge))
    return say("keys_too_many", off=edge - before, edge=position(edge))


def _lacks(intent: Intent) -> Iterator[tuple[str, Intent]]:
    """Yield each part of an intention that can have been left out, with what is left of it."""
    if intent.documents:
        yield say("documents_leak"), replace(intent, documents=False)
    if intent.padding:
        yield say("padding_seen"), replace(intent, padding=False)
    if intent.documents and intent.padding:
        yield say("documents_and_padding_seen"), replace(intent, documents=False, padding=False)


def _of_another(intent: Intent, other: Intent | None, context: MaskContext) -> str:
    if other is None:
        return ""
    words = other.words_over(context)
    if other.kind == intent.kind and INTENT_KINDS[intent.kind].number:
        away = other.number - intent.number
        if away:
            return say("off_by", words=words, number=intent.number, away="one" if abs(away) == 1 else abs(away))
    elif intent.kind == "causal" and other.kind == "prefix":
        return say("prefix_seen", words=words, number=other.number)
    return say("other", words=words)
