"""From a file or a pasted text to an array."""

from __future__ import annotations

import codecs
from pathlib import PurePath

from visualizer.views.lab.mask_files.entries import Array, quoted
from visualizer.views.lab.mask_files.nested import is_nested, read_nested
from visualizer.views.lab.mask_files.npy import read_npy
from visualizer.views.lab.mask_files.table import read_table

MAX_BYTES = 2**20
"""The largest file, and about the longest text."""

_TEXTS = (".csv", ".tsv", ".txt", ".json")


def read_upload(name: str, data: bytes) -> Array:
    """The array in a file: .npy, or a text that ``read_pasted`` reads as .csv, .tsv, .txt or .json.

    Args:
        name: the file's name; its ending tells what the file is.
        data: all of the file.

    Returns:
        (rows, columns) or (columns,), of bool, int64 or the floats of the file, at most 512 on a side.

    Raises:
        ValueError: it is none, or too large; one sentence that says what is wrong and where, rows and columns
            counted from 1.
    """
    _check_bytes(len(data))
    ending = PurePath(name).suffix.lower()
    if ending == ".npy":
        return read_npy(data)
    if ending not in _TEXTS:
        raise ValueError(f"the file ends in {quoted(ending)}: it must end in .npy, .csv, .tsv, .txt or .json")
    return _read_text(_decoded(data))


def read_pasted(text: str) -> Array:
    """The array in a text.

    Nested lists of JSON or Python, what NumPy and PyTorch print, or lines of values between commas, semicolons,
    tabs or blanks. Values are numbers, ``inf``, and ``True`` and ``False``.

    Returns:
        (rows, columns) or (columns,), of bool, int64 or float64, at most 512 on a side.

    Raises:
        ValueError: it is none, or too large; one sentence that says what is wrong and where, rows and columns
            counted from 1.
    """
    _check_bytes(len(text))
    return _read_text(text)


def _check_bytes(size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"this is {size / 2**20:.1f} MiB, and {MAX_BYTES // 2**20} MiB is the most")


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8") from None


def _read_text(text: str) -> Array:
    stripped = text.strip()
    if not stripped:
        raise ValueError("there is nothing in it")
    if stripped.startswith("{"):
        raise ValueError("this is an object in braces: give the nested lists in it alone")
    return read_nested(stripped) if is_nested(stripped) else read_table(stripped)
