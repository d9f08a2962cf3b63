"""A covered matrix on which a person marks what they expect: nothing of it is in the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from visualizer.components.axis import Axis
from visualizer.components.bits import cells_of
from visualizer.components.packing import Array, pack
from visualizer.components.picture import Picture

Flags = NDArray[np.bool_]


def expectation(
    expected: Flags,
    *,
    rows: Axis,
    columns: Axis,
    kind: Literal["seen", "most"],
    row: int,
    one_row: bool = False,
    blocked: NDArray[Any] | None = None,
    scope: str,
    seq: int,
    key: str,
) -> Picture:
    """The marks.

    Args:
        expected: the marked cells, (rows, columns).
        rows: the labels of the rows.
        columns: those of the columns.
        kind: "seen": any cell may be marked; "most": one cell in each row.
        row: the row that is asked for, which stays lit.
        one_row: whether that row alone is asked for.
        blocked: which cells a mask blocks, hatched in the grid to mark; None where that is what is asked.
        scope: names what the marks are for. A mark in one scope cannot be undone in another.
        seq: ``seq`` of the last event that all of this takes account of, 0 before the first.
        key: identifies the element on the page.

    Its event ``mark``, when marks have changed: {"cells": base64 of one bit per cell, "seq"}, which
    ``parse_marks`` reads.

    Raises:
        ValueError: marks and labels do not agree.
    """
    shape = (len(rows.labels), len(columns.labels))
    if expected.shape != shape:
        raise ValueError(f"{shape} labels need marks of that shape, not {expected.shape}")
    arrays: dict[str, Array] = {"expected": np.packbits(expected)}
    header: dict[str, Any] = {
        "key": key,
        "seq": seq,
        "scope": scope,
        "kind": kind,
        "row": row,
        "one_row": one_row,
        "rows": rows,
        "columns": columns,
    }
    if blocked is not None:
        arrays["hatched"] = blocked.astype(np.uint8, copy=False)
    return Picture("expectation/element.js", pack(header, arrays), key, ("mark",))


def parse_marks(value: object, shape: tuple[int, int], *, one_per_row: bool) -> bytes | None:
    """Read what the browser sent as ``mark``: one bit per cell of ``shape``.

    None unless it holds base64 of exactly one bit per cell, filled up with zeros to whole bytes, and at most one in
    a row where there may be no more.
    """
    cells = cells_of(value.get("cells") if isinstance(value, Mapping) else None, shape)
    has_too_many = cells is not None and one_per_row and bool((cells.sum(axis=1) > 1).any())
    return None if cells is None or has_too_many else np.packbits(cells).tobytes()
