"""Bars that grow by themselves, each below a line of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from visualizer.components.packing import pack
from visualizer.components.picture import Picture


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        label: what it is of.
        text: the words above it, with what it has come to.
        fraction: its length, from 0 to 1.
    """

    label: str
    text: str
    fraction: float


def progress(
    bars: Sequence[Bar],
    *,
    key: str,
    address: str,
    role: Literal["progressbar", "meter"] = "progressbar",
    above: str = "",
    below: str = "",
) -> Picture:
    """The bars, between two lines. Its event `ended` says that the address has no answer any more.

    Args:
        bars: from top to bottom; without any there is nothing to see.
        key: names the picture among those of a page.
        address: the address that the browser asks for the newest bytes of this picture.
        role: how far something has come, or a share of a whole.
        above: a line above the bars.
        below: a line below them.
    """
    header = {"key": key, "address": address, "role": role, "above": above, "below": below}
    return Picture("progress/element.js", pack(header | {"bars": list(bars)}, {}), key, ("ended",))
