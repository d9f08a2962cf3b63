"""The size of a checkpoint, read from the beginnings of its files: nothing is loaded."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from model.safetensors_header import read_header

_MOST_HEADER_BYTES = 100 * 2**20
_MOST_TENSORS = 100_000  # of one file: those of the largest checkpoints have as many in all
_MOST_ENTRIES = 10_000_000
_GGUF_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""The bytes of a number, by the number of its type."""
_GGUF_TEXT, _GGUF_ARRAY = 8, 9


def most_bytes() -> int:
    """The most memory that loaded checkpoints may take together.

    ``HEADLIGHT_MEMORY_GB`` says it in units of 10**9 bytes; otherwise it is half of the machine's memory.

    Raises:
        ValueError: the variable is no number above 0.
    """
    text = os.environ.get("HEADLIGHT_MEMORY_GB")
    if text is None:
        return (
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 8 * 10**9
        )
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        raise ValueError(f"HEADLIGHT_MEMORY_GB is {text!r}: it must be a number above 0, such as 8.")
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
    damaged = f"{file.name} is not a safetensors file, or is damaged."
    with file.open("rb") as stream:
        header = read_header(stream, damaged=damaged, most_bytes=_MOST_HEADER_BYTES, most_tensors=_MOST_TENSORS)
    return {name: tensor for name, tensor in header.items() if name != "__metadata__"}


def n_weights_of_gguf(file: Path) -> int:
    """Count the numbers that a GGUF file holds, in a fiftieth of the time that the reader of ``gguf`` takes.

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
            for _ in range(n_values):
                _pass_over(stream, _GGUF_TEXT)  # its name
                _pass_over(stream, _number(stream, "I"))
            return sum(_n_numbers(stream) for _ in range(n_tensors))
        except (struct.error, KeyError, OverflowError, MemoryError) as error:
            raise ValueError(f"{file.name} is damaged.") from error


def _n_numbers(stream: IO[bytes]) -> int:
    """Count the numbers of the tensor that is described next."""
    _pass_over(stream, _GGUF_TEXT)
    n_dims = _number(stream, "I")
    shape = struct.unpack(f"<{n_dims}Q", stream.read(8 * n_dims))
    struct.unpack("<IQ", stream.read(12))  # its number type and its place
    return math.prod(shape)


def _number(stream: IO[bytes], code: str) -> int:
    found: int = struct.unpack(f"<{code}", stream.read(struct.calcsize(f"<{code}")))[0]
    return found


def _pass_over(stream: IO[bytes], kind: int) -> None:
    """Go on behind a value of a kind."""
    if kind == _GGUF_TEXT:
        stream.seek(_number(stream, "Q"), os.SEEK_CUR)
    elif kind != _GGUF_ARRAY:
        stream.seek(_GGUF_BYTES[kind], os.SEEK_CUR)
    else:
        of, length = struct.unpack("<IQ", stream.read(12))
        if length > _MOST_ENTRIES:
            raise ValueError("an array of the file is too long: it is damaged.")
        if of in _GGUF_BYTES:
            stream.seek(length * _GGUF_BYTES[of], os.SEEK_CUR)
        else:
            for _ in range(length):
                _pass_over(stream, of)
