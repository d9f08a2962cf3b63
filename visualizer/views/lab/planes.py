"""The masks in a loaded array: each with its name, and what is wrong with which of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from torch import Tensor

from model.mask_tools.mask_case import SEVERITIES, Finding, listed
from model.mask_tools.planes import Passed

_MOST_NAMED = 3


@dataclass(frozen=True, eq=False)
class Plane:
    """One mask of several.

    Attributes:
        name: ``sequence 1, head 0``; "" where there is only one.
        allowed: (Tq, Tk) bool, True = may attend.
    """

    name: str
    allowed: Tensor


@dataclass(frozen=True, eq=False)
class Found:
    """A finding, and the masks that it is about.

    Attributes:
        finding: as it was found in the first of them.
        where: ``In sequence 1, head 0 and 3 more: ``; "" where it is about all.
    """

    finding: Finding
    where: str


def planes_of(passed: Passed) -> tuple[Plane, ...]:
    """The masks in the order of the array.

    Raises:
        ValueError: the place refuses the array.
    """
    allowed = passed.allowed
    if allowed is None:
        raise ValueError("the place refuses the array: it has no masks")
    sizes = allowed.shape[:-2]
    named = [axis if size > 1 else "" for axis, size in zip(passed.axes, sizes, strict=True)]
    return tuple(
        Plane(", ".join(f"{axis} {at}" for axis, at in zip(named, index, strict=True) if axis), allowed[index])
        for index in product(*map(range, sizes))
    )


def judged(planes: Sequence[Plane], judge: Callable[[Plane], Sequence[Finding]]) -> tuple[Found, ...]:
    """Everything that is wrong with any of some masks, most severe first; equal masks are judged once."""
    of_cells: dict[bytes, Sequence[Finding]] = {}
    found: dict[tuple[str, str, str], Finding] = {}
    names: dict[tuple[str, str, str], list[str]] = {}
    for plane in planes:
        cells = plane.allowed.numpy().tobytes()
        if cells not in of_cells:
            of_cells[cells] = judge(plane)
        for finding in of_cells[cells]:
            said = (finding.rule, finding.title, finding.why)
            found.setdefault(said, finding)
            names.setdefault(said, []).append(plane.name)
    every = [Found(finding, where(names[said], len(planes))) for said, finding in found.items()]
    return tuple(sorted(every, key=lambda one: SEVERITIES.index(one.finding.severity)))


def where(names: Sequence[str], count: int) -> str:
    """``In head 0, head 1, head 2 and 3 more: ``; "" where it is all of them."""
    if len(names) == count:
        return ""
    more = len(names) - _MOST_NAMED
    shown = [*names[:_MOST_NAMED], f"{more} more"] if more > 0 else list(names)
    return f"In {listed(shown)}: "
