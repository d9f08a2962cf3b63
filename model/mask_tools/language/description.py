"""From cells to an expression: the shortest of those that can be found, and always exactly these cells."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from torch import Tensor

from model.mask_tools.language.context import MaskContext
from model.mask_tools.language.exceptions import spelled_out
from model.mask_tools.language.measures import Grid, Measure, Run, grids_of, runs_of
from model.mask_tools.language.spelling import LONGEST

_MOST_WEIGHED = 48
_MOST_JOINED = 8
_PLAIN = 30
"""An expression that costs no more than this is not worth looking for another."""
_SHORT = 60
"""One that costs no more than this is not worth looking for one that is wrong at some cells."""


def express(allowed: Tensor, context: MaskContext) -> str:
    """An expression whose cells are exactly these.

    Conditions on diagonals, distances, blocks, strides, positions, padding, segments and equal tokens are joined,
    and the cells that they get wrong are spelled out; of several expressions made like this, the shortest.

    Args:
        allowed: (Tq, Tk) bool, True = may attend.
        context: the facts about the Tq queries and the Tk keys.

    Returns:
        The expression; "" if all that are found are too long to be read back.

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
    target, grids = allowed.flatten(), grids_of(context)
    exact, near = _joined(target, grids, slack=0), _joined(target, grids, slack=4 + len(target) // 50)
    best, lowest_cost = "", LONGEST + 1
    alone = (_Form((), (), cells) for cells in (torch.ones_like(target), torch.zeros_like(target)))
    for forms in (exact, near, alone):
        for form in forms:
            text = _written(form, allowed, min(LONGEST, lowest_cost))
            cost = len(text) + form.extra
            if text and cost < lowest_cost:
                best, lowest_cost = text, cost
            if lowest_cost <= _PLAIN:
                return best
        if lowest_cost <= _SHORT:
            return best
    return best


@dataclass(frozen=True, eq=False)
class _Part:
    """One condition on a measure: the cells in some ranges of it, to be blocked by a wall or allowed by a door.

    Attributes:
        words: the condition.
        cost: how long the words count as.
        hits: how many cells are in the ranges that are to be.
        of: all ranges of that measure.
        runs: the ranges.
    """

    words: str
    cost: int
    hits: int
    of: _Ranges
    runs: tuple[Run, ...]

    @cached_property
    def cells(self) -> Tensor:
        """The cells in the ranges, (Tq * Tk,) bool."""
        return self.of.grid.chosen(self.of.measure, *self.runs)


@dataclass(frozen=True, eq=False)
class _Form:
    """``wall and wall and (door or door)``; no door at all leaves what the walls leave.

    Attributes:
        walls: what each cell has to keep to.
        doors: of which it has to keep to one.
        cells: (Tq * Tk,) bool, True = may attend.
    """

    walls: Sequence[_Part]
    doors: Sequence[_Part]
    cells: Tensor

    @property
    def extra(self) -> int:
        """How many characters longer than it is the text counts as, or fewer."""
        return sum(part.cost - len(part.words) for part in (*self.walls, *self.doors))


@dataclass(frozen=True, eq=False)
class _Ranges:
    """The ranges of a measure whose cells are all, or nearly all, as wanted.

    Attributes:
        place: what comes first in the text.
        hits: how many cells are as wanted, by number.
    """

    place: int
    grid: Grid
    measure: Measure
    runs: list[Run]
    hits: list[int]

    def part(self, words: str, *runs: Run) -> _Part:
        """The condition on some of the ranges."""
        hits = sum(self.hits[number] for run in runs for number in self.measure.numbers(run))
        extra = self.measure.extra + (self.measure.extra_of_chain if words.count(" <") > 1 else 0)
        return _Part(words, max(4, len(words) + extra), hits, self, runs)

    def tight(self, run: Run) -> Run:
        """The range without what does no harm at its ends."""
        hit = [number for number in self.measure.numbers(run) if self.hits[number]]
        return hit[0], hit[-1]


def _joined(target: Tensor, grids: Sequence[Grid], slack: int) -> Iterator[_Form]:
    """Walls alone, and doors in what is left by all walls, by those of facts, by the first, and by none."""
    everywhere = torch.ones_like(target)
    walls = _cover(_walls(grids, ~target, everywhere, slack), ~target, everywhere)
    yield _form(walls, (), target)
    if torch.equal(~_union(walls, target), target) and sum(part.cost for part in walls) <= _PLAIN:
        return
    facts = [part for part in walls if part.of.measure.extra < 0]
    for kept in _distinct(walls, facts, walls[:1], []):
        left = ~_union(kept, target)
        doors = _cover(_doors(grids, target, left, slack), target, left)
        if doors:
            yield _form(kept, doors, target)


def _distinct(*choices: list[_Part]) -> list[list[_Part]]:
    return [parts for i, parts in enumerate(choices) if parts not in choices[:i]]


def _form(walls: Sequence[_Part], doors: Sequence[_Part], target: Tensor) -> _Form:
    """A form, without the walls that do no good beside its doors."""
    open_cells = _union(doors, target) if doors else torch.ones_like(target)
    for wall in walls:
        others = [other for other in walls if other is not wall]
        without, with_it = (open_cells & ~_union(kept, target) for kept in (others, walls))
        if _count(without ^ target) <= _count(with_it ^ target):
            walls = others
    walls, doors = (sorted(parts, key=lambda part: part.of.place) for parts in (walls, doors))
    return _Form(walls, doors, open_cells & ~_union(walls, target))


def _walls(grids: Sequence[Grid], blocked: Tensor, within: Tensor, slack: int) -> Iterator[_Part]:
    for ranges in _ranges(grids, blocked, within, slack):
        for run in ranges.runs:
            yield ranges.part(ranges.measure.denied(run), run)
        match ranges.runs:
            case [(None, int(last)), *_, (int(first), None)]:
                words = ranges.measure.said((last + 1, first - 1))
                yield ranges.part(words, ranges.runs[0], ranges.runs[-1])


def _doors(grids: Sequence[Grid], allowed: Tensor, within: Tensor, slack: int) -> Iterator[_Part]:
    for ranges in _ranges(grids, allowed, within, slack):
        for run in ranges.runs:
            # What lies beyond a range does no harm, so that the shorter of the two conditions will do.
            said = min(ranges.tight(run), run, key=lambda either: len(ranges.measure.said(either)))
            yield ranges.part(ranges.measure.said(said), said)


def _ranges(grids: Sequence[Grid], wanted: Tensor, within: Tensor, slack: int) -> Iterator[_Ranges]:
    """For each measure, the ranges whose cells within ``within`` are all wanted.

    A few others do no harm to a number most of whose cells are wanted: at most ``slack``.
    """
    place = 0
    for grid in grids:
        counts = grid.counts(within, wanted)
        for measure in grid.measures:
            place += 1
            misses, hits = torch.zeros(measure.size, 2, dtype=torch.int64).index_add(0, measure.values, counts).T
            fits = (misses == 0) | ((misses <= slack) & (misses < hits))
            runs = list(runs_of((fits & (hits > 0)).tolist(), fits.tolist()))
            if runs not in ([], [(None, None)]):
                yield _Ranges(place, grid, measure, runs, hits.tolist())


def _cover(parts: Iterable[_Part], target: Tensor, within: Tensor) -> list[_Part]:
    """Parts that together have the cells of the target, and else few of those within.

    The one that gains most for its cost is taken first, and then again of what is left. What a part gains only
    shrinks as others are taken, so that the last count bounds it, and few have to be counted again (Minoux 1978).
    """
    likely = heapq.nlargest(_MOST_WEIGHED, parts, key=lambda part: part.hits / part.cost)
    waiting = [(-part.hits / part.cost, i) for i, part in enumerate(likely)]
    chosen: list[_Part] = []
    wanted, unwanted = within & target, within & ~target
    while waiting and len(chosen) < _MOST_JOINED:
        _, i = heapq.heappop(waiting)
        part = likely[i]
        gain = (_count(part.cells & wanted) - _count(part.cells & unwanted)) / part.cost
        if waiting and gain < -waiting[0][0]:
            heapq.heappush(waiting, (-gain, i))
        elif gain > 0:
            chosen.append(part)
            wanted, unwanted = wanted & ~part.cells, unwanted & ~part.cells
    return _exchanged(_needed(chosen, target, within), likely, target, within)


def _needed(parts: list[_Part], target: Tensor, within: Tensor) -> list[_Part]:
    for part in parts:
        others = [other for other in parts if other is not part]
        if others and _n_wrong(others, target, within) <= _n_wrong(parts, target, within):
            parts = others
    return parts


def _exchanged(parts: list[_Part], others: list[_Part], target: Tensor, within: Tensor) -> list[_Part]:
    """The parts, with one of the others in place of several wherever that is cheaper and no worse."""
    own = _own_cells(parts, target & within)
    for other in others:
        replaced = [part for part, cells in zip(parts, own, strict=True) if not _count(cells & ~other.cells)]
        if len(replaced) > 1 and _cost(replaced) > other.cost:
            exchanged = _needed([*parts, other], target, within)
            n_wrong = _n_wrong(exchanged, target, within)
            if _cost(exchanged) < _cost(parts) and n_wrong <= _n_wrong(parts, target, within):
                parts, own = exchanged, _own_cells(exchanged, target & within)
    return parts


def _own_cells(parts: list[_Part], target: Tensor) -> list[Tensor]:
    """The cells of the target that each part alone has."""
    how_many = torch.zeros_like(target, dtype=torch.uint8)
    for part in parts:
        how_many = how_many + part.cells
    return [part.cells & target & (how_many == 1) for part in parts]


def _cost(parts: list[_Part]) -> int:
    return sum(part.cost + len(" and ") for part in parts)


def _n_wrong(parts: list[_Part], target: Tensor, within: Tensor) -> int:
    return _count((_union(parts, target) ^ target) & within)


def _count(cells: Tensor) -> int:
    return int(cells.count_nonzero())


def _union(parts: Sequence[_Part], like: Tensor) -> Tensor:
    """The cells that one part or another has; ``like`` says how many there are."""
    return reduce(torch.logical_or, (part.cells for part in parts), torch.zeros_like(like))


def _written(form: _Form, allowed: Tensor, longest: int) -> str:
    """The text of a form and of the cells that it gets wrong; "" if these alone are longer, or all is too long."""
    cells = form.cells.view_as(allowed)
    blocked = spelled_out(cells & ~allowed, ~allowed, longest)
    added = spelled_out(allowed & ~cells, allowed, longest)
    if blocked is None or added is None:
        return ""
    walls, doors = [part.words for part in form.walls], [part.words for part in form.doors]
    denials = [f"not ({words})" for words in blocked]
    entrance = " or ".join(doors)
    if len(doors) > 1 and (walls or denials):
        entrance = f"({entrance})"
    options = [" and ".join([*walls, entrance, *denials] if doors else [*walls, *denials]), *added]
    options = [option for option in options if option]
    text = options[0] if len(options) == 1 else " or ".join(map(_bracketed, options))
    return text if len(text) <= LONGEST else ""


def _bracketed(text: str) -> str:
    return f"({text})" if " and " in text else text
