"""The masks in a loaded array: each with its name, and what is wrong with which of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from torch import Tensor

from headlight.masks.mask_case import SEVERITIES, Finding
from headlight.masks.planes import Passed
from model.texts import listed, texts_of

say = texts_of(__name__)
CALLED = {"error": say("error"), "warning": say("warning"), "note": say("note")}
ICONS = {"error": ":material/error:", "warning": ":material/warning:", "note": ":material/info:"}

_MOST_NAMED = 3


Index = tuple[tuple[str, int], ...]
"""The place of a mask among several: the axis and the index along it, such as ``(("head", 2),)``."""


@dataclass(frozen=True, eq=False)
class Plane:
    """One mask of several.

    Attributes:
        index: where it is, along the axes that have more than one.
        allowed: (Tq, Tk) bool, True = may attend.
        tokens: tells masks apart that are over other tokens.
    """

    index: Index
    allowed: Tensor
    tokens: int = 0

    @property
    def name(self) -> str:
        """``sequence 1, head 0``; "" where there is only one."""
        return ", ".join(f"{axis} {at}" for axis, at in self.index)


@dataclass(frozen=True, eq=False)
class Found:
    """A finding, and the masks that it is about.

    Attributes:
        finding: as it was found in the first of them.
        where: ``In sequence 1, head 0 and 3 more: ``; "" where it is about all.
        planes: the masks that it is about.
    """

    finding: Finding
    where: str
    planes: tuple[Plane, ...]


def planes_of(passed: Passed) -> tuple[Plane, ...]:
    """The masks in the order of the array.

    Raises:
        ValueError: the place refuses the array.
    """
    allowed = passed.allowed
    if allowed is None:
        raise ValueError("the place refuses the array: it has no masks")
    sizes = allowed.shape[:-2]
    return tuple(
        Plane(
            index_of(zip(passed.axes, index, sizes, strict=True)),
            allowed[index],
            tokens=dict(zip(passed.axes, index, strict=True)).get("sequence", 0),
        )
        for index in product(*map(range, sizes))
    )


def index_of(places: Iterable[tuple[str, int, int]]) -> Index:
    """Each axis, the index along it and its size -> where that is."""
    return tuple((axis, at) for axis, at, size in places if size > 1)


def judged(planes: Sequence[Plane], judge: Callable[[Plane], Sequence[Finding]]) -> tuple[Found, ...]:
    """Everything that is wrong with any of some masks, most severe first; equal masks are judged once."""
    of_cells: dict[tuple[int, bytes], Sequence[Finding]] = {}
    found: dict[tuple[str, str, str], Finding] = {}
    about: dict[tuple[str, str, str], list[Plane]] = {}
    for plane in planes:
        cells = (plane.tokens, plane.allowed.numpy().tobytes())
        if cells not in of_cells:
            of_cells[cells] = judge(plane)
        for finding in of_cells[cells]:
            said = (finding.rule, finding.title, finding.why)
            found.setdefault(said, finding)
            about.setdefault(said, []).append(plane)
    every = [
        Found(
            finding,
            where([plane.index for plane in about[said]], [plane.index for plane in planes]),
            tuple(about[said]),
        )
        for said, finding in found.items()
    ]
    return tuple(sorted(every, key=lambda one: SEVERITIES.index(one.finding.severity)))


def where(some: Sequence[Index], every: Sequence[Index]) -> str:
    """``In heads 0 and 2: ``, ``In sequence 1: `` where it is all its heads; "" where it is all masks.

    Masks that are no combination of indices are named one by one.
    """
    if len(some) == len(every):
        return ""
    chosen, whole = _by_axis(some), _by_axis(every)
    if math.prod(map(len, chosen.values())) == len(some):
        named = [_of_axis(axis, at) for axis, at in chosen.items() if at != whole[axis]]
        return say("in", places=", ".join(named))
    names = [", ".join(f"{axis} {at}" for axis, at in index) for index in some]
    more = len(names) - _MOST_NAMED
    shown = [*names[:_MOST_NAMED], say("more", n_more=more)] if more > 0 else names
    return say("in", places="; ".join(shown))


def _by_axis(indices: Sequence[Index]) -> dict[str, list[int]]:
    """The indices that occur along each axis."""
    found: dict[str, set[int]] = {}
    for axis, at in (place for index in indices for place in index):
        found.setdefault(axis, set()).add(at)
    return {axis: sorted(at) for axis, at in found.items()}


def _of_axis(axis: str, at: Sequence[int]) -> str:
    """``head 2``, ``heads 0 and 2``, ``layers 0, 1, 2 and 5 more``."""
    if len(at) == 1:
        return f"{axis} {at[0]}"
    return f"{axis}s {listed(at, _MOST_NAMED)}"
