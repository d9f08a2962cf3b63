"""The size of a checkpoint, read from the beginnings of its files: nothing is loaded."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from model.safetensors_header import read_header

_MOST_HEADER_BYTES = 100 * 2**20
_MOST_TENSORS = 100_000  # of one file: those of the largest checkpoints have as many in all
_MOST_ENTRIES = 10_000_000
_GGUF_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_GGUF_TEXT, _GGUF_ARRAY = 8, 9
_SHOWN_TEXT = 10_000


def most_bytes() -> int:
    """The most memory that loaded checkpoints may take together.

    ``HEADLIGHT_MEMORY_GB`` says it in units of 10**9 bytes; otherwise it is half of the machine's memory.

    Raises:
        ValueError: the variable is no number above 0.
    """
    given = os.environ.get("HEADLIGHT_MEMORY_GB")
    if given is None:
        return (
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 8 * 10**9
        )
    try:
        number = float(given)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        raise ValueError(f"HEADLIGHT_MEMORY_GB is {given!r}: it must be a number above 0, such as 8.")
    return int(number * 10**9)


def in_words(n_bytes: float) -> str:
    """``93 MB``, ``1.2 GB``: in units of 1000, as files are measured."""
    if n_bytes < 999_500:
        return f"{n_bytes / 1000:.0f} kB"
    if n_bytes < 999_500_000:
        return f"{n_bytes / 10**6:.0f} MB"
    return f"{n_bytes / 10**9:.1f} GB"


def n_weights(files: Sequence[Path]) -> int:
    """Count the numbers that some safetensors files hold.

    Raises:
        ValueError: one is damaged.
    """
    return sum(math.prod(tensor["shape"]) for file in files for tensor in _safetensors_header(file).values())


def _safetensors_header(file: Path) -> Mapping[str, Any]:
    damaged = f"{file.name} is no safetensors file, or it is damaged."
    with file.open("rb") as stream:
        header = read_header(stream, damaged=damaged, most_bytes=_MOST_HEADER_BYTES, most_tensors=_MOST_TENSORS)
    return {name: tensor for name, tensor in header.items() if name != "__metadata__"}


@dataclass(frozen=True)
class GgufHeader:
    """The header of a GGUF file.

    Attributes:
        values: numbers and texts by their names, such as ``general.architecture``; arrays are left out.
        n_weights: how many numbers its tensors hold.
    """

    values: Mapping[str, Any]
    n_weights: int


def gguf_header(file: Path) -> GgufHeader:
    """Read the beginning of a GGUF file.

    Raises:
        ValueError: it is none, of a version that is not read, or damaged.
    """
    with file.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ValueError(f"{file.name} is no GGUF file.")
        try:
            version, n_tensors, n_values = struct.unpack("<IQQ", stream.read(20))
            if version not in (2, 3):
                raise ValueError(f"{file.name} is GGUF of version {version}: 2 and 3 are read.")
            if max(n_tensors, n_values) > _MOST_ENTRIES:
                raise ValueError(f"{file.name} is damaged.")
            values = {}
            for _ in range(n_values):
                name = _text(stream)
                values[name] = _value(stream, _number(stream, "I"))
            count = 0
            for _ in range(n_tensors):
                _text(stream)
                shape = struct.unpack(f"<{(n_dims := _number(stream, 'I'))}Q", stream.read(8 * n_dims))
                struct.unpack("<IQ", stream.read(12))  # its number type and its place
                count += math.prod(shape)
        except (struct.error, UnicodeDecodeError, KeyError, OverflowError, MemoryError) as error:
            raise ValueError(f"{file.name} is damaged.") from error
    return GgufHeader({name: value for name, value in values.items() if value is not None}, count)


def _number(stream: IO[bytes], code: str) -> Any:  # noqa: ANN401 - a number of any type
    size = struct.calcsize(f"<{code}")
    return struct.unpack(f"<{code}", stream.read(size))[0]


def _text(stream: IO[bytes]) -> str:
    length = _number(stream, "Q")
    if length > _SHOWN_TEXT:
        stream.seek(length, os.SEEK_CUR)
        return ""
    return stream.read(length).decode()


def _value(stream: IO[bytes], kind: int) -> Any:  # noqa: ANN401
    """A number or a text; None for an array, which is passed over."""
    if kind == _GGUF_TEXT:
        return _text(stream)
    if kind != _GGUF_ARRAY:
        return _number(stream, _GGUF_NUMBERS[kind])
    of, length = struct.unpack("<IQ", stream.read(12))
    if length > _MOST_ENTRIES:
        raise ValueError("an array of the file is too long: it is damaged.")
    if of in _GGUF_NUMBERS:
        stream.seek(length * struct.calcsize(f"<{_GGUF_NUMBERS[of]}"), os.SEEK_CUR)
        return None
    for _ in range(length):
        if of == _GGUF_TEXT:
            stream.seek(_number(stream, "Q"), os.SEEK_CUR)
        else:
            _value(stream, of)
    return None
