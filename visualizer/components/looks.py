"""The looks of an attention's heads, as far as a person chooses them in the picture."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Looks:
    """The looks that the components that draw heads receive, and send back when a person changes them.

    drawn: "grids" or "lines". shown: the heads drawn, all where it is empty. curve: of the colour scale, "linear",
    "root", or "auto" for what suits the number of tokens. least_weight: lines of less are left out. pinned: the
    token whose lines alone are drawn, "q8" for the query 8, "k3" for the key 3, "" for none.
    """

    drawn: str = "grids"
    shown: tuple[int, ...] = ()
    curve: str = "auto"
    least_weight: float = 0.01
    pinned: str = ""


LOOKS = tuple(field.name for field in fields(Looks))
"""The names of its fields. An event holds each as a text, lists with commas; an empty list is ``all``."""
