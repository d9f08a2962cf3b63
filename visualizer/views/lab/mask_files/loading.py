"""From a file or a pasted text to tensors."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from pathlib import PurePath

from torch import Tensor

from model.texts import texts_of
from visualizer.settings.fields import MAX_TYPED
from visualizer.views.lab.mask_files.binary import BINARY_READERS
from visualizer.views.lab.mask_files.bounds import check_bytes, quoted
from visualizer.views.lab.mask_files.text import read_text

say = texts_of(__name__)

MAX_BYTES = 2**24
"""The largest file."""

MAX_TEXT_BYTES = MAX_TYPED["pasted_mask"]
"""About the longest text."""

_TEXTS = (".csv", ".tsv", ".txt", ".json")
ENDINGS = (*BINARY_READERS, *_TEXTS)
"""The endings that the name of a file can have."""


def uploaded(name: str, data: bytes) -> Mapping[str, Tensor]:
    """The arrays in a file, by name: one without a name, or those of a .npz, .safetensors, .pt or .pth.

    Args:
        name: the file's name; its ending tells what the file is.
        data: all of the file.

    Returns:
        Tensors of one axis to four, at most 2,048 queries and keys.

    Raises:
        ValueError: there is none, or it is too large; one sentence.
    """
    check_bytes(len(data), MAX_BYTES)
    ending = PurePath(name).suffix.lower()
    if ending in BINARY_READERS:
        return BINARY_READERS[ending](data)
    if ending in _TEXTS:
        return {"": pasted(_decoded(data))}
    raise ValueError(say("other_ending", ending=quoted(ending), endings=", ".join(ENDINGS)))


def pasted(text: str) -> Tensor:
    """The array in a text: nested lists, or lines of values between commas, semicolons, tabs or blanks.

    Returns:
        A bool, int64 or float64 tensor of one axis to four, at most 2,048 queries and keys.

    Raises:
        ValueError: it is none, or too large; one sentence that says what is wrong and where, rows and columns
            counted from 1.
    """
    check_bytes(len(text), MAX_TEXT_BYTES)
    return read_text(text.strip())


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(say("no_text")) from None
