"""Cells spelled out: queries that see the same keys are said together, and so are neighbouring keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.mask_tools.language.measures import Measure, position_measure, runs_of

_SHORTEST = len(" or (q == 0 and k == 0)")
"""What a condition takes at least; but for two at most, which hold for whole lines."""


def spelled_out(needed: Tensor, free: Tensor, longest: int) -> list[str] | None:
    """Conditions of which one or another holds at all cells that are needed, and else at free ones at most.

    Args:
        needed: (Tq, Tk) bool.
        free: (Tq, Tk) bool.
        longest: how many characters they may have in all.

    Returns:
        The conditions, each to be put in brackets; None if they are longer.
    """
    if not needed.any():
        return []
    query, key = (position_measure(name, size) for name, size in zip("qk", needed.shape, strict=True))
    allowed = needed | free
    by_queries = _by_lines(query, key, _bits(needed), _bits(allowed), longest)
    by_keys = _by_lines(key, query, _bits(needed.T), _bits(allowed.T), longest)
    return min((found for found in (by_queries, by_keys) if found is not None), key=_length, default=None)


@dataclass(frozen=True)
class _Group:
    """Lines that can share their cells, which are bits of integers: those that one needs, those that all allow."""

    needed: int
    allowed: int
    members: frozenset[int]


def _by_lines(
    line: Measure, across: Measure, needed: list[int], allowed: list[int], longest: int
) -> list[str] | None:
    groups = _groups(needed, allowed, most=longest // _SHORTEST + 2)
    if groups is None:
        return None
    conditions: list[str] = []
    for group in groups:
        chosen, places = _said(across, _flags(group.needed, across.size), _flags(group.allowed, across.size))
        is_member = [i in group.members for i in range(line.size)]
        _, lines = _said(line, is_member, [chosen & ~line_allowed == 0 for line_allowed in allowed])
        conditions.append(" and ".join(words for words in (lines, places) if words) or "True")
        if _length(conditions) > longest:
            return None
    return conditions


def _groups(needed: list[int], allowed: list[int], most: int) -> list[_Group] | None:
    """The lines that need a cell, each with the first others that it can share its cells with; None = too many."""
    groups: list[_Group] = []
    for line, (line_needed, line_allowed) in enumerate(zip(needed, allowed, strict=True)):
        if not line_needed:
            continue
        for i, group in enumerate(groups):
            joined = _Group(group.needed | line_needed, group.allowed & line_allowed, group.members | {line})
            if joined.needed & ~joined.allowed == 0:
                groups[i] = joined
                break
        else:
            groups.append(_Group(line_needed, line_allowed, frozenset({line})))
            if len(groups) > most:
                return None
    return groups


def _said(measure: Measure, needed: Sequence[bool], allowed: Sequence[bool]) -> tuple[int, str]:
    """The positions that are chosen, as bits, and the shortest words for them: none for all positions."""
    runs = list(runs_of(needed, allowed))
    gaps = list(runs_of([not place for place in allowed], [not place for place in needed]))
    ranges = " or ".join(map(measure.said, runs))
    denials = " and ".join(map(measure.denied, gaps))
    if len(denials) < len(ranges):
        return ~_bits_of(gaps, measure.size) & _ones(measure.size), denials
    return _bits_of(runs, measure.size), f"({ranges})" if len(runs) > 1 else ranges


def _bits_of(runs: list[tuple[int | None, int | None]], size: int) -> int:
    bits = 0
    for first, last in runs:
        bits |= _ones(size if last is None else last + 1) & ~_ones(first or 0)
    return bits


def _ones(count: int) -> int:
    return (1 << count) - 1


def _flags(bits: int, size: int) -> list[bool]:
    return [bool(bits >> place & 1) for place in range(size)]


def _bits(cells: Tensor) -> list[int]:
    """Each row, (n,) bool, as an integer whose lowest bit is its first cell."""
    width = cells.shape[1]
    digits = bytes((cells.flip(1).to(torch.uint8) + ord("0")).flatten().tolist())
    return [int(digits[start : start + width], 2) for start in range(0, len(digits), width)]


def _length(conditions: list[str]) -> int:
    return sum(len(condition) + len(" or ()") for condition in conditions)
