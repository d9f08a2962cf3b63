"""Packed bytes read as the browser reads them."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

_KINDS = {"f4": np.float32, "u1": np.uint8, "u2": np.uint16, "i4": np.int32}


def unpacked(body: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The header and the arrays; steps become the numbers that they stand for."""
    (length,) = struct.unpack_from("<I", body)
    header = json.loads(body[4 : 4 + length])
    arrays = {}
    for name, described in header["arrays"].items():
        count = int(np.prod(described["shape"]))
        found = np.frombuffer(body, _KINDS[described["dtype"]], count, 4 + length + described["offset"])
        steps = found.reshape(described["shape"])
        arrays[name] = (
            steps ** np.float64(described["power"]) * described["scale"] if "scale" in described else steps
        )
    return header, arrays
