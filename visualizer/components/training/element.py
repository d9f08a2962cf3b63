"""A training, or two side by side: their curves, what the model answers, and every head of an attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.texts import texts_of
from visualizer.components.packing import Array, pack
from visualizer.components.picture import Picture
from visualizer.components.progress.element import Bar

say = texts_of(__name__)

MOST_SAID = 12
"""The most points of a curve that are put into words."""


@dataclass(frozen=True)
class Curve:
    """Values over steps.

    Attributes:
        steps: after which steps there is a value.
        values: one for each of ``steps``; one that is no number is left out of the line.
    """

    steps: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True)
class Written:
    """The answer of a model to a text.

    Attributes:
        asked: the text.
        tokens: those of the answer, each with whether it is right at its place.
        joint: what stands between two tokens.
        ended: whether the answer ended by itself.
        note: one sentence on it.
    """

    asked: str
    tokens: Sequence[tuple[str, bool]]
    joint: str
    ended: bool
    note: str

    def as_header(self) -> dict[str, Any]:
        """The answer as JSON, the form in which the browser receives it."""
        return {**vars(self), "tokens": [list(token) for token in self.tokens]}


@dataclass(frozen=True, eq=False)
class Side:
    """One training at one moment.

    Attributes:
        name: the heading; empty for the only one.
        losses: in nats per token.
        matches: the share of held-out texts that are answered without a mistake.
        numbers: at this moment, each with what it is.
        written: the answer, and the heads of the attention; a sentence on why there are none.
    """

    name: str
    losses: Curve
    matches: Curve
    numbers: Sequence[tuple[str, str]]
    written: tuple[Written, Picture] | str


def training(
    sides: Sequence[Side],
    *,
    n_steps: int,
    guessing: float,
    key: str,
    moment: int | None = None,
    address: str = "",
    bar: Bar | None = None,
) -> Picture:
    """The picture. Its event `ended` says that the address has no answer any more.

    Args:
        sides: one or two; none before there are numbers.
        n_steps: how many steps there will be: where the axes end.
        guessing: the loss of a model for which all tokens are equally likely.
        key: names the picture among those of a page.
        moment: the step to mark; None for none.
        address: the address that the browser asks for the newest bytes of this picture; empty where it is at rest.
        bar: how far it is, while it runs.
    """
    arrays: dict[str, Array] = {}
    for index, side in enumerate(sides):
        for name, curve in (("losses", side.losses), ("matches", side.matches)):
            arrays[f"{name}{index}"] = np.array(curve.values, np.float32)
            arrays[f"{name}{index}_steps"] = np.array(curve.steps, np.int32)
        if not isinstance(side.written, str):
            arrays[f"heads{index}"] = np.frombuffer(side.written[1].data, np.uint8)
    header = {
        "key": key,
        "address": address,
        "bar": None if bar is None else vars(bar),
        "n_steps": n_steps,
        "guessing": guessing,
        "moment": moment,
        "sides": [_described(side) for side in sides],
        "losses": in_words([(side.name, side.losses) for side in sides], ".3f"),
        "matches": in_words([(side.name, side.matches) for side in sides], ".0%"),
    }
    return Picture("training/element.js", pack(header, arrays), key, ("ended",))


def _described(side: Side) -> dict[str, Any]:
    found = {"name": side.name, "numbers": [list(number) for number in side.numbers]}
    if isinstance(side.written, str):
        return found | {"problem": side.written, "written": None}
    return found | {"problem": "", "written": side.written[0].as_header()}


def in_words(curves: Sequence[tuple[str, Curve]], number: str) -> str:
    """The curves for who does not see them: one line each, with up to ``MOST_SAID`` points from first to last.

    Args:
        curves: each with the name of its training.
        number: how a value is written, such as ``.3f``.
    """
    lines = []
    for name, curve in curves:
        last = len(curve.steps) - 1
        n_said = min(len(curve.steps), MOST_SAID)
        places = sorted({round(i * last / max(1, n_said - 1)) for i in range(n_said)})
        points = ", ".join(say("point", step=curve.steps[i], value=format(curve.values[i], number)) for i in places)
        lines.append(f"{name}: {points}" if name else points)
    return ". ".join(lines)
