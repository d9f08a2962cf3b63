"""The card of one stop: what to look at, what to try, how far one is, and the ways back and on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from visualizer.components.packing import fields_of, pack
from visualizer.components.picture import Picture

Part = tuple[str, str, bool]
"""A part of a text: the text, the entry of the glossary that it opens or nothing, and whether it is a token."""


@dataclass(frozen=True)
class PathCard:
    """One stop.

    Attributes:
        title: what it is about.
        words: what is said.
        trial: what to try; nothing where there is nothing.
        stops: the number and the title of each stop of this run.
        current: which of these it is, counted from 0.
        is_here: whether the picture of the stop is on the page.
        onward: at the last stop, the views that it leads on to, each with the text of its button.
    """

    title: str
    words: Sequence[Part]
    trial: Sequence[Part]
    stops: Sequence[tuple[int, str]]
    current: int
    is_here: bool
    onward: Sequence[tuple[str, str]] = ()


def path_card(card: PathCard, *, key: str) -> Picture:
    """The card.

    Its events: `go` is {"stop", "seq"}, the number of the stop to go to; `onward` is {"view", "seq"}; `leave` is
    {"seq"}.
    """
    return Picture(
        "path_card/element.js", pack({"key": key, **fields_of(card)}, {}), key, ("go", "leave", "onward")
    )
