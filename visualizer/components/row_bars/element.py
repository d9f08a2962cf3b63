"""A table of small bar charts: the weights of one row, one chart for each way of masking and number type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visualizer.components.axis import Axis
from visualizer.components.packing import pack
from visualizer.components.picture import Picture

Weights = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Remark:
    """A few words below a chart; ``warning`` for what is wrong."""

    text: str
    warning: bool = False


@dataclass(frozen=True, eq=False)
class BarCell:
    """One chart.

    weights: (Tk,); NaN is drawn as such.
    remarks: what there is to say of them, such as the weight that leaks.
    fully_blocked: (Tk,), the weights when no key of the row is left, drawn small.
    outcome: the same in a word.
    """

    weights: Weights
    remarks: tuple[Remark, ...]
    fully_blocked: Weights
    outcome: Remark


@dataclass(frozen=True, eq=False)
class BarRow:
    """One line of the table: its title, a line of code, a sentence about it, and one chart per column."""

    title: str
    code: str
    note: str
    cells: tuple[BarCell, ...]


def row_bars(
    rows: Sequence[BarRow],
    *,
    columns: Sequence[str],
    keys: Axis,
    blocked: NDArray[np.bool_],
    reference: Weights | None = None,
    key: str,
) -> Picture:
    """The table. The charts share one scale, the fully blocked rows another.

    Args:
        rows: from top to bottom.
        columns: the columns' titles.
        keys: what the bars stand for.
        blocked: (Tk,), True where the mask blocks the key; such bars are hatched.
        reference: (columns, Tk), the weights as they should be, marked where the bar of an allowed key differs.
        key: identifies the element on the page.

    Raises:
        ValueError: a line does not have one chart per column, or an array not one number per key.
    """
    data = payload(rows, columns=columns, keys=keys, blocked=blocked, reference=reference, key=key)
    return Picture("row_bars/element.js", data, key)


def payload(
    rows: Sequence[BarRow],
    *,
    columns: Sequence[str],
    keys: Axis,
    blocked: NDArray[np.bool_],
    reference: Weights | None,
    key: str,
) -> bytes:
    """Pack the table for the browser."""
    _check(rows, columns, keys, blocked, reference)
    header = {
        "key": key,
        "columns": list(columns),
        "keys": keys.as_header(),
        "rows": [_described(row) for row in rows],
    }
    arrays: dict[str, NDArray[Any]] = {
        "weights": np.array([[cell.weights for cell in row.cells] for row in rows], np.float32),
        "fully_blocked": np.array([[cell.fully_blocked for cell in row.cells] for row in rows], np.float32),
        "blocked": blocked,
    }
    if reference is not None:
        arrays["reference"] = reference.astype(np.float32)
    return pack(header, arrays)


def _described(row: BarRow) -> dict[str, Any]:
    cells = [{"remarks": [*map(asdict, cell.remarks)], "outcome": asdict(cell.outcome)} for cell in row.cells]
    return {"title": row.title, "code": row.code, "note": row.note, "cells": cells}


def _check(
    rows: Sequence[BarRow],
    columns: Sequence[str],
    keys: Axis,
    blocked: NDArray[np.bool_],
    reference: Weights | None,
) -> None:
    if not rows or not columns or not keys.labels:
        n = (len(rows), len(columns), len(keys.labels))
        raise ValueError(f"{n[0]} rows, {n[1]} columns and {n[2]} keys: there must be at least one of each")
    for row in rows:
        if len(row.cells) != len(columns):
            raise ValueError(f"row {row.title!r} has {len(row.cells)} cells for {len(columns)} columns")
        for cell in row.cells:
            _check_shape(f"weights in row {row.title!r}", cell.weights, (len(keys.labels),))
            _check_shape(f"fully_blocked in row {row.title!r}", cell.fully_blocked, (len(keys.labels),))
    _check_shape("blocked", blocked, (len(keys.labels),))
    if reference is not None:
        _check_shape("reference", reference, (len(columns), len(keys.labels)))


def _check_shape(name: str, array: NDArray[Any], expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise ValueError(f"{name} has shape {array.shape}: it must be {expected}, with one number for each key")
