"""Numbers and names of what is drawn that a person turns or presses in the picture itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Dial:
    """A number.

    Attributes:
        name: the parameter of the address that carries it: ``window``, or ``temperature``, which is written as the
            change of the scores that it stands for.
        label: what it is called.
        help: what it does, in a sentence or two.
        value: where it stands.
        least: its one end.
        most: its other end.
        parameters: what the address says for each whole number from ``least`` on, where that is not name and value.
        is_foremost: whether it is in sight, and not among the options.
    """

    name: str
    label: str
    help: str
    value: float
    least: float
    most: float
    parameters: tuple[str, ...] = ()
    is_foremost: bool = False


@dataclass(frozen=True)
class Pressed:
    """Names, any of which are chosen.

    Attributes:
        name: the choice that they are.
        parameter: what an address calls it.
        label: what they are called.
        help: what they do, in a sentence or two.
        value: those that are chosen.
        offered: all of them, with what each is called.
        is_folded: whether they are behind their label, beside which stand those that are chosen.
        is_foremost: whether they are in sight, and not among the options.
    """

    name: str
    parameter: str
    label: str
    help: str
    value: tuple[str, ...]
    offered: Mapping[str, str]
    is_folded: bool = False
    is_foremost: bool = True
