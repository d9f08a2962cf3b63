"""A training, or two side by side: their curves, what the model answers, and every head of an attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from visualizer.components.packing import Array, pack
from visualizer.components.picture import Picture
from visualizer.components.progress.element import Bar


@dataclass(frozen=True, eq=False)
class Side:
    """One training at one moment.

    Attributes:
        name: the heading; empty for the only one.
        losses: in nats per token, by step; one that is no number is left out of the line.
        matches: the share of held-out texts that are answered without a mistake, by step.
        numbers: at this moment, each with what it is.
        note: one sentence on the answer, or on why there is none.
        asked: the text that the model answers.
        answer: the tokens of the answer, each with whether it is right at its place.
        joint: what stands between two of them, and at the end of one that is cut off.
        heads: every head of the attention; None where there is no answer.
    """

    name: str
    losses: Mapping[int, float]
    matches: Mapping[int, float]
    numbers: Sequence[tuple[str, str]]
    note: str
    asked: str = ""
    answer: Sequence[tuple[str, bool]] = ()
    joint: tuple[str, str] = ("", "")
    heads: Picture | None = None


def training(
    sides: Sequence[Side],
    *,
    n_steps: int,
    guessing: float,
    moment: int | None = None,
    address: str = "",
    bar: Bar | None = None,
    key: str = "training",
) -> Picture:
    """The picture. Its event `ended` says that the address has no answer any more.

    Args:
        sides: one or two; none before there are numbers.
        n_steps: how many steps there will be: where the axes end.
        guessing: the loss of a model for which all tokens are equally likely.
        moment: the step to mark; None for none.
        address: the address that the browser asks for the newest bytes of this picture; empty where it is at rest.
        bar: how far it is, while it runs.
        key: names the picture among those of a page.
    """
    arrays: dict[str, Array] = {}
    for index, side in enumerate(sides):
        for name, curve in (("losses", side.losses), ("matches", side.matches)):
            arrays[f"{name}{index}"] = np.array([[*curve], [*curve.values()]], np.float32)
        if side.heads is not None:
            arrays[f"heads{index}"] = np.frombuffer(side.heads.data, np.uint8)
    described = [{**vars(side), "losses": None, "matches": None, "heads": None} for side in sides]
    header = {"key": key, "address": address, "bar": bar and vars(bar), "sides": described}
    axes = {"n_steps": n_steps, "guessing": guessing, "moment": moment}
    return Picture("training/element.js", pack(header | axes, arrays), key, ("ended",))
