"""The painted mask as text short enough for a link.

A painting has one plane for every head of every layer, and others for one layer, one head, or one head of one
layer; the narrowest one that covers a head holds there. A plane is an expression, such as ``k <= q``, or cells:
``~`` and base64url. Planes are separated by ``;`` and told apart by ``layer.head:``, where ``*`` is every one:

    k <= q;1.*:q - k < 3;*.2:~AAUx
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.settings.fields import MAX_TOKENS

say = texts_of(__name__)

Cells = NDArray[np.bool_]

_CELLS = "~"
_DEFLATED = 1 << 15
_OBLONG = 1 << 14
_PLACE = re.compile(r"(\*|\d{1,2})\.(\*|\d{1,2}):")
_EXPRESSION = re.compile(r"[\x20-\x39\x3c-\x7d]*")  # printable ASCII but for the separators and the sign of cells
_HEAD, _BATCH = re.compile(r"\bh\b"), re.compile(r"\bb\b")


@dataclass(frozen=True)
class Scope:
    """The heads that a plane is for; None is every one."""

    layer: int | None = None
    head: int | None = None

    def covers(self, layer: int, head: int) -> bool:
        """True if a head of a layer is among them."""
        return self.layer in (None, layer) and self.head in (None, head)

    @property
    def narrowness(self) -> tuple[int, bool]:
        """Greater for a narrower scope; a layer is narrower than a head."""
        return (self.layer is not None) + (self.head is not None), self.layer is not None


EVERYWHERE = Scope()


def read_planes(text: str) -> dict[Scope, str]:
    """The planes of a painting: each scope with its expression or cells.

    Raises:
        ValueError: the text is not one that ``write_planes`` writes; the message completes "custom=... ".
    """
    planes: dict[Scope, str] = {}
    for part in text.split(";") if text else ():
        place = _PLACE.match(part)
        scope = Scope(*(None if index == "*" else int(index) for index in place.groups())) if place else EVERYWHERE
        source = part[place.end() :] if place else part
        if scope in planes:
            raise ValueError(say("same_heads"))
        _check_source(source)
        planes[scope] = source
    return planes


def write_planes(planes: Mapping[Scope, str]) -> str:
    """The text of a painting; "" where nothing is painted."""
    used = {scope: source for scope, source in planes.items() if source or scope != EVERYWHERE}
    if not any(used.values()):
        return ""
    return ";".join(_prefix(scope) + used[scope] for scope in sorted(used, key=_order))


def source_at(planes: Mapping[Scope, str], layer: int, head: int) -> str:
    """The expression or the cells that hold for one head of one layer; "" where nothing is painted."""
    covering = [scope for scope in planes if scope.covers(layer, head)]
    return planes[max(covering, key=lambda scope: scope.narrowness)] if covering else ""


def is_cells(source: str) -> bool:
    """True if a plane is given cell by cell and not as an expression."""
    return source.startswith(_CELLS)


def asks_for_head(source: str) -> bool:
    """True if an expression depends on ``h``, the number of the head, so that one plane is not the same for all."""
    return not is_cells(source) and _HEAD.search(source) is not None


def with_places(source: str, head: int, sequence: int) -> str:
    """An expression with the numbers of a head and of a sequence for ``h`` and ``b``."""
    return _BATCH.sub(str(sequence), _HEAD.sub(str(head), source))


def encode_cells(blocked: Cells) -> str:
    """Write which cells are blocked, (Tq, Tk): the size, then one bit per cell, deflated where that is shorter.

    The size is that of a square, or the queries and then the keys.
    """
    if not blocked.any():
        return ""
    bits = np.packbits(blocked).tobytes()
    deflated = zlib.compress(bits, 9, wbits=-15)
    n_queries, n_keys = blocked.shape
    is_oblong, is_shorter = n_queries != n_keys, len(deflated) < len(bits)
    first = n_queries | _OBLONG * is_oblong | _DEFLATED * is_shorter
    sizes = [first, n_keys] if is_oblong else [first]
    header = b"".join(size.to_bytes(2, "big") for size in sizes)
    packed = base64.urlsafe_b64encode(header + (deflated if is_shorter else bits))
    return _CELLS + packed.decode().rstrip("=")


def decode_cells(source: str, n_queries: int, n_keys: int) -> Cells:
    """Read which cells are blocked, (n_queries, n_keys).

    A mask painted on fewer tokens leaves the rest open; one painted on more is cut.

    Raises:
        ValueError: the text is not one that ``encode_cells`` writes.
    """
    blocked = np.zeros((n_queries, n_keys), dtype=np.bool_)
    if source:
        painted = _painted(source)[:n_queries, :n_keys]
        rows, columns = painted.shape
        blocked[:rows, :columns] = painted
    return blocked


def _check_source(source: str) -> None:
    if is_cells(source):
        _painted(source)
    elif not _EXPRESSION.fullmatch(source):
        raise ValueError(say("unknown_signs"))


def _prefix(scope: Scope) -> str:
    if scope == EVERYWHERE:
        return ""
    layer, head = ("*" if index is None else index for index in (scope.layer, scope.head))
    return f"{layer}.{head}:"


def _order(scope: Scope) -> tuple[tuple[int, bool], int, int]:
    return scope.narrowness, scope.layer or 0, scope.head or 0


def _painted(source: str) -> Cells:
    text = source.removeprefix(_CELLS)
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(say("not_base64")) from None
    first, data = int.from_bytes(packed[:2], "big"), packed[2:]
    n_queries = n_keys = first & ~(_DEFLATED | _OBLONG)
    if first & _OBLONG:
        n_keys, data = int.from_bytes(data[:2], "big"), data[2:]
    if first & _DEFLATED:
        data = _inflated(data)
    n_cells = n_queries * n_keys
    if not (0 < n_queries <= MAX_TOKENS and 0 < n_keys <= MAX_TOKENS) or len(data) != (n_cells + 7) // 8:
        raise ValueError(say("bits"))
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=n_cells)
    return bits.reshape(n_queries, n_keys).astype(np.bool_)


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=-15)
    try:
        inflated = stream.decompress(data, MAX_TOKENS * MAX_TOKENS // 8 + 1)
    except zlib.error:
        raise ValueError("does not hold one bit per cell") from None
    if not stream.eof or stream.unused_data:
        raise ValueError("does not hold one bit per cell")
    return inflated
