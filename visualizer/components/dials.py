"""Numbers of what is drawn that a person turns in the picture itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Dial:
    """One of them.

    Attributes:
        name: the parameter of the address that carries it: ``window``, or ``temperature``, which is written as the
            change of the scores that it stands for.
        label: what it is called.
        help: what it does, in a sentence or two.
        value: where it stands.
        least: its one end.
        most: its other end.
    """

    name: str
    label: str
    help: str
    value: float
    least: float
    most: float

    def as_header(self) -> dict[str, Any]:
        """The dial as JSON, the form in which the browser receives it."""
        return asdict(self)
