"""From a file or a pasted text to an array."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from pathlib import PurePath

import torch
from torch import Tensor

from model.texts import texts_of
from visualizer.settings.fields import MAX_TYPED
from visualizer.views.lab.mask_files.archives import ARCHIVES
from visualizer.views.lab.mask_files.entries import Array, quoted
from visualizer.views.lab.mask_files.nested import is_nested, read_nested
from visualizer.views.lab.mask_files.npy import read_npy
from visualizer.views.lab.mask_files.snippets import is_snippet, read_snippet
from visualizer.views.lab.mask_files.table import read_table

say = texts_of(__name__)
MAX_BYTES = 2**24
"""The largest file."""

MAX_TEXT_BYTES = MAX_TYPED["pasted_mask"]
"""About the longest text."""

_TEXTS = (".csv", ".tsv", ".txt", ".json")
ENDINGS = (".npy", *ARCHIVES, *_TEXTS)
"""The endings that the name of a file can have."""

_DTYPE = re.compile(r"dtype\s*=\s*['\"]?(?:\w+\.)*(\w+)['\"]?")
_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def uploaded(name: str, data: bytes) -> Mapping[str, Tensor]:
    """The arrays in a file, by name: one without a name, or those of a .npz, .safetensors or .pt.

    Raises:
        ValueError: there is none, or it is too large; one sentence.
    """
    _check_bytes(len(data), MAX_BYTES)
    ending = PurePath(name).suffix.lower()
    if ending in ARCHIVES:
        return ARCHIVES[ending](data)
    if ending in _TEXTS:
        return {"": pasted(_decoded(data))}
    return {"": torch.from_numpy(read_upload(name, data))}


def pasted(text: str) -> Tensor:
    """The array in a text, in the number type that the text names, such as ``dtype=torch.float16``.

    Raises:
        ValueError: it is none, or too large; one sentence.
    """
    array = torch.from_numpy(read_pasted(text))
    said = _DTYPE.search(text, max(0, text.rfind("]")))
    if said is None or said[1] not in _DTYPES:
        return array
    return array.to(getattr(torch, said[1]))


def read_upload(name: str, data: bytes) -> Array:
    """The array in a file: .npy, or a text that ``read_pasted`` reads as .csv, .tsv, .txt or .json.

    Args:
        name: the file's name; its ending tells what the file is.
        data: all of the file.

    Returns:
        One axis to four, of bool, the integers or the floats of the file, at most 2,048 on a side.

    Raises:
        ValueError: it is none, or too large; one sentence that says what is wrong and where, rows and columns
            counted from 1.
    """
    _check_bytes(len(data), MAX_BYTES)
    ending = PurePath(name).suffix.lower()
    if ending == ".npy":
        return read_npy(data)
    if ending not in _TEXTS:
        raise ValueError(say("other_ending", ending=quoted(ending), endings=", ".join(ENDINGS)))
    return _read_text(_decoded(data))


def read_pasted(text: str) -> Array:
    """The array in a text.

    Nested lists of JSON or Python, what NumPy and PyTorch print, or lines of values between commas, semicolons,
    tabs or blanks. Values are numbers, ``inf``, and ``True`` and ``False``.

    Returns:
        One axis to four, of bool, int64 or float64, at most 2,048 on a side.

    Raises:
        ValueError: it is none, or too large; one sentence that says what is wrong and where, rows and columns
            counted from 1.
    """
    _check_bytes(len(text), MAX_TEXT_BYTES)
    return _read_text(text)


def _check_bytes(size: int, most: int) -> None:
    if size > most:
        raise ValueError(say("too_large", size=size / 2**20, most=most // 2**20))


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(say("no_text")) from None


def _read_text(text: str) -> Array:
    stripped = text.strip()
    if not stripped:
        raise ValueError(say("empty"))
    if stripped.startswith("{"):
        raise ValueError(say("braces"))
    if is_snippet(stripped):
        return read_snippet(stripped)
    return read_nested(stripped) if is_nested(stripped) else read_table(stripped)
