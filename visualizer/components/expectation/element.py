"""A covered matrix on which a person marks what they expect; once revealed, the matrix beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from visualizer.components.axis import Axis
from visualizer.components.bits import cells_of
from visualizer.components.packing import Array, Scaled, pack
from visualizer.components.picture import Picture
from visualizer.components.tensor_grid.element import Panel, natural_bounds, scale_of

Flags = NDArray[np.bool_]


def expectation(
    expected: Flags,
    *,
    rows: Axis,
    columns: Axis,
    kind: Literal["seen", "most"],
    row: int,
    one_row: bool = False,
    computed: Panel | None,
    codes: NDArray[np.uint8] | None,
    blocked: NDArray[Any] | None = None,
    scope: str,
    seq: int,
    key: str,
) -> Picture:
    """The marks, and beside them what was computed once it is revealed.

    Args:
        expected: the marked cells, (rows, columns).
        rows: the labels of the rows.
        columns: those of the columns.
        kind: "seen": any cell may be marked; "most": one cell in each row.
        row: the row that is asked for, which stays lit.
        one_row: whether that row alone is asked for.
        computed: what was computed; None keeps it covered, and then none of it is in the bytes.
        codes: what each cell is once revealed, (rows, columns): 0 nothing, 1 as expected, 2 not so, 3 missed.
        blocked: which cells a mask blocks, hatched in the grid to mark; None where that is what is asked.
        scope: names what the marks are for. A mark in one scope cannot be undone in another.
        seq: ``seq`` of the last event that all of this takes account of, 0 before the first.
        key: identifies the element on the page.

    Its event ``mark``, when marks have changed: {"cells": base64 of one bit per cell, "seq"}, which
    ``parse_marks`` reads.

    Raises:
        ValueError: shapes and labels do not agree, or only one of ``computed`` and ``codes`` is given.
    """
    shape = (len(rows.labels), len(columns.labels))
    shapes = [expected.shape, *([] if computed is None else [computed.array.shape])]
    if any(one != shape for one in shapes):
        raise ValueError(f"{shape} labels need marks and numbers of that shape, not {shapes}")
    if (computed is None) != (codes is None):
        raise ValueError("what was computed and the codes of its cells are revealed together")
    arrays: dict[str, Array | Scaled] = {"expected": np.packbits(expected)}
    header: dict[str, Any] = {
        "key": key,
        "seq": seq,
        "scope": scope,
        "kind": kind,
        "row": row,
        "one_row": one_row,
        "rows": rows.as_header(),
        "columns": columns.as_header(),
        "computed": None,
    }
    if blocked is not None:
        arrays["hatched"] = blocked.astype(np.uint8, copy=False)
    if computed is not None and codes is not None:
        header["computed"] = {
            "name": computed.name,
            "title": computed.title,
            "palette": scale_of(computed),
            "bounds": computed.bounds or natural_bounds(computed),
            "blocked_by": computed.blocked_by,
        }
        arrays["values"] = computed.array.astype(np.float32, copy=False)
        arrays["codes"] = codes
        if computed.blocked is not None:
            arrays["blocked"] = computed.blocked.astype(np.uint8, copy=False)
    return Picture("expectation/element.js", pack(header, arrays), key, ("mark",))


def parse_marks(value: object, shape: tuple[int, int], *, one_per_row: bool) -> bytes | None:
    """Read what the browser sent as ``mark``: one bit per cell of ``shape``.

    None unless it holds base64 of exactly one bit per cell, filled up with zeros to whole bytes, and at most one in
    a row where there may be no more.
    """
    cells = cells_of(value.get("cells") if isinstance(value, Mapping) else None, shape)
    has_too_many = cells is not None and one_per_row and bool((cells.sum(axis=1) > 1).any())
    return None if cells is None or has_too_many else np.packbits(cells).tobytes()
