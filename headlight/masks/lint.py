"""Findings about a mask whose intention is known in part: what is wrong with it, and why it matters.

Three faults can be read off the cells: a real query without a key, a visible padding key, a visible future key. A
mask is called inverted, transposed and so on only where that explains such a fault and the other mask is rid of
it, so that a mask without a fault is never taken for another one. ``RULES`` is in the order of suspicion, and
``EXPLAINS`` says which findings follow from another one and go unsaid beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from headlight.masks.language import position
from headlight.masks.mask_case import SEVERITIES, Finding, MaskCase, Role, Severity, named
from model.texts import listed, texts_of

say = texts_of(__name__)

__all__ = ["EXPLAINS", "RULES", "SEVERITIES", "Finding", "MaskCase", "Severity", "lint"]


def lint(case: MaskCase) -> tuple[Finding, ...]:
    """Everything that ``RULES`` find, without what another finding explains; most severe first."""
    found: list[Finding] = []
    explained: set[str] = set()
    for name, rule in RULES.items():
        finding = None if name in explained else rule(case)
        if finding is not None:
            found.append(finding)
            explained |= EXPLAINS.get(name, frozenset())
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


Rule = Callable[[MaskCase], Finding | None]

_RULES: dict[str, Rule] = {}


class Match(NamedTuple):
    """Something that a rule found.

    Attributes:
        cells: (Tq, Tk) bool, the cells that it is about; none where there is nothing to know.
        why: one sentence, why it matters.
        mend: one line, how to mend it.
        severity: how much it matters; None for that of the rule.
    """

    cells: Tensor
    why: str
    mend: str
    severity: Severity | None = None


def _rule(severity: Severity, title: str) -> Callable[[Callable[[MaskCase], Match | None]], Rule]:
    """Make a rule of a function, the next in the order of suspicion, under the function's name."""

    def register(find: Callable[[MaskCase], Match | None]) -> Rule:
        def rule(case: MaskCase) -> Finding | None:
            match = find(case)
            if match is None or not match.cells.any():
                return None
            return Finding(find.__name__, title, match.severity or severity, match.cells, match.why, match.mend)

        return _RULES.setdefault(find.__name__, rule)

    return register


# Faults: cells that are wrong whatever the mask was meant to be.


def _without_key(case: MaskCase) -> Tensor:
    """The rows of real queries that see no key."""
    return (case.real & ~case.allowed.any(-1, keepdim=True)).expand_as(case.allowed)


def _visible_padding(case: MaskCase) -> Tensor:
    return case.allowed & case.real & case.key_is_padding


def _visible_future(case: MaskCase) -> Tensor:
    return case.allowed & case.tokens & case.future


_FAULTS: Mapping[str, tuple[Callable[[MaskCase], Tensor], str]] = {
    "no_key_left": (_without_key, say("no_key_left_said")),
    "visible_padding": (_visible_padding, say("visible_padding_said")),
    "visible_future": (_visible_future, say("visible_future_said")),
}


def _faults(case: MaskCase) -> frozenset[str]:
    return frozenset(name for name, (cells, _) in _FAULTS.items() if cells(case).any())


def _faulty_cells(case: MaskCase) -> Tensor:
    return torch.stack([cells(case) for cells, _ in _FAULTS.values()]).any(0)


def _said(faults: frozenset[str]) -> str:
    """``padding can be seen and later keys can be seen``."""
    return listed([said for name, (_, said) in _FAULTS.items() if name in faults])


# Rules that explain faults by how the mask was made, most specific first.


@_rule("error", say("own_key_hidden"))
def own_key_hidden(case: MaskCase) -> Match | None:
    """Strictly causal, k < q: earlier keys without the query's own, so that a first query is left with none."""
    visible, keyless = case.allowed & case.tokens, _without_key(case).any(-1)
    strictly = bool(visible.any()) and not bool((visible & ~case.reaching(-1)).any())
    some = bool(keyless.any()) and 2 * int(keyless.sum()) <= int(case.real.sum())
    if not (case.is_square and strictly and some):
        return None
    why = say("own_key_hidden_why", queries=named("query", keyless))
    return Match(case.own & case.tokens, why, say("own_key_hidden_mend"))


@_rule("error", say("inverted"))
def inverted(case: MaskCase) -> Match | None:
    """Blocked cells given as allowed ones."""
    turned = case.with_allowed(~case.allowed)
    if case.is_square:
        likely = _hides_every_own_key(case) and not _leans_ahead(turned)
    else:
        likely = _shows_only_what_must_be_blocked(case)
    if not likely:
        return None
    before, after = _faults(case), _faults(turned)
    mends = after < before or "visible_future" in before - after
    if not (mends and after <= {"visible_padding"}):
        return None
    why = say("inverted_why", faults=_said(before - after))
    return Match(_faulty_cells(case), why, say("inverted_mend"))


def _hides_every_own_key(case: MaskCase) -> bool:
    """True if no real query sees its own key, and the blocked cells are more than just those."""
    own, real = case.own, case.real
    return not bool((case.allowed & own & real).any()) and bool((~case.allowed & ~own & real).any())


def _shows_only_what_must_be_blocked(case: MaskCase) -> bool:
    return not bool((case.allowed & case.real & ~case.must_block).any())


@_rule("error", say("transposed"))
def transposed(case: MaskCase) -> Match | None:
    """Keys as rows and queries as columns."""
    if not (case.is_square and _leans_ahead(case)):
        return None
    flipped = case.with_allowed(case.allowed.T)
    before, after = _faults(case), _faults(flipped)
    mends = (
        "visible_future" in before and after <= {"visible_padding"}
        if case.causal
        else "visible_padding" in before and not after
    )
    if not mends:
        return None
    why = say("transposed_why", faults=_said(before - after))
    return Match(case.allowed != flipped.allowed, why, say("transposed_mend"))


def _leans_ahead(case: MaskCase) -> bool:
    """True if tokens see more later tokens than earlier ones, as no mask in common use lets them."""
    visible = case.allowed & case.tokens
    return bool(visible.triu(1).sum() > visible.tril(-1).sum())


@_rule("error", say("padding_on_queries"))
def padding_on_queries(case: MaskCase) -> Match | None:
    """The rows of padding queries blocked in place of the columns of padding keys."""
    rows, visible = case.query_is_padding, _visible_padding(case)
    if not (rows.any() and visible.any()) or case.allowed[rows].any():
        return None
    queries, keys = _padding_named("query", rows), _padding_named("key", visible.any(0))
    why = say("padding_on_queries_why", queries=queries, keys=keys)
    return Match(visible | rows[:, None], why, say("padding_on_queries_mend"))


@_rule("error", say("one_key_too_many"))
def one_key_too_many(case: MaskCase) -> Match | None:
    """Causal but for one diagonal: each query also sees the key after its own, and no later one."""
    edge, ahead = case.offset, case.tokens & case.future
    too_many = ahead & case.diagonal(edge + 1)
    seen = _visible_future(case)
    if not (int(too_many.sum()) > 1 and torch.equal(seen, too_many)):
        return None
    right, wrong = f"k <= {position(edge)}", f"k <= {position(edge + 1)}"
    mend = say("one_key_too_many_mend", right=right, wrong=wrong, edge=edge, next=edge + 1)
    return Match(seen, say("one_key_too_many_why"), mend)


@_rule("warning", say("aligned_top_left"))
def aligned_top_left(case: MaskCase) -> Match | None:
    """Causal from the first key on, though there are more keys than queries."""
    last = case.n_keys - case.n_queries
    hidden = case.tokens & case.reaching(last) & ~case.allowed
    if not (case.causal and last > 0 and hidden.any() and _is_causal(case, 0)):
        return None
    mend = say("aligned_top_left_mend", edge=f"k <= {position(last)}", n_queries=case.n_queries, n_keys=case.n_keys)
    return Match(hidden, say("aligned_top_left_why", last=last), mend)


@_rule("error", say("aligned_bottom_right"))
def aligned_bottom_right(case: MaskCase) -> Match | None:
    """Causal up to the last key, though there are fewer keys than queries."""
    last = case.n_keys - case.n_queries
    hidden = case.tokens & case.reaching(0) & ~case.allowed
    if not (case.causal and last < 0 and _without_key(case).any() and hidden.any() and _is_causal(case, last)):
        return None
    why = say("aligned_bottom_right_why", queries=_rows_named(case))
    return Match(hidden, why, say("aligned_bottom_right_mend"))


def _is_causal(case: MaskCase, last: int) -> bool:
    """True if the tokens see exactly the keys up to ``last`` after their own number."""
    return torch.equal(case.allowed & case.tokens, case.reaching(last) & case.tokens)


# Rules that name the faults themselves.


@_rule("error", say("blocks_everything"))
def blocks_everything(case: MaskCase) -> Match | None:
    """No real query, of several, sees any key."""
    real = case.real
    if int(real.sum()) < 2 or bool((case.allowed & real).any()):
        return None
    why = say("blocks_everything_why", softmax=_softmax_without_key(case))
    return Match(_without_key(case), why, say("blocks_everything_mend"))


@_rule("error", say("no_key_left"))
def no_key_left(case: MaskCase) -> Match | None:
    """A real query sees no key."""
    cells = _without_key(case)
    may_see_one = bool(case.may_open[cells.any(-1)].any(-1).all())
    mend = say("all_blocked_mend") if not may_see_one else say("no_key_left_mend")
    why = say("no_key_left_why", queries=_rows_named(case), softmax=_softmax_without_key(case))
    return Match(cells, why, mend)


@_rule("error", say("visible_padding"))
def visible_padding(case: MaskCase) -> Match | None:
    """A real query sees a padding key."""
    cells = _visible_padding(case)
    why = say("visible_padding_why", keys=_padding_named("key", cells.any(0)))
    return Match(cells, why, say("visible_padding_mend"))


@_rule("error", say("visible_future"))
def visible_future(case: MaskCase) -> Match | None:
    """A real query of a causal model sees a later token."""
    cells = _visible_future(case)
    why = say("visible_future_why", queries=named("query", cells.any(-1)))
    return Match(cells, why, say("visible_future_mend", edge=f"k <= {position(case.offset)}", offset=case.offset))


def _rows_named(case: MaskCase) -> str:
    """The real queries that have no key left."""
    return named("query", _without_key(case).any(-1))


def _padding_named(role: Role, marked: Tensor) -> str:
    return f"padding {named(role, marked)}"


def _softmax_without_key(case: MaskCase) -> str:
    """Say what PyTorch makes of a row without a key; measured with nn.MultiheadAttention in evaluation mode."""
    if case.fill is not None and float(stored_fill(case)) > -math.inf:
        return say("softmax_leaks", fill=case.fill)
    return say("softmax_nan")


# Rules about the number that stands for a blocked cell.


@_rule("error", say("fill_overflows"))
def fill_overflows(case: MaskCase) -> Match | None:
    """The fill is a number that the type of the scores cannot hold, such as -1e9 in float16."""
    blocked = ~case.allowed
    if not blocked.any() or case.fill in (None, -math.inf) or float(stored_fill(case)) > -math.inf:
        return None
    name, lowest = _type_name(case), torch.finfo(case.number_type).min
    why = say("fill_overflows_why", fill=case.fill, name=name, lowest=lowest)
    mend = say("fill_overflows_mend", lowest=lowest, name=name)
    return Match(blocked, why, mend, "error" if blocked.all(-1).any() else "warning")


@_rule("error", say("fill_leaks"))
def fill_leaks(case: MaskCase) -> Match | None:
    """The fill is not low enough for the softmax to give a blocked key exactly zero."""
    blocked, weight = ~case.allowed, _blocked_weight(case)
    if not blocked.any() or weight == 0.0:
        return None
    name, limits = _type_name(case), torch.finfo(case.number_type)
    why = say("fill_leaks_why", fill=case.fill, weight=weight, name=name, largest_score=case.largest_score)
    mend = say("fill_leaks_mend", lowest=limits.min, name=name)
    return Match(blocked, why, mend, "error" if weight >= limits.eps else "warning")


def stored_fill(case: MaskCase) -> Tensor:
    """The fill, (), as the type of the scores holds it."""
    return torch.tensor(-math.inf if case.fill is None else case.fill, dtype=case.number_type)


def _blocked_weight(case: MaskCase) -> float:
    """The most weight that a blocked key can keep beside one allowed key.

    The fill is added to its score, as PyTorch does with a float mask, and the two scores are as far apart as they
    can be. Put in place of the score, the fill leaves no more than that.
    """
    highest = torch.finfo(case.number_type).max
    reach = min(case.largest_score, highest)
    allowed_key, blocked_key = torch.tensor([-reach, reach], dtype=case.number_type)
    row = torch.stack([allowed_key, blocked_key + stored_fill(case)]).clamp(max=highest)
    return row.softmax(-1)[1].item()


def _type_name(case: MaskCase) -> str:
    return str(case.number_type).removeprefix("torch.")


# Rules about what may well be meant.


@_rule("note", say("padding_query_without_key"))
def padding_query_without_key(case: MaskCase) -> Match | None:
    """A padding query sees no key, as the first ones of a left-padded causal batch do."""
    rows = case.query_is_padding & ~case.allowed.any(-1)
    queries = _padding_named("query", rows)
    why = say("padding_query_without_key_why", queries=queries, softmax=_softmax_without_key(case))
    return Match(rows[:, None].expand_as(case.allowed), why, say("padding_query_without_key_mend"))


@_rule("note", say("dead_key"))
def dead_key(case: MaskCase) -> Match | None:
    """A real key that no real query sees, though one with other keys may."""
    seen = (case.allowed & case.real).any(0)
    could_see = case.tokens & ~case.future
    has_keys = could_see & case.allowed.any(-1, keepdim=True)
    dead = has_keys.any(0) & ~seen
    why = say("dead_key_why", keys=named("key", dead))
    return Match(could_see & dead, why, say("dead_key_mend"))


@_rule("note", say("blocks_nothing"))
def blocks_nothing(case: MaskCase) -> Match | None:
    """Everything is allowed, although there are padding or later keys to block."""
    expected = case.must_block & case.allowed.all()
    return Match(expected, say("blocks_nothing_why"), say("blocks_nothing_mend"))


RULES: Mapping[str, Rule] = _RULES
"""Every rule by name. A rule stands alone; ``lint`` asks them in this order."""

_ABOUT_CELLS = frozenset(RULES) - {"fill_overflows", "fill_leaks"}

EXPLAINS: Mapping[str, frozenset[str]] = {
    # A mask that nobody meant: what else its cells show would be said of the wrong mask.
    "inverted": _ABOUT_CELLS,
    "transposed": _ABOUT_CELLS,
    # One cause, said once.
    "own_key_hidden": frozenset({"inverted", "no_key_left", "dead_key"}),
    "padding_on_queries": frozenset({"visible_padding", "padding_query_without_key"}),
    "one_key_too_many": frozenset({"visible_future"}),
    "aligned_top_left": frozenset({"dead_key"}),
    "aligned_bottom_right": frozenset({"no_key_left"}),
    "blocks_everything": frozenset({"no_key_left", "padding_query_without_key"}),
}
"""The rules, among those further down, that are not asked once a rule has found their cause."""
