"""Expressions to begin with: masks and changes of the scores of the literature."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ReadyExpression:
    """An expression to begin with.

    Attributes:
        name: a short name without blanks.
        title: what people call it.
        text: the expression.
        note: one line on what it is for, and where it comes from.
    """

    name: str
    title: str
    text: str
    note: str


def _read(file: str) -> tuple[ReadyExpression, ...]:
    tables = tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return tuple(ReadyExpression(name, **table) for name, table in tables.items())


READY = _read("ready.toml")
"""Masks to begin with, the best known first."""

READY_SCORES = _read("ready_scores.toml")
"""Changes of the scores to begin with, the best known first."""
