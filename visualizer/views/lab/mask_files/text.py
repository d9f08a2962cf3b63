"""Arrays written as text: nested lists of JSON or Python, and the lines of a CSV file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from model.texts import texts_of
from visualizer.views.lab.mask_files.bounds import MAX_AXES, MAX_SIDE, check_shape, quoted

say = texts_of(__name__)

Entry = bool | int | float

_WORD = re.compile(r"\b(true|false|nan|inf(?:inity)?)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)|nan", re.ASCII)
_LONGEST_INTEGER = 18
"""The most digits of an integer that 64 bits always hold."""

_SEPARATORS = (";", ",", "\t")


def read_text(text: str) -> Tensor:
    """The array in a text without blanks around it.

    Raises:
        ValueError: it is none; the message says where.
    """
    text = text.replace("−", "-")
    if not text:
        raise ValueError(say("empty"))
    if text.startswith("["):
        return _tensor_of(_nested_lists(text))
    if "[" in text or text.startswith("{"):
        raise ValueError(say("lists_alone"))
    array = _tensor_of(_rows(text))
    return array.flatten() if array.shape[1] == 1 else array  # one row that is written downwards


def _nested_lists(text: str) -> object:
    """The lists, by the parser of JSON, which also takes Python's words here, such as True and inf."""
    plain = _WORD.sub(lambda word: json.dumps(_entry(word[0])), text)
    try:
        return json.loads(plain, parse_int=_integer)
    except json.JSONDecodeError as error:
        rest = plain[error.pos :]
        raise ValueError(say("no_lists", part=quoted(rest)) if rest else say("never_closed")) from None
    except RecursionError:
        raise ValueError(say("too_deep")) from None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits.lstrip("+-")) <= _LONGEST_INTEGER else float(digits)


def _rows(text: str) -> list[list[Entry]]:
    """The entries of each line between the first separator that the text has, else between blanks."""
    separator = next((sign for sign in _SEPARATORS if sign in text), None)
    rows: list[list[Entry]] = []
    for line in filter(str.strip, text.splitlines()):
        # One more than fits, and the rest of the line, which is not looked at.
        cells = [cell.strip().strip('"') for cell in line.strip(" ").split(separator, MAX_SIDE + 1)]
        if len(cells) > 1 and not cells[-1]:
            del cells[-1]  # a separator at the end of the line
        check_shape((len(rows) + 1, len(cells)))
        entries = [_entry(cell) for cell in cells]
        if not rows and any(cells) and all(entry is None for entry in entries):
            raise ValueError(say("header", line=quoted(line.strip())))
        for column, (cell, entry) in enumerate(zip(cells, entries, strict=True), start=1):
            if entry is None:
                raise _no_entry(cell, len(rows) + 1, column)
        rows.append([entry for entry in entries if entry is not None])
    return rows


def _entry(cell: str) -> Entry | None:
    """A number, True or False in any case; None for anything else."""
    plain = cell.lower()
    if plain in ("true", "false"):
        return plain == "true"
    if not _NUMBER.fullmatch(plain):
        return None
    return _integer(plain) if plain.lstrip("+-").isdigit() else float(plain)


def _no_entry(entry: object, row: int, column: int) -> ValueError:
    if entry == "":
        return ValueError(say("empty_entry", row=row, column=column))
    return ValueError(say("no_entry", row=row, column=column, text=quoted(str(entry))))


def _tensor_of(lists: object) -> Tensor:
    """The tensor of nested lists, all as deep and as long as each other.

    Raises:
        ValueError: they differ, booleans stand beside numbers, or the shape is none of a mask.
    """
    shape: list[int] = []
    level: list[object] = [lists]
    while any(isinstance(one, list) for one in level) and len(shape) <= MAX_AXES:
        below: list[object] = []
        for row, one in enumerate(level, start=1):
            if not isinstance(one, list):
                raise ValueError(say("value_beside_lists", value=quoted(str(one))))
            if row > 1 and len(one) != shape[-1]:
                raise ValueError(say("uneven_rows", row=row, n_values=len(one), n_first=shape[-1]))
            if row == 1:
                shape.append(len(one))
            below += one
        level = below
    check_shape(shape)
    return torch.tensor(level, dtype=_dtype_of(level, shape[-1])).reshape(shape)


def _dtype_of(entries: Sequence[object], n_columns: int) -> torch.dtype:
    kinds = set(map(type, entries))
    for dtype, held in ((torch.bool, {bool}), (torch.int64, {int}), (torch.float64, {int, float})):
        if kinds <= held:
            return dtype
    fitting = (bool,) if isinstance(entries[0], bool) else (int, float)
    place, entry = next(one for one in enumerate(entries) if type(one[1]) not in fitting)
    row, column = (part + 1 for part in divmod(place, n_columns))
    if isinstance(entry, bool | int | float):
        raise ValueError(say("mixed", row=row, column=column, entry=entry, first=entries[0]))
    raise _no_entry(entry, row, column)
