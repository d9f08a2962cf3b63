"""Cells that the browser sends as one bit each, in base64."""

from __future__ import annotations

import base64
import binascii

import numpy as np
from numpy.typing import NDArray


def cells_of(text: object, shape: tuple[int, int]) -> NDArray[np.bool_] | None:
    """Return the cells of ``shape`` that are on; None unless each has one bit, and zeros fill up the last byte."""
    n_cells = shape[0] * shape[1]
    n_bytes = (n_cells + 7) // 8
    # The length is looked at first: a text of any size is refused before it is decoded.
    if not isinstance(text, str) or len(text) != 4 * ((n_bytes + 2) // 3):
        return None
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except (binascii.Error, ValueError):
        return None
    bits = np.unpackbits(data)
    if len(data) != n_bytes or bits[n_cells:].any():
        return None
    return bits[:n_cells].reshape(shape).astype(np.bool_)
