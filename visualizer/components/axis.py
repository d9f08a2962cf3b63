"""The description of one axis of a matrix on the screen."""

from dataclasses import dataclass
from typing import Literal

SequenceName = Literal["source", "target"]


@dataclass(frozen=True)
class Axis:
    """One axis of a matrix: what it counts and what each position is called.

    name: what a position is ("query", "key", "feature", "vocabulary", ...), used in tooltips.
    labels: one printable text per position; invisible characters have been made visible already.
    sequence: the token sequence that the axis runs over, None for features.
    numbers: what each position is counted as, where only some of a longer axis are drawn; empty for 0, 1, 2 ...
    """

    name: str
    labels: tuple[str, ...]
    sequence: SequenceName | None = None
    numbers: tuple[int, ...] = ()
