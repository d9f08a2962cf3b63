"""From cells to an expression: the shortest of those that can be found, and always exactly these cells."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import torch
from torch import Tensor

from model.mask_tools.language.cells import lowest, ones, rows_of, without
from model.mask_tools.language.context import MaskContext
from model.mask_tools.language.exceptions import Lines, spelled_out
from model.mask_tools.language.measures import Grid, Grids, Measure, Run, runs_of
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
    grids = Grids(context)
    target = Lines(grids.plane, grids.plane.in_rows(rows_of(allowed)))
    blocked = Lines(grids.plane, grids.plane.everywhere ^ target.cells)
    exact, near = (_joined(target.cells, grids, slack) for slack in (0, 4 + allowed.numel() // 50))
    best, lowest_cost = "", LONGEST + 1
    alone = (_Form((), (), cells) for cells in (grids.plane.everywhere, 0))
    for forms in (exact, near, alone):
        for form in forms:
            text = _written(form, target, blocked, min(LONGEST, lowest_cost))
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
        misses: how many are that are not to be.
        of: all ranges of that measure.
        runs: the ranges.
    """

    words: str
    cost: int
    hits: int
    misses: int
    of: _Ranges
    runs: tuple[Run, ...]

    @cached_property
    def cells(self) -> int:
        """The cells in the ranges."""
        return self.of.grid.chosen(self.of.measure, *self.runs)


@dataclass(frozen=True, eq=False)
class _Form:
    """``wall and wall and (door or door)``; no door at all leaves what the walls leave.

    Attributes:
        walls: what each cell has to keep to.
        doors: of which it has to keep to one.
        cells: those that may attend.
    """

    walls: Sequence[_Part]
    doors: Sequence[_Part]
    cells: int

    @property
    def extra(self) -> int:
        """How many characters longer than it is the text counts as, or fewer."""
        return sum(part.cost - len(part.words) for part in (*self.walls, *self.doors))


@dataclass(frozen=True, eq=False)
class _Ranges:
    """The ranges of a measure whose cells are all, or nearly all, as wanted.

    Attributes:
        place: what comes first in the text.
        runs: the ranges.
        needed: the numbers that have cells as wanted, as bits.
        hits: how many cells are as wanted, of all numbers before each.
        misses: how many are not.
    """

    place: int
    grid: Grid
    measure: Measure
    runs: list[Run]
    needed: int
    hits: Sequence[int]
    misses: Sequence[int]

    def part(self, words: str, *runs: Run) -> _Part:
        """The condition on some of the ranges."""
        hits, misses = (
            sum(before[numbers.stop] - before[numbers.start] for numbers in map(self.measure.numbers, runs))
            for before in (self.hits, self.misses)
        )
        extra = self.measure.extra + (self.measure.extra_of_chain if words.count(" <") > 1 else 0)
        return _Part(words, max(4, len(words) + extra), hits, misses, self, runs)

    def tight(self, run: Run) -> Run:
        """The range without what does no harm at its ends."""
        first, last = run
        return (
            lowest(self.needed) if first is None else first,
            self.needed.bit_length() - 1 if last is None else last,
        )


def _joined(target: int, grids: Grids, slack: int) -> Iterator[_Form]:
    """Walls alone, and doors in what is left by all walls, by those of facts, by the first, and by none."""
    everywhere = grids.plane.everywhere
    blocked = everywhere ^ target
    walls = _cover(_walls(grids, blocked, everywhere, slack), blocked, everywhere)
    yield _form(walls, (), target, everywhere)
    if _union(walls) == blocked and sum(part.cost for part in walls) <= _PLAIN:
        return
    facts = [part for part in walls if part.of.measure.extra < 0]
    for kept in _distinct(walls, facts, walls[:1], []):
        left = without(everywhere, _union(kept))
        doors = _cover(_doors(grids, target, left, slack), target, left)
        if doors:
            yield _form(kept, doors, target, everywhere)


def _distinct(*choices: list[_Part]) -> list[list[_Part]]:
    return [parts for i, parts in enumerate(choices) if parts not in choices[:i]]


def _form(walls: Sequence[_Part], doors: Sequence[_Part], target: int, everywhere: int) -> _Form:
    """A form, without the walls that do no good beside its doors."""
    open_cells = _union(doors) if doors else everywhere
    for wall in walls:
        others = [other for other in walls if other is not wall]
        if not _does_good(wall, others, without(everywhere, target), open_cells):
            walls = others
    walls, doors = (sorted(parts, key=lambda part: part.of.place) for parts in (walls, doors))
    return _Form(walls, doors, without(open_cells, _union(walls)))


def _walls(grids: Grids, blocked: int, within: int, slack: int) -> Iterator[_Part]:
    for ranges in _ranges(grids, blocked, within, slack):
        for run in ranges.runs:
            yield ranges.part(ranges.measure.denied(run), run)
        match ranges.runs:
            case [(None, int(last)), *_, (int(first), None)]:
                words = ranges.measure.said((last + 1, first - 1))
                yield ranges.part(words, ranges.runs[0], ranges.runs[-1])


def _doors(grids: Grids, allowed: int, within: int, slack: int) -> Iterator[_Part]:
    for ranges in _ranges(grids, allowed, within, slack):
        for run in ranges.runs:
            # What lies beyond a range does no harm, so that the shorter of the two conditions will do.
            said = min(ranges.tight(run), run, key=lambda either: len(ranges.measure.said(either)))
            yield ranges.part(ranges.measure.said(said), said)


def _ranges(grids: Grids, wanted: int, within: int, slack: int) -> Iterator[_Ranges]:
    """For each measure, the ranges whose cells within ``within`` are all wanted.

    A few others do no harm to a number most of whose cells are wanted: at most ``slack``.
    """
    hits, misses = grids.counts(within & wanted), grids.counts(without(within, wanted))
    fits = (misses == 0) | ((misses <= slack) & (misses < hits))
    needed, free = rows_of(torch.stack([fits & (hits > 0), fits]))
    hits_before, misses_before = ([0, *counts.cumsum(0).tolist()] for counts in (hits, misses))
    for place, (grid, measure, start) in enumerate(grids.measures):
        end = start + measure.size
        needed_here, free_here = ((numbers >> start) & ones(measure.size) for numbers in (needed, free))
        runs = list(runs_of(needed_here, free_here, measure.size))
        if runs not in ([], [(None, None)]):
            before = hits_before[start : end + 1], misses_before[start : end + 1]
            yield _Ranges(place, grid, measure, runs, needed_here, *before)


def _cover(parts: Iterable[_Part], target: int, within: int) -> list[_Part]:
    """Parts that together have the cells of the target, and else few of those within.

    The one that gains most for its cost is taken first, and then again of what is left. What a part gains only
    shrinks as others are taken, so that the last count bounds it, and few have to be counted again (Minoux 1978).
    """
    likely = heapq.nlargest(_MOST_WEIGHED, parts, key=lambda part: part.hits / part.cost)
    waiting = [(-part.hits / part.cost, i) for i, part in enumerate(likely)]
    chosen: list[_Part] = []
    wanted, unwanted = within & target, without(within, target)
    while waiting and wanted and len(chosen) < _MOST_JOINED:
        _, i = heapq.heappop(waiting)
        part = likely[i]
        hits, misses = (
            ((part.cells & wanted).bit_count(), (part.cells & unwanted).bit_count())
            if chosen
            else (part.hits, part.misses)
        )
        gain = (hits - misses) / part.cost
        if waiting and gain < -waiting[0][0]:
            heapq.heappush(waiting, (-gain, i))
        elif gain > 0:
            chosen.append(part)
            wanted, unwanted = without(wanted, part.cells), without(unwanted, part.cells)
    return _exchanged(_needed(chosen, target, within), likely, target, within)


def _needed(parts: list[_Part], target: int, within: int) -> list[_Part]:
    for part in parts:
        others = [other for other in parts if other is not part]
        if others and not _does_good(part, others, target, within):
            parts = others
    return parts


def _does_good(part: _Part, others: list[_Part], target: int, within: int) -> bool:
    """Whether most of the cells within that a part has beside others are of the target."""
    alone = without(part.cells & within, _union(others))
    return 2 * (alone & target).bit_count() > alone.bit_count()


def _exchanged(parts: list[_Part], others: list[_Part], target: int, within: int) -> list[_Part]:
    """The parts, with one of the others in place of several wherever that is cheaper and no worse."""
    own = _own_cells(parts, target & within)
    for other in others:
        if _cost(parts) <= other.cost or len(parts) < 2:
            continue
        replaced = [part for part, cells in zip(parts, own, strict=True) if cells & other.cells == cells]
        if len(replaced) > 1 and _cost(replaced) > other.cost:
            exchanged = _needed([*parts, other], target, within)
            n_wrong = _n_wrong(exchanged, target, within)
            if _cost(exchanged) < _cost(parts) and n_wrong <= _n_wrong(parts, target, within):
                parts, own = exchanged, _own_cells(exchanged, target & within)
    return parts


def _own_cells(parts: list[_Part], target: int) -> list[int]:
    """The cells of the target that each part alone has."""
    once = several = 0
    for part in parts:
        several |= once & part.cells
        once |= part.cells
    return [part.cells & target & (once ^ several) for part in parts]


def _cost(parts: list[_Part]) -> int:
    return sum(part.cost + len(" and ") for part in parts)


def _n_wrong(parts: list[_Part], target: int, within: int) -> int:
    return ((_union(parts) ^ target) & within).bit_count()


def _union(parts: Sequence[_Part]) -> int:
    """The cells that one part or another has."""
    return reduce(or_, (part.cells for part in parts), 0)


def _written(form: _Form, target: Lines, blocked: Lines, longest: int) -> str:
    """The text of a form and of the cells that it gets wrong; "" if these alone are longer, or all is too long."""
    plane = target.plane
    excepted = spelled_out(Lines(plane, form.cells & blocked.cells), blocked, longest)
    added = spelled_out(Lines(plane, without(target.cells, form.cells)), target, longest)
    if excepted is None or added is None:
        return ""
    walls, doors = [part.words for part in form.walls], [part.words for part in form.doors]
    denials = [f"not ({words})" for words in excepted]
    entrance = " or ".join(doors)
    if len(doors) > 1 and (walls or denials):
        entrance = f"({entrance})"
    options = [" and ".join([*walls, entrance, *denials] if doors else [*walls, *denials]), *added]
    options = [option for option in options if option]
    text = options[0] if len(options) == 1 else " or ".join(map(_bracketed, options))
    return text if len(text) <= LONGEST else ""


def _bracketed(text: str) -> str:
    return f"({text})" if " and " in text else text
