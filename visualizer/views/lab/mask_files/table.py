"""Arrays written as lines: separated by commas, semicolons, tabs or blanks."""

from __future__ import annotations

from model.texts import texts_of
from visualizer.views.lab.mask_files.entries import (
    MAX_SIDE,
    Array,
    Entry,
    array_of,
    check_entries,
    check_side,
    quoted,
    read_entry,
    read_entry_at,
)

say = texts_of(__name__)
_SEPARATORS = (";", ",", "\t")


def read_table(text: str) -> Array:
    """The array of some lines, each a row; a single column is one row that is written downwards.

    Raises:
        ValueError: it is none; the message says where.
    """
    separator = next((sign for sign in _SEPARATORS if sign in text), None)
    rows: list[list[Entry]] = []
    for line in text.splitlines():
        if line.strip():
            rows.append(_row(line, separator, len(rows) + 1))
            check_side(len(rows), len(rows[-1]))
            check_entries(len(rows) * len(rows[-1]))
    array = array_of(rows)
    return array.reshape(-1) if array.shape[1] == 1 else array


def _row(line: str, separator: str | None, row: int) -> list[Entry]:
    # One more than fits, and the rest of the line, which is not looked at.
    cells = [cell.strip().strip('"') for cell in line.strip(" ").split(separator, MAX_SIDE + 1)]
    if len(cells) > 1 and not cells[-1]:
        del cells[-1]  # a separator at the end of the line
    check_side(1, len(cells))
    if row == 1 and all(read_entry(cell) is None for cell in cells) and any(cells):
        raise ValueError(say("header", line=quoted(line.strip())))
    return [read_entry_at(cell, row, column) for column, cell in enumerate(cells, start=1)]
