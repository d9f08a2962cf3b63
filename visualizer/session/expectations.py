"""What a person expects, kept in the session until its run is another."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from visualizer.session import drafts

_NAME = "expectations"
_ASKED = "asked_now"
_MOST_PLACES = 64
"""The expectations of so many places are kept, of each run; then the oldest is forgotten."""


@dataclass(frozen=True)
class Expectation:
    """What is expected at one place.

    Attributes:
        cells: the marked cells of a matrix, one bit each, row by row.
        token: the token chosen; None before one is.
        revealed: whether the result is in sight.
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


@dataclass(frozen=True)
class _Kept:
    of: Hashable
    at: Mapping[Hashable, Expectation] = field(default_factory=dict)


def expectation_at(of: Hashable, place: Hashable) -> Expectation:
    """What is expected at a place of a run; nothing yet where that run is not the one kept of."""
    return _kept(of).at.get(place, Expectation())


def expect(of: Hashable, place: Hashable, **changes: object) -> None:
    """Change what is expected there. What was expected of another run is forgotten."""
    kept = _kept(of)
    others = {other: value for other, value in kept.at.items() if other != place}
    while len(others) >= _MOST_PLACES:
        others.pop(next(iter(others)))
    found = replace(kept.at.get(place, Expectation()), **changes)  # type: ignore[arg-type]
    drafts.put_by(_NAME, _Kept(of, {**others, place: found}))


def now_asked(of: Hashable, place: Hashable) -> None:
    """Note what is asked on the page, for a key that reveals it."""
    drafts.put_by(_ASKED, (of, place))


def reveal_or_cover() -> None:
    """Reveal what is asked on the page, or cover it again, as a callback does."""
    asked = drafts.put_by_before(_ASKED)
    if isinstance(asked, tuple):
        of, place = asked
        expect(of, place, revealed=not expectation_at(of, place).revealed)


def _kept(of: Hashable) -> _Kept:
    kept = drafts.put_by_before(_NAME)
    return kept if isinstance(kept, _Kept) and kept.of == of else _Kept(of)
