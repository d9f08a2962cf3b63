"""What a mask should be: intentions with a name, the cells that they expect, and how a mask differs from them.

No array tells whether it is right; what was meant does. So an intention is chosen, or guessed and said to be a
guess, and everything else is a comparison with it: which cells are open though they should not be, which are
blocked though they should be open, and which other mask this is in fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.mask_tools.intent_kinds import INTENT_KINDS
from model.mask_tools.language import MaskContext, parse
from model.mask_tools.mask_case import Finding, counted


@dataclass(frozen=True)
class Intent:
    """What a mask should be.

    Attributes:
        kind: a name in ``INTENT_KINDS``; ``painted`` expects whatever there is.
        number: the width, length, size or offset that the kind needs.
        documents: whether no query sees into another document.
        padding: whether no query sees padding.
        cache: how many keys stand before query 0, as in a key/value cache; None sets the last query beside the last
            key, or the first beside the first where there are fewer keys than queries.

    Raises:
        ValueError: the kind is unknown, or a number is too small.
    """

    kind: str
    number: int = 0
    documents: bool = False
    padding: bool = False
    cache: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in INTENT_KINDS:
            raise ValueError(f"kind ({self.kind!r}) must be one of: {', '.join(INTENT_KINDS)}")
        least = INTENT_KINDS[self.kind].least
        if INTENT_KINDS[self.kind].number and self.number < least:
            raise ValueError(f"number ({self.number}) of {self.kind} must be at least {least}")
        if self.cache is not None and self.cache < 0:
            raise ValueError(f"cache ({self.cache}) must be at least 0")

    def standing(self, context: MaskContext) -> Intent:
        """The same with ``cache`` as a number, where it makes a difference to these tokens."""
        if not self.follows_position:
            return replace(self, cache=None)
        if context.n_queries == context.n_keys and not self.cache:
            return replace(self, cache=None)
        return replace(self, cache=self._before(context))

    def _before(self, context: MaskContext) -> int:
        return max(0, context.n_keys - context.n_queries) if self.cache is None else self.cache

    @property
    def follows_position(self) -> bool:
        """Whether it depends on how many keys stand before the first query."""
        return INTENT_KINDS[self.kind].follows_position

    @property
    def words(self) -> str:
        """``causal, after 5 keys in the cache, padding ignored``."""
        parts = [INTENT_KINDS[self.kind].words(self.number)]
        if self.cache is not None:
            parts.append(
                f"after {counted('key', self.cache)} in the cache" if self.cache else "from the first key on"
            )
        parts += ["documents isolated"] * self.documents + ["padding ignored"] * self.padding
        return ", ".join(parts)

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
        parts = [INTENT_KINDS[self.kind].expression(self.number, query)]
        parts += ["segment(q) == segment(k)"] * self.documents + ["not is_pad(k)"] * self.padding
        given = [part for part in parts if part]
        return " and ".join(f"({part})" if " or " in part and len(given) > 1 else part for part in given)

    def expected(self, context: MaskContext) -> Tensor | None:
        """The cells that should be open, (Tq, Tk) bool; None where whatever is painted is meant."""
        if self.kind == "painted":
            return None
        expression = self.expression_over(context)
        if not expression:
            return torch.ones(context.n_queries, context.n_keys, dtype=torch.bool)
        return parse(expression).evaluate(context)

    @property
    def hides_later(self) -> bool:
        """Whether no query should see any later token."""
        return self.kind in ("causal", "window")


@dataclass(frozen=True, eq=False)
class Comparison:
    """A mask beside what it should be. Rows of padding queries, which nobody reads, do not count.

    Attributes:
        more: (Tq, Tk) bool, the cells that are open and should not be.
        less: (Tq, Tk) bool, the cells that are blocked and should be open.
        cause: one sentence, which other mask this is; "" where it is none that is known.
        expression: what should be open, as an expression; "" where everything should.
    """

    more: Tensor
    less: Tensor
    cause: str
    expression: str

    @property
    def agrees(self) -> bool:
        """Whether the mask is what it should be."""
        return not bool(self.more.any() or self.less.any())

    @property
    def sentence(self) -> str:
        """``+7 cells, -1: query 3 sees key 4, and query 5 does not see key 2.``"""
        if self.agrees:
            return "Every cell is as it should be."
        n_more, n_less = int(self.more.sum()), int(self.less.sum())
        cells = "cell" if n_more == 1 else "cells"
        first = [
            "query {} {} key {}".format(*_first(marked, verb))
            for marked, verb in ((self.more, "sees"), (self.less, "does not see"))
            if marked.any()
        ]
        return f"+{n_more:,} {cells}, -{n_less:,}: {', and '.join(first)}."


def _first(marked: Tensor, verb: str) -> tuple[int, str, int]:
    query, key = marked.nonzero()[0].tolist()
    return query, verb, key


def compare(intent: Intent, allowed: Tensor, context: MaskContext) -> Comparison:
    """Set a mask, (Tq, Tk) bool, beside what it should be.

    Raises:
        ValueError: the mask and the tokens differ in size.
    """
    size = (context.n_queries, context.n_keys)
    if allowed.shape != size:
        raise ValueError(f"allowed has shape {tuple(allowed.shape)}: it must be {size}")
    expected = intent.expected(context)
    if expected is None:
        expected = allowed
    rows, intent = _read_rows(context), intent.standing(context)
    more, less = allowed & ~expected & rows, expected & ~allowed & rows
    agrees = not bool(more.any() or less.any())
    cause = "" if agrees else _cause(intent, allowed, expected, context)
    return Comparison(more, less, cause, intent.expression_over(context))


def as_finding(intent: Intent, comparison: Comparison, allowed: Tensor) -> Finding | None:
    """The difference as a finding that mends it; None where there is none."""
    if comparison.agrees:
        return None
    cause = f" {comparison.cause}" if comparison.cause else ""
    return Finding(
        rule="not_as_meant",
        title=f"This is not {intent.words}",
        severity="error",
        cells=comparison.more | comparison.less,
        why=f"{comparison.sentence}{cause}",
        mend=f"Allow where {comparison.expression or 'anything'}.",
        mended=(allowed & ~comparison.more) | comparison.less,
    )


def recognise(allowed: Tensor, context: MaskContext) -> Intent | None:
    """The intention that a mask, (Tq, Tk), fulfils to the cell; None where it is none that is known.

    Of several the plainest: documents and padding count only where they make a difference.
    """
    rows = _read_rows(context)
    given = allowed & rows
    for intent in _candidates(given, context):
        expected = intent.expected(context)
        if expected is not None and torch.equal(given, expected & rows):
            return intent
    return None


def guess(allowed: Tensor, context: MaskContext, *, is_decoder: bool) -> Intent:
    """What a mask, (Tq, Tk), was probably meant to be.

    A mask that is one of the usual ones to the cell is taken for it, but padding is always to be ignored, and in a
    decoder nobody means to see everything. Any other is taken for the plain mask of its architecture.
    """
    has_padding = any(context.key_is_padding)
    found = recognise(allowed, context)
    sees_later = found is not None and found.kind in ("bidirectional", "window_both", "cached")
    if found is None or (sees_later and is_decoder and context.n_keys == context.n_queries):
        found = Intent("causal") if is_decoder or _is_mostly_hidden(allowed) else Intent("bidirectional")
    return replace(found, padding=has_padding)


def _is_mostly_hidden(allowed: Tensor) -> bool:
    """Whether most keys that come later are blocked and most that come before are open, as in a causal mask."""
    later, earlier = torch.ones_like(allowed).triu(1), torch.ones_like(allowed).tril(-1)
    n_later, n_earlier = int(later.sum()), int(earlier.sum())
    if not (n_later and n_earlier):
        return False
    return 2 * int((allowed & later).sum()) < n_later and 2 * int((allowed & earlier).sum()) > n_earlier


def _read_rows(context: MaskContext) -> Tensor:
    """(Tq, 1), True for the queries whose rows are read: those that are no padding."""
    return ~torch.tensor(context.query_is_padding, dtype=torch.bool)[:, None]


def _candidates(given: Tensor, context: MaskContext) -> Iterator[Intent]:
    """Every intention that these cells, (Tq, Tk), can fulfil, the plainest first.

    The furthest open cell in each direction leaves one number for each kind.
    """
    query, key = given.nonzero().unbind(-1)
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
    for kind in kinds:
        for isolated in documents:
            for ignored in padding:
                yield replace(kind, documents=isolated, padding=ignored)


def _leading_padding(context: MaskContext) -> int:
    """How many keys before the first token are padding."""
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
    """What the mask is instead, in one sentence."""
    rows = _read_rows(context)
    if torch.equal(allowed & rows, ~expected & rows):
        return "Every cell is the wrong way round: it is inverted."
    if allowed.shape[0] == allowed.shape[1] and torch.equal(allowed.T & rows, expected & rows):
        return "Transposed it would be right: rows and columns are swapped."
    if intent.hides_later and torch.equal(allowed & rows, expected & rows & ~_own(allowed, intent.cache or 0)):
        own = f"q + {intent.cache}" if intent.cache else "q"
        return f"Every query's own key is hidden, k < {own}: off by one."
    for cause, without in _lacks(intent):
        cells = without.expected(context)
        if cells is not None and torch.equal(allowed & rows, cells & rows):
            return cause
    if intent.kind == "causal" and (moved := _moved(intent, allowed, rows, context)):
        return moved
    other = recognise(allowed, context)
    return _of_another(intent, None if other is None else other.standing(context))


def _moved(intent: Intent, allowed: Tensor, rows: Tensor, context: MaskContext) -> str:
    """How far a causal mask has its edge from where it should be; "" where it is none."""
    query, key = (allowed & rows).nonzero().unbind(-1)
    if not len(query):
        return ""
    edge, before = int((key - query).max()), intent.cache or 0
    if edge == before or edge >= context.n_keys - 1:
        return ""
    cells = replace(intent, cache=max(edge, 0)).expected(context)
    if cells is None or not torch.equal(allowed & rows, cells.tril(edge) & rows):
        return ""
    if edge == 0:
        return (
            "It is causal from the first key on, k <= q: query 0 stands beside key 0, not after the "
            f"{counted('key', before)} in the cache."
        )
    count = abs(edge - before)
    off = "one" if count == 1 else str(count)
    keys = f"{off} {'key' if count == 1 else 'keys'} too {'many' if edge > before else 'few'}"
    return f"Every query sees {keys}, k <= q {'+' if edge > 0 else '-'} {abs(edge)}: off by {off}."


def _own(allowed: Tensor, before: int) -> Tensor:
    query, key = torch.meshgrid(torch.arange(allowed.shape[0]), torch.arange(allowed.shape[1]), indexing="ij")
    return key == query + before


def _lacks(intent: Intent) -> Iterator[tuple[str, Intent]]:
    """What of an intention can have been left out, with what is left of it."""
    if intent.documents:
        yield (
            "The documents are not isolated: tokens leak from one into the next.",
            replace(intent, documents=False),
        )
    if intent.padding:
        yield "Padding is not ignored.", replace(intent, padding=False)
    if intent.documents and intent.padding:
        yield "Neither documents nor padding are looked at.", replace(intent, documents=False, padding=False)


def _of_another(intent: Intent, other: Intent | None) -> str:
    if other is None:
        return ""
    if other.kind == intent.kind and INTENT_KINDS[intent.kind].number:
        away = other.number - intent.number
        off = "off by one" if abs(away) == 1 else f"off by {abs(away)}"
        if away == 0 and other.cache != intent.cache:
            return f"It is {other.words}."
        return f"It is {other.words}, not {intent.number}: {off}."
    if intent.kind == "causal" and other.kind == "prefix":
        return f"It is {other.words}: the first {other.number} tokens see each other."
    return f"It is {other.words}."
