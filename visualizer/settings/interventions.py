"""The replacements of a model's tensors, as a link holds them, in the order in which they were asked for.

Parts are separated by ``~``. Each is the path of a stage, perhaps one of its heads and one of its rows, and what is
put there:

    decoder.layers.0.self_attention.context-h1-zero~decoder.layers.1.norm1-r4-mean
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast, get_args

from model.texts import texts_of

say = texts_of(__name__)

Becomes = Literal["zero", "mean", "other"]
"""Zeros, the mean of all rows, or what the same model computed there of another text."""

MOST = 32

_PART = re.compile(
    rf"([A-Za-z_0-9.:]{{1,200}})(?:-h(\d{{1,3}}))?(?:-r(\d{{1,4}}))?-({'|'.join(get_args(Becomes))})"
)


@dataclass(frozen=True)
class Intervention:
    """One tensor, or a part of it, that is not what the model computed.

    Attributes:
        path: its stage.
        becomes: what is put in its place.
        head: the one head that it is about; None for all.
        row: the one row, which most stages have for each token; None for all.
    """

    path: str
    becomes: Becomes
    head: int | None = None
    row: int | None = None

    def covers(self, head: int, row: int) -> bool:
        """True if the cells of a head and a row of its stage are among what it replaces."""
        return self.head in (None, head) and self.row in (None, row)

    def __str__(self) -> str:
        """As it stands in a link."""
        head = "" if self.head is None else f"-h{self.head}"
        row = "" if self.row is None else f"-r{self.row}"
        return f"{self.path}{head}{row}-{self.becomes}"


def read_interventions(text: str) -> tuple[Intervention, ...]:
    """Read the interventions of a link.

    Raises:
        ValueError: it is not written as ``write_interventions`` writes.
    """
    parts = text.split("~") if text else []
    if len(parts) > MOST:
        raise ValueError(say("too_many", most=MOST))
    return tuple(map(_read, parts))


def write_interventions(interventions: Iterable[Intervention]) -> str:
    """As a link holds them."""
    return "~".join(map(str, interventions))


def _read(part: str) -> Intervention:
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(say("not_read"))
    path, head, row, becomes = found.groups()
    return Intervention(path, cast(Becomes, becomes), _number(head), _number(row))


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
