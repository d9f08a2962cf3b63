"""NumPy's own files, read without pickle."""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.views.lab.mask_files.entries import Array, check_shape, quoted

say = texts_of(__name__)
_LONGEST_HEADER = 1024
_VERSIONS = (1, 2, 3)
_LARGEST_NUMBER = 8  # bytes
_KEPT = ("uint8", "int8", "int16", "int32", "int64")


def read_npy(data: bytes) -> Array:
    """The array of a .npy file, of one axis to four, in its own number type where PyTorch has it.

    Raises:
        ValueError: it is no such file, cut off, or has entries or a shape that no mask has.
    """
    file = BytesIO(data)
    shape, is_fortran, kind = _header(file)
    entries = data[file.tell() :]
    size = math.prod(shape) * kind.itemsize
    if len(entries) != size:
        raise ValueError(say("other_size", promised=size, n_bytes=len(entries)))
    order: Literal["C", "F"] = "F" if is_fortran else "C"
    if kind.kind == "b":  # a byte other than 0 and 1 is True
        return np.frombuffer(entries, np.uint8).reshape(shape, order=order).astype(np.bool_)
    own = kind.newbyteorder("=")
    array: NDArray[np.integer] | NDArray[np.floating] = np.frombuffer(entries, kind).reshape(shape, order=order)
    if kind.kind == "f":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return array.astype(own)
    if own.name in _KEPT:
        return array.astype(own)
    is_beyond = (array > np.iinfo(np.int64).max).any()
    return array.astype(np.float64) if is_beyond else array.astype(np.int64)


def _header(file: BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether the first axis runs fastest, and the type of the entries."""
    try:
        version, _ = npy.read_magic(file)
    except ValueError:
        raise ValueError(say("no_npy")) from None
    if version not in _VERSIONS:
        raise ValueError(say("unknown_version", version=version))
    read = npy.read_array_header_1_0 if version == 1 else npy.read_array_header_2_0
    try:
        shape, is_fortran, kind = read(file, max_header_size=_LONGEST_HEADER)
    except Exception as error:  # what a header does to NumPy's parser is not only a ValueError
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(say("unreadable_header", reason=quoted(reason))) from error
    _check_type(kind)
    if any(length < 0 for length in shape):
        raise ValueError(say("impossible_shape", shape=shape))
    check_shape(shape)
    return shape, is_fortran, kind


def _check_type(kind: np.dtype[Any]) -> None:
    if kind.names is not None:
        raise ValueError(say("records"))
    if kind.kind not in "biuf" or kind.itemsize > _LARGEST_NUMBER:
        objects, others = say("objects", dtype=quoted(kind.str)), say("other_type", dtype=quoted(kind.str))
        raise ValueError(objects if kind.hasobject else others)
