"""The bounds of an array that can be a mask."""

from __future__ import annotations

import math
from collections.abc import Sequence

from model.texts import texts_of

say = texts_of(__name__)

MAX_SIDE = 2048
"""The most rows of one mask, and the most entries in a row."""

MAX_ENTRIES = 2**22
"""The most entries of all masks together: one mask of the greatest size, or 64 of 256 tokens."""

MAX_AXES = 4
"""As many as (B, H, Tq, Tk)."""

_LONGEST = 40


def check_bytes(size: int, most: int) -> None:
    """Refuse a file or a text that is too large.

    Raises:
        ValueError: it is.
    """
    if size > most:
        raise ValueError(say("too_large", size=size / 2**20, most=most // 2**20))


def check_shape(shape: Sequence[int]) -> None:
    """Refuse a shape that no mask has, or that is too large.

    Raises:
        ValueError: it is one.
    """
    if not shape:
        raise ValueError(say("single_number"))
    if len(shape) > MAX_AXES:
        raise ValueError(say("many_axes", n_axes=len(shape), most=MAX_AXES))
    n_rows, n_columns = (1, *shape)[-2:]
    if n_rows > MAX_SIDE:
        raise ValueError(say("many_rows", most=MAX_SIDE))
    if n_columns > MAX_SIDE:
        raise ValueError(say("many_columns", most=MAX_SIDE))
    if 0 in shape:
        raise ValueError(say("empty_shape", shape=tuple(shape)))
    if math.prod(shape) > MAX_ENTRIES:
        raise ValueError(say("many_entries", most=MAX_ENTRIES))


def quoted(text: str) -> str:
    """A piece of what was given, short and on one line."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
