"""The entries of an array written as text, and the array that rows of them make."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of

say = texts_of(__name__)
MAX_SIDE = 2048
"""The most rows of one mask, and the most entries in a row."""

MAX_ENTRIES = 2**22
"""The most entries of all masks together: one mask of the greatest size, or 64 of 256 tokens."""

MAX_AXES = 4
"""As many as (B, H, Tq, Tk)."""

Entry = bool | int | float
Array = NDArray[np.bool_] | NDArray[np.integer] | NDArray[np.floating]

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WORDS: dict[str, Entry] = {
    "true": True,
    "false": False,
    "nan": math.nan,
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in ("inf", "infinity")},
}
_LONGEST = 40


def read_entry(text: str) -> Entry | None:
    """One entry: a number, True or False in any case; None if it is neither."""
    if len(text) > _LONGEST:
        return None
    plain = text.replace("−", "-").lower()
    if plain in _WORDS:
        return _WORDS[plain]
    if _INTEGER.fullmatch(plain):
        return int(plain)
    return float(plain) if _NUMBER.fullmatch(plain) else None


def read_entry_at(text: str, row: int, column: int) -> Entry:
    """One entry, of a place counted from 1.

    Raises:
        ValueError: it is neither a number nor True or False.
    """
    if not text:
        raise ValueError(say("empty_entry", row=row, column=column))
    entry = read_entry(text)
    if entry is None:
        raise ValueError(say("no_entry", row=row, column=column, text=quoted(text)))
    return entry


def quoted(text: str) -> str:
    """A piece of what was given, short and on one line."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def check_side(n_rows: int, n_columns: int) -> None:
    """Refuse an array with too many rows or columns.

    Raises:
        ValueError: it has.
    """
    if n_rows > MAX_SIDE:
        raise ValueError(say("many_rows", most=MAX_SIDE))
    if n_columns > MAX_SIDE:
        raise ValueError(say("many_columns", most=MAX_SIDE))


def check_entries(count: int) -> None:
    """Refuse arrays that have too many entries together.

    Raises:
        ValueError: they have.
    """
    if count > MAX_ENTRIES:
        raise ValueError(say("many_entries", most=MAX_ENTRIES))


def check_shape(shape: Sequence[int]) -> None:
    """Refuse a shape that no mask has, or that is too large.

    Raises:
        ValueError: it is one.
    """
    if not shape:
        raise ValueError(say("single_number"))
    if len(shape) > MAX_AXES:
        raise ValueError(say("many_axes", n_axes=len(shape), most=MAX_AXES))
    check_side(shape[-2] if len(shape) > 1 else 1, shape[-1])
    if 0 in shape:
        raise ValueError(say("empty_shape", shape=tuple(shape)))
    check_entries(math.prod(shape))


def array_of(rows: Sequence[Sequence[Entry]]) -> Array:
    """The (rows, columns) array of some rows, at least one.

    Raises:
        ValueError: rows differ in length, booleans stand beside numbers, or there are no entries.
    """
    for row, entries in enumerate(rows, start=1):
        if len(entries) != len(rows[0]):
            raise ValueError(say("uneven_rows", row=row, n_values=len(entries), n_first=len(rows[0])))
    if not rows[0]:
        raise ValueError(say("empty"))
    is_boolean = isinstance(rows[0][0], bool)
    for row, entries in enumerate(rows, start=1):
        for column, entry in enumerate(entries, start=1):
            if isinstance(entry, bool) != is_boolean:
                raise ValueError(say("mixed", row=row, column=column, entry=entry, first=rows[0][0]))
    if is_boolean:
        return np.array(rows, dtype=np.bool_)
    is_integer = all(isinstance(entry, int) for entries in rows for entry in entries)
    return np.array(rows, dtype=np.int64) if is_integer else np.array(rows, dtype=np.float64)
