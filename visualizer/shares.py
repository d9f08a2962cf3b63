"""Shares and parts of a whole, as they are written."""

from __future__ import annotations

import math

from model.texts import texts_of

say = texts_of(__name__)


def percent(share: float, digits: int = 0) -> str:
    """``62%``, or ``NaN``; a share that is neither nothing nor everything is never written as such."""
    if math.isnan(share):
        return "NaN"
    least = 10**-digits
    if 0 < 100 * share < least / 2:
        return say("under", percent=f"{least:g}%")
    if 100 - least / 2 <= 100 * share < 100:
        return say("over", percent=f"{100 - least:g}%")
    return f"{100 * share:.{digits}f}%"


def part_of(size: int, part: slice | range) -> str:
    """``0 to 31 of 128``."""
    return say("part", first=part.start, last=part.stop - 1, size=size)
