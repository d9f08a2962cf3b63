"""One bytes object for the browser: a JSON header, then raw arrays.

Layout: `[u32 little-endian header length][JSON header, padded with spaces][arrays, each on a multiple of 8]`.
The first array starts on a multiple of 8 from the beginning; offsets in the header count from there.
`shared/payload.js` reads it.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from model.texts import texts_of

say = texts_of(__name__)

Array = npt.NDArray[Any]

Precision = Literal["fit", "exact", "16", "8"]
"""The precision in which numbers travel: as ``fit_precision`` says, as float32, or in steps of 16 or 8 bits."""

ALIGNMENT = 8
DEFAULT_BUDGET_BYTES = 16 * 2**20
LARGEST_FLOAT16 = float(np.finfo(np.float16).max)

_DTYPE_NAMES = {
    np.dtype(np.float32): "f4",
    np.dtype(np.float16): "f2",
    np.dtype(np.uint8): "u1",
    np.dtype(np.uint16): "u2",
    np.dtype(np.int32): "i4",
}
_CONVERSIONS: dict[np.dtype[Any], type[np.generic]] = {
    np.dtype(np.float64): np.float32,
    np.dtype(np.int64): np.int32,
    np.dtype(np.bool_): np.uint8,
}


@dataclass(frozen=True)
class Scaled:
    """Unsigned integers that stand for `values**power * scale`."""

    values: npt.NDArray[np.unsignedinteger[Any]]
    scale: float
    power: int = 1

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """The numbers that the integers stand for."""
        return np.asarray(self.values ** np.float64(self.power) * self.scale)


def in_precision(array: Array, precision: Precision) -> Array | Scaled:
    """The array as it is to travel.

    Raises:
        ValueError: steps are asked for and not all numbers are between 0 and 1.
    """
    if precision == "fit":
        return fit_precision(array)
    single = np.asarray(array, dtype=np.float32)
    if precision == "exact":
        return single
    if not (single.min() >= 0.0 and single.max() <= 1.0):  # not a number is neither
        raise ValueError(say("no_steps"))
    return _in_steps(single) if precision == "16" else _in_root_steps(single)


def fit_precision(array: Array, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> Array | Scaled:
    """The array in the highest precision that fits the budget.

    float32 (4 bytes a number) if it fits. Else numbers in [0, 1] become 16-bit and then 8-bit steps (four and two
    decimals), and others float16 where its range holds every finite number. Steps are both more exact for weights
    than float16 and twenty times faster to make. An array that may not be lowered further is returned in the lowest
    precision that it allows, even above the budget.
    """
    single = np.asarray(array, dtype=np.float32)
    if single.nbytes <= budget_bytes:
        return single
    low, high = _finite_range(single)
    if low >= 0.0 and high <= 1.0 and bool(np.isfinite(single.sum())):
        return _in_steps(single) if single.nbytes // 2 <= budget_bytes else _in_root_steps(single)
    return single.astype(np.float16) if max(-low, high) <= LARGEST_FLOAT16 else single


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array | Scaled]) -> bytes:
    """Pack a JSON header, in which dataclasses are objects, and named arrays into one bytes object.

    Booleans travel as uint8, float64 as float32 and int64 as int32. Raises ValueError for any other dtype, for an
    integer that int32 cannot hold, and for a NaN or an infinity in the header.
    """
    described: dict[str, dict[str, Any]] = {}
    chunks: list[bytes | memoryview] = []
    offset = 0
    for name, entry in arrays.items():
        values = _portable(name, entry.values if isinstance(entry, Scaled) else entry)
        described[name] = {"dtype": _DTYPE_NAMES[values.dtype], "shape": list(values.shape), "offset": offset}
        if isinstance(entry, Scaled):
            described[name] |= {"scale": entry.scale, "power": entry.power}
        padding = -values.nbytes % ALIGNMENT
        chunks += [values.reshape(-1).view(np.uint8).data, bytes(padding)]
        offset += values.nbytes + padding
    whole = {**header, "arrays": described}
    text = json.dumps(whole, default=fields_of, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(4 + len(text)) % ALIGNMENT)
    return b"".join([struct.pack("<I", len(text)), text, *chunks])


def fields_of(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """The fields of a dataclass without its arrays, or what its ``as_header`` makes of them."""
    if hasattr(record, "as_header"):
        return dict(record.as_header())
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: value for name, value in values.items() if not isinstance(value, np.ndarray)}


def header_of(packed: bytes) -> dict[str, Any]:
    """The JSON header of packed bytes."""
    (length,) = struct.unpack_from("<I", packed)
    header: dict[str, Any] = json.loads(packed[4 : 4 + length])
    return header


def _portable(name: str, array: Array) -> Array:
    """A contiguous little-endian array of a dtype that the browser reads."""
    target = _CONVERSIONS.get(array.dtype)
    if target is np.int32 and array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        raise ValueError(f"array {name!r} holds an integer that int32 cannot hold")
    converted = array if target is None else array.astype(target)
    if converted.dtype not in _DTYPE_NAMES:
        known = ", ".join(str(dtype) for dtype in _DTYPE_NAMES)
        raise ValueError(f"array {name!r} has dtype {array.dtype}: convert it to one of {known}")
    return np.ascontiguousarray(converted).reshape(array.shape)


def _finite_range(array: npt.NDArray[np.float32]) -> tuple[float, float]:
    """The smallest and the largest finite number."""
    low, high = float(array.min()), float(array.max())
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    finite = array[np.isfinite(array)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _in_steps(array: npt.NDArray[np.float32]) -> Scaled:
    """Numbers in [0, 1] rounded to the nearest of 65,536 equal steps."""
    most = int(np.iinfo(np.uint16).max)
    scaled = array * np.float32(most)
    scaled += np.float32(0.5)
    return Scaled(scaled.astype(np.uint16), 1 / most)


def _in_root_steps(array: npt.NDArray[np.float32]) -> Scaled:
    """Numbers in [0, 1] in 256 steps that are equal for their square roots, up to the largest of them.

    So small numbers, whose colours a scale by the square root tells apart, stay apart in eight bits.
    """
    most = int(np.iinfo(np.uint8).max)
    largest = float(array.max()) or 1.0
    roots = np.sqrt(array * np.float32(1 / largest))
    roots *= np.float32(most)
    roots += np.float32(0.5)
    return Scaled(roots.astype(np.uint8), largest / most**2, power=2)
