"""NumPy's own files, read without pickle.

The format is that of numpy.lib.format: a magic string, the version, the header's length, the header (a dictionary
written in Python) and the entries.
"""

from __future__ import annotations

import math
import re

import numpy as np

from visualizer.views.lab.mask_files.entries import Array, check_shape, quoted

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}
_LONGEST_HEADER = 1024
_TYPE = re.compile(r"""["']descr["']\s*:\s*(?:["']([^"']*)["']|\[)""")
_ORDER = re.compile(r"""["']fortran_order["']\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""["']shape["']\s*:\s*\(((?:\s*[0-9]+\s*,)*(?:\s*[0-9]+)?)\s*\)""")
_INTEGERS = re.compile(r"[0-9]+")
_NUMBERS = re.compile(r"[<>|=]?([iu][1248]|f[248])")
_KEPT = ("uint8", "int8", "int16", "int32", "int64")
_BOOLEANS = re.compile(r"[<>|=]?b1|\?")


def read_npy(data: bytes) -> Array:
    """The array of a .npy file, of one axis to four, in its own number type where PyTorch has it.

    Raises:
        ValueError: it is no such file, cut off, or has entries or a shape that no mask has.
    """
    header, entries = _split(data)
    kind, shape = _type_of(header), _shape_of(header)
    size = math.prod(shape) * kind.itemsize
    if len(entries) != size:
        raise ValueError(f"the header promises {size:,} bytes of entries and the file has {len(entries):,}")
    order = _ORDER.search(header)
    if order is None:
        raise ValueError("the header of the .npy file does not say in which order the entries are")
    array = np.frombuffer(entries, dtype=kind).reshape(shape, order="F" if order.group(1) == "True" else "C")
    if _BOOLEANS.fullmatch(_type_text(header)):
        return array.astype(np.bool_)
    if kind.kind == "f":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return array.astype(kind.newbyteorder("="))
    if kind.newbyteorder("=").name in _KEPT:
        return array.astype(kind.newbyteorder("="))
    if (array > np.iinfo(np.int64).max).any():
        return array.astype(np.float64)
    return array.astype(np.int64)


def _split(data: bytes) -> tuple[str, bytes]:
    """The header, and the entries behind it."""
    start = len(_MAGIC) + 2
    if not data.startswith(_MAGIC) or len(data) < start:
        raise ValueError("this is no .npy file: it does not begin like one")
    version = data[len(_MAGIC)]
    if version not in _LENGTH_BYTES:
        raise ValueError(f"this .npy file is of version {version}, and 1 to 3 are known")
    n_bytes = _LENGTH_BYTES[version]
    length = int.from_bytes(data[start : start + n_bytes], "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"the header of the .npy file has {length:,} bytes: that of a mask has about 100")
    end = start + n_bytes + length
    if len(data) < end:
        raise ValueError("the .npy file is cut off within its header")
    return data[start + n_bytes : end].decode("latin-1"), data[end:]


def _type_text(header: str) -> str:
    found = _TYPE.search(header)
    if found is None:
        raise ValueError("the header of the .npy file does not say of which type the entries are")
    if found.group(1) is None:
        raise ValueError("the .npy file holds records of several fields: a mask has booleans, integers or floats")
    return found.group(1)


def _type_of(header: str) -> np.dtype[np.generic]:
    text = _type_text(header)
    if _BOOLEANS.fullmatch(text):
        return np.dtype(np.uint8)  # so that a byte other than 0 and 1 is no trouble
    if not _NUMBERS.fullmatch(text):
        objects = " (Python objects)" if text.endswith("O") else ""
        raise ValueError(
            f"the .npy file has entries of type {quoted(text)}{objects}: a mask has booleans, integers or floats"
        )
    return np.dtype(text)


def _shape_of(header: str) -> tuple[int, ...]:
    found = _SHAPE.search(header)
    if found is None:
        raise ValueError("the header of the .npy file does not say which shape the array has")
    shape = tuple(int(size) for size in _INTEGERS.findall(found.group(1)))
    check_shape(shape)
    return shape
