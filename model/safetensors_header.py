"""The header of a safetensors file, bounded before it is parsed: who wrote the file chose how long that takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import SEEK_END
from itertools import islice
from typing import IO, Any

from model.texts import texts_of

say = texts_of(__name__)

MOST_BYTES = 8 * 2**20
"""The longest header that is read, unless the reader says otherwise."""

MOST_TENSORS = 10_000
"""The most tensors of a file, unless the reader says otherwise."""

_LENGTH_BYTES = 8
_OBJECT = re.compile(rb'\{\s*"')
"""The beginning of a JSON object with a key: of the header, of each tensor. In a text the key's mark is escaped."""


def read_header(
    file: IO[bytes], *, damaged: str, most_bytes: int = MOST_BYTES, most_tensors: int = MOST_TENSORS
) -> Mapping[str, Any]:
    """Read what a file says of its tensors, by name, and of itself, under ``__metadata__``.

    Args:
        file: all of it, open for reading.
        damaged: what to say of a file that has no such header.
        most_bytes: the longest header that is parsed.
        most_tensors: the most tensors, before anything is parsed.

    Raises:
        ValueError: it has none, or a larger one.
    """
    size = file.seek(0, SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if not 2 <= length <= size - _LENGTH_BYTES:
        raise ValueError(damaged)
    if length > most_bytes:
        raise ValueError(say("long_header", length=length, most=most_bytes))
    content = file.read(length)
    n_others = 2  # the header itself and its metadata
    if next(islice(_OBJECT.finditer(content), n_others + most_tensors, None), None):
        raise ValueError(say("many_arrays", most=most_tensors))
    try:
        header = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(damaged) from error
    if not isinstance(header, dict):
        raise ValueError(damaged)
    return header
