"""From cells to an expression, where they are those of a named kind of mask or of a few kinds together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import and_, or_

import torch
from torch import Tensor

from headlight.masks.language.context import MaskContext

_MOST_WALLS, _MOST_DOORS = 4, 3
_LONGEST_BLOCK = 16
"""The longest block or stride that is looked for."""

_Condition = tuple[str, Tensor]
"""A part of an expression, and the cells where it holds, broadcastable to (Tq, Tk) bool."""


def express(allowed: Tensor, context: MaskContext) -> str:
    """An expression whose cells are exactly these: ``wall and wall and (door or door)``.

    Walls and doors are of the named kinds: causal, windows, prefixes, padding, documents, equal tokens, blocks,
    strides. Every allowed cell keeps to all walls, and each door opens allowed cells alone.

    Args:
        allowed: (Tq, Tk) bool, True = may attend.
        context: the facts about the Tq queries and the Tk keys.

    Returns:
        The expression; "" for cells that are no such combination.

    Raises:
        ValueError: ``allowed`` is not boolean, or not (Tq, Tk).
    """
    size = (context.n_queries, context.n_keys)
    if allowed.dtype is not torch.bool or allowed.shape != size:
        raise ValueError(
            f"allowed is {allowed.dtype} {tuple(allowed.shape)}: it must be boolean and (Tq, Tk) = {size}"
        )
    if allowed.all():
        return "True"
    if not allowed.any():
        return "False"
    return _joined(allowed, context, []) or _joined(allowed, context, list(_of_blocks(*size)))


def _joined(allowed: Tensor, context: MaskContext, of_blocks: list[_Condition]) -> str:
    """The expression of walls and doors; "" where they do not lead to these cells.

    Args:
        allowed: (Tq, Tk) bool.
        context: the facts about the queries and the keys.
        of_blocks: what may take part beside the best known kinds.
    """
    everywhere, nowhere = torch.ones_like(allowed), torch.zeros_like(allowed)

    def doors_within(walls: list[_Condition]) -> list[_Condition] | None:
        """Return the doors that have to open beside the walls; None where no doors do it."""
        left = _all(walls, and_, everywhere)
        blocked = left & ~allowed
        if not blocked.any():
            return []
        offered = [*_plain(context, lambda number: int(number[blocked].min())), *of_blocks]
        doors = _useful([door for door in offered if not (blocked & door[1]).any()], or_, nowhere)
        return _needed(doors, lambda conditions: torch.equal(left & _all(conditions, or_, nowhere), allowed))

    offered = [*_plain(context, lambda number: int(number[allowed].max()) + 1), *_but_for_keys(allowed), *of_blocks]
    walls = _useful([wall for wall in offered if not (allowed & ~wall[1]).any()], and_, everywhere)
    doors = doors_within(walls)
    if doors is None:
        return ""
    for wall in reversed(walls):
        others = [other for other in walls if other is not wall]
        found = doors_within(others)
        if found is not None and len(found) <= len(doors):
            walls, doors = others, found
    if len(walls) > _MOST_WALLS or len(doors) > _MOST_DOORS:
        return ""
    entrance = " or ".join(text for text, _ in doors)
    parts = [*(text for text, _ in walls), f"({entrance})" if walls and len(doors) > 1 else entrance]
    said = " and ".join(part for part in parts if part)
    return said.replace("abs(q - k) <", "q - k <") if said.startswith("k <= q and ") else said


def _useful(
    conditions: Iterable[_Condition], join: Callable[[Tensor, Tensor], Tensor], start: Tensor
) -> list[_Condition]:
    """The conditions that change something beside those before them."""
    useful, joined = [], start
    for text, cells in conditions:
        if not torch.equal(changed := join(joined, cells), joined):
            useful.append((text, cells))
            joined = changed
    return useful


def _needed(conditions: list[_Condition], is_enough: Callable[[list[_Condition]], bool]) -> list[_Condition] | None:
    """The conditions without those that the others do without, least known first; None where all are not enough."""
    if not is_enough(conditions):
        return None
    for condition in reversed(conditions):
        others = [other for other in conditions if other is not condition]
        if is_enough(others):
            conditions = others
    return conditions


def _all(conditions: Iterable[_Condition], join: Callable[[Tensor, Tensor], Tensor], start: Tensor) -> Tensor:
    return reduce(join, (cells for _, cells in conditions), start)


def _plain(context: MaskContext, bound: Callable[[Tensor], int]) -> Iterator[_Condition]:
    """The best known kinds.

    Args:
        context: the facts about the queries and the keys.
        bound: for a number of each cell, (Tq, Tk), what it has to be below.
    """
    facts = context.facts()
    q, k = (facts[name].expand(context.n_queries, context.n_keys) for name in "qk")
    if context.n_queries > 1:
        yield from _kept_below(bound, _DISTANCES, q, k)
    yield "not is_pad(k)", ~facts["key_is_padding"]
    yield "segment(q) == segment(k)", facts["query_segment"] == facts["key_segment"]
    yield "same_token", facts["query_token"] == facts["key_token"]
    yield "not same_token", facts["query_token"] != facts["key_token"]
    yield "k != q", k != q
    yield "not is_pad(q)", ~facts["query_is_padding"]
    yield from _kept_below(bound, _POSITIONS, q, k)


def _but_for_keys(allowed: Tensor) -> list[_Condition]:
    """The keys that no query sees, where they are few."""
    hidden = (~allowed.any(0)).nonzero().flatten().tolist()
    keys = torch.arange(allowed.shape[1])
    return [(f"k != {n}", keys != n) for n in hidden] if len(hidden) <= _MOST_WALLS else []


_Numbers = tuple[tuple[Callable[[Tensor, Tensor], Tensor], Callable[[int], str]], ...]


def _kept_below(bound: Callable[[Tensor], int], numbers: _Numbers, q: Tensor, k: Tensor) -> Iterator[_Condition]:
    for number_of, write in numbers:
        number = number_of(q, k)
        limit = bound(number)
        yield write(limit), number < limit


def position(number: int) -> str:
    """The position that is so many after the query's: ``q + 2``, ``q - 1``, ``q``."""
    return f"q {'+' if number > 0 else '-'} {abs(number)}" if number else "q"


_DISTANCES: _Numbers = (
    (lambda q, k: k - q, lambda n: f"k <= {position(n - 1)}" if n else "k < q"),
    (lambda q, k: (q - k).abs(), lambda n: f"abs(q - k) < {n}" if n != 1 else "k == q"),
    (lambda q, k: q - k, lambda n: f"q - k < {n}" if n > 1 else f"k >= {position(1 - n)}" if n else "k > q"),
)
_POSITIONS: _Numbers = (
    (lambda q, k: k, lambda n: f"k < {n}" if n != 1 else "k == 0"),
    (lambda q, k: -k, lambda n: f"k >= {1 - n}"),
    (lambda q, k: q, lambda n: f"q < {n}" if n != 1 else "q == 0"),
    (lambda q, k: -q, lambda n: f"q >= {1 - n}"),
)
"""A number of a query and a key that is kept below n, and how that is written."""


def _of_blocks(n_queries: int, n_keys: int) -> Iterator[_Condition]:
    """The kinds that repeat every n positions."""
    q, k = torch.arange(n_queries)[:, None], torch.arange(n_keys)
    for n in range(2, min(max(n_queries, n_keys), _LONGEST_BLOCK + 1)):
        yield f"q // {n} == k // {n}", q // n == k // n
        yield f"k // {n} <= q // {n}", k // n <= q // n
        yield f"(q - k) % {n} == 0", q % n == k % n
        yield f"k % {n} == {n - 1}", k % n == n - 1
        yield f"k % {n} == 0", k % n == 0
        yield f"abs(q // {n} - k // {n}) < 2", (q // n - k // n).abs() < 2
