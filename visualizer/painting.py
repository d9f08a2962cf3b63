"""A mask painted cell by cell, as text short enough for a link."""

from __future__ import annotations

import base64
import binascii

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.bool_]


def encode_mask(blocked: Cells) -> str:
    """Write which cells are blocked, (T, T), as base64url of T in two bytes and one bit per cell; "" for none."""
    if not blocked.any():
        return ""
    size = len(blocked).to_bytes(2, "big")
    return base64.urlsafe_b64encode(size + np.packbits(blocked).tobytes()).decode().rstrip("=")


def decode_mask(text: str, n_tokens: int) -> Cells:
    """Read which cells are blocked, (n_tokens, n_tokens).

    A mask painted on fewer tokens leaves the rest open; one painted on more is cut. Text that ``encode_mask`` did
    not write blocks nothing.
    """
    blocked = np.zeros((n_tokens, n_tokens), dtype=np.bool_)
    painted = _painted(text)
    shared = min(len(painted), n_tokens)
    blocked[:shared, :shared] = painted[:shared, :shared]
    return blocked


def _painted(text: str) -> Cells:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return np.zeros((0, 0), dtype=np.bool_)
    size = int.from_bytes(data[:2], "big")
    bits = np.frombuffer(data[2:], dtype=np.uint8)
    if len(bits) != (size * size + 7) // 8:
        return np.zeros((0, 0), dtype=np.bool_)
    return np.unpackbits(bits, count=size * size).reshape(size, size).astype(np.bool_)
