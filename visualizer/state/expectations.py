"""A person's expectations of results, and which results are revealed, kept in the session."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from visualizer.state import drafts

_NAME = "expectations"
_ASKED = "asked_now"
_MOST_PLACES = 128
"""So many are kept, of all runs together; then the oldest is forgotten."""


@dataclass(frozen=True)
class Expectation:
    """The expectation at one place, or that a result is revealed.

    Attributes:
        cells: the marked cells of a matrix, one bit each, row by row.
        token: the token chosen; None before one is.
        revealed: of a result, whether it is in sight.
    """

    cells: bytes = b""
    token: int | None = None
    revealed: bool = False

    def flags(self, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """The marked cells, (rows, columns)."""
        if not self.cells:
            return np.zeros(shape, np.bool_)
        bits = np.unpackbits(np.frombuffer(self.cells, np.uint8), count=shape[0] * shape[1])
        return bits.astype(np.bool_).reshape(shape)


def expectation_at(of: Hashable, place: Hashable) -> Expectation:
    """Return the expectation at a place of a run, or the note on a result of it; empty before there is one."""
    return _kept().get((of, place), Expectation())


def expect(of: Hashable, place: Hashable, **changes: object) -> None:
    """Change what is expected there, or noted of a result."""
    others = {other: value for other, value in _kept().items() if other != (of, place)}
    while len(others) >= _MOST_PLACES:
        others.pop(next(iter(others)))
    found = replace(expectation_at(of, place), **changes)  # type: ignore[arg-type]
    drafts.put_by(_NAME, {**others, (of, place): found})


def now_asked(of: Hashable, shown: Sequence[Hashable]) -> None:
    """Note what is asked on the page: from now on it is covered in every view, until it is revealed.

    Args:
        of: what was run.
        shown: the results that a key reveals; the first is the one asked about.
    """
    drafts.put_by(_ASKED, (of, tuple(shown)))
    expect(of, shown[0])


def is_covered(of: Hashable, result: Hashable) -> bool:
    """True if a result was asked about and is not revealed yet."""
    known = _kept().get((of, result))
    return known is not None and not known.revealed


def reveal(of: Hashable, results: Sequence[Hashable], *, revealed: bool) -> None:
    """Reveal or cover: covered is only what is asked about, revealed also what is shown with it."""
    for result in results if revealed else results[:1]:
        expect(of, result, revealed=revealed)


def reveal_or_cover() -> None:
    """Reveal what is asked on the page, or cover it again, as a callback does."""
    asked = drafts.put_by_before(_ASKED)
    if isinstance(asked, tuple):
        of, results = asked
        reveal(of, results, revealed=is_covered(of, results[0]))


def _kept() -> Mapping[tuple[Hashable, Hashable], Expectation]:
    known = drafts.put_by_before(_NAME)
    return known if isinstance(known, Mapping) else {}
