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

    def as_header(self) -> dict[str, Any]:
        """The dial as JSON, the form in which the browser receives it."""
        return asdict(self)
