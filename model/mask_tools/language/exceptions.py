"""Cells spelled out: queries that see the same keys are said together, and so are neighbouring keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_

from model.mask_tools.language.cells import Plane, ones
from model.mask_tools.language.measures import Measure, Run, position_measure, runs_of

_SHORTEST = len(" or (q == 0 and k == 0)")
"""What a condition takes at least; but for two at most, which hold for whole lines."""


@dataclass(frozen=True)
class Lines:
    """Cells line by line, as bits."""

    plane: Plane
    cells: int

    @cached_property
    def rows(self) -> list[int]:
        """The keys of each query."""
        return self.plane.rows(self.cells)

    @cached_property
    def columns(self) -> list[int]:
        """The queries of each key."""
        return self.plane.columns(self.cells)


def spelled_out(needed: Lines, allowed: Lines, longest: int) -> list[str] | None:
    """Conditions of which one or another holds at all cells that are needed, and else at allowed ones at most.

    Args:
        needed: of them.
        allowed: of them, those that are needed among them.
        longest: how many characters they may have in all.

    Returns:
        The conditions, each to be put in brackets; None if they are longer.
    """
    if not needed.cells:
        return []
    query, key = position_measure("q", needed.plane.n_queries), position_measure("k", needed.plane.n_keys)
    by_queries = _by_lines(query, key, needed.rows, allowed.rows, allowed.columns, longest)
    if by_queries is not None:
        longest = _length(by_queries) - 1
    by_keys = _by_lines(key, query, needed.columns, allowed.columns, allowed.rows, longest)
    return by_queries if by_keys is None else by_keys


@dataclass
class _Group:
    """Lines that can share their cells, which are bits of integers: those that one needs, those that all allow."""

    needed: int
    allowed: int
    members: int


def _by_lines(
    line: Measure,
    across: Measure,
    needed: Sequence[int],
    allowed: Sequence[int],
    allowed_across: Sequence[int],
    longest: int,
) -> list[str] | None:
    groups = _groups(needed, allowed, most=longest // _SHORTEST + 2)
    if groups is None:
        return None
    conditions: list[str] = []
    for group in groups:
        chosen, places = _said(across, group.needed, group.allowed)
        runs = runs_of(chosen, chosen, across.size)
        allowing = (allowed_across[place] for run in runs for place in across.numbers(run))
        _, lines = _said(line, group.members, reduce(and_, allowing, ones(line.size)))
        conditions.append(" and ".join(words for words in (lines, places) if words) or "True")
        if _length(conditions) > longest:
            return None
    return conditions


def _groups(needed: Sequence[int], allowed: Sequence[int], most: int) -> list[_Group] | None:
    """The lines that need a cell, each with the first others that it can share its cells with; None = too many."""
    groups: list[_Group] = []
    for line, (line_needed, line_allowed) in enumerate(zip(needed, allowed, strict=True)):
        if not line_needed:
            continue
        for group in groups:
            if group.needed & line_allowed == group.needed and group.allowed & line_needed == line_needed:
                group.needed |= line_needed
                group.allowed &= line_allowed
                group.members |= 1 << line
                break
        else:
            groups.append(_Group(line_needed, line_allowed, 1 << line))
            if len(groups) > most:
                return None
    return groups


def _said(measure: Measure, needed: int, allowed: int) -> tuple[int, str]:
    """The positions that are chosen, as bits, and the shortest words for them: none for all positions."""
    everything = ones(measure.size)
    runs = list(runs_of(needed, allowed, measure.size))
    gaps = list(runs_of(everything ^ allowed, everything ^ needed, measure.size))
    ranges = " or ".join(map(measure.said, runs))
    denials = " and ".join(map(measure.denied, gaps))
    if len(denials) < len(ranges):
        return everything ^ _bits_of(gaps, measure), denials
    return _bits_of(runs, measure), f"({ranges})" if len(runs) > 1 else ranges


def _bits_of(runs: list[Run], measure: Measure) -> int:
    bits = 0
    for run in runs:
        numbers = measure.numbers(run)
        bits |= ones(numbers.stop) ^ ones(numbers.start)
    return bits


def _length(conditions: list[str]) -> int:
    return sum(len(condition) + len(" or ()") for condition in conditions)
