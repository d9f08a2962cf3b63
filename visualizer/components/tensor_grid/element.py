"""Matrices side by side: the inputs of a stage, its operator and its output, or one tensor for every head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from visualizer.colors import Role
from visualizer.components.axis import Axis
from visualizer.components.packing import (
    DEFAULT_BUDGET_BYTES,
    Array,
    Precision,
    Scaled,
    fields_of,
    fit_precision,
    in_precision,
    pack,
)
from visualizer.components.picture import Picture
from visualizer.glossary import axes_in_words


@dataclass(frozen=True)
class Panel:
    """One matrix on the screen.

    name: the stage's name, given back when a cell is selected and shown before its number.
    title, subtitle: plain text above; the subtitle is for a shape such as "(B H Tq Dh) = (1, 4, 9, 32)".
    array: (rows, columns), any real dtype; NaN and infinities are drawn as such.
    role: the hue of its title. palette: "sequential" for numbers from zero up, purple for the role "weights" and
        grey for every other; "diverging" for signed ones.
    bounds: the numbers at both ends of the scale; None takes them from the array. Neighbours with the same bounds
        and palette share one legend.
    blocked: (rows, columns) uint8, bit i set where mask `blocked_by[i]` blocks the cell; None without masks.
    marked: (rows, columns) bool, the cells to outline; None for none.
    operator: what is written before the panel, such as "×", "+", "=" or "where".
    hint: what a click does, such as "click: go to masked_scores"; the tooltip's last line.
    """

    name: str
    title: str
    array: npt.NDArray[Any]
    rows: Axis
    columns: Axis
    subtitle: str = ""
    role: Role = "neutral"
    palette: Literal["sequential", "diverging"] = "sequential"
    bounds: tuple[float, float] | None = None
    blocked: npt.NDArray[np.uint8] | None = None
    blocked_by: tuple[str, ...] = ()
    marked: npt.NDArray[np.bool_] | None = None
    operator: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        if self.array.ndim != 2 or 0 in self.array.shape:
            raise ValueError(f"panel {self.name!r} needs rows and columns, not shape {self.array.shape}")
        expected = (len(self.rows.labels), len(self.columns.labels))
        if self.array.shape != expected:
            raise ValueError(f"panel {self.name!r} has shape {self.array.shape} but {expected} labels")
        if self.blocked is not None and self.blocked.shape != self.array.shape:
            raise ValueError(f"panel {self.name!r} has shape {self.array.shape} but blocked {self.blocked.shape}")


def tensor_grid(
    panels: Sequence[Panel] | str,
    *,
    key: str,
    selected: tuple[str, int, int] | None = None,
    layout: Literal["row", "wrap"] = "row",
    light: str = "",
    looked_up: int = -1,
    above: int = 0,
) -> Picture:
    """The panels. Its event `select` is what was just selected.

    panels: or the address at which the browser finds what `packed_panels` makes of them, once they are near.
    selected: (panel name, row, column) of the cell to outline.
    layout: "row" sets panels beside each other like an equation; "wrap" is a gallery of small ones, such as every
        head, whose titles can be selected too.
    above: how many pixels more than usual stand above the picture.
    light: "cell", "row" or "column" brings out the selected one, or the row or column that it is in, and of the
        inputs what that is made from: of a table of the vocabulary the row `looked_up`.
    `select` is {"panel": name, "index": panel index, "row": row, "column": column, "seq": count}; row and column
    are None when a title was selected.
    """
    header = {
        "key": key,
        "layout": layout,
        "selected": selected,
        "light": light,
        "looked_up": looked_up,
        "above": above,
    }
    if isinstance(panels, str):
        return Picture("tensor_grid/element.js", pack(header | {"address": panels}, {}), key, ("select",))
    return Picture("tensor_grid/element.js", packed_panels(panels, header), key, ("select",))


def packed_panels(
    panels: Sequence[Panel], header: Mapping[str, Any] | None = None, *, precision: Precision = "fit"
) -> bytes:
    """Pack the panels for the browser.

    Raises:
        ValueError: as ``in_precision``.
    """
    axes: list[Axis] = []
    arrays: dict[str, Array | Scaled] = {}
    described = []
    budget = DEFAULT_BUDGET_BYTES // max(1, len(panels))
    for index, panel in enumerate(panels):
        fits = precision == "fit"
        values = fit_precision(panel.array, budget) if fits else in_precision(panel.array, precision)
        arrays[f"values{index}"] = values
        if panel.blocked is not None:
            arrays[f"blocked{index}"] = panel.blocked.astype(np.uint8, copy=False)
        if panel.marked is not None:
            arrays[f"marked{index}"] = panel.marked.astype(np.uint8)
        described.append(
            {
                **fields_of(panel),
                "axes_in_words": axes_in_words(panel.subtitle),
                "rows": _index_of(panel.rows, axes),
                "columns": _index_of(panel.columns, axes),
                "palette": scale_of(panel),
                "bounds": panel.bounds or natural_bounds(panel),
            }
        )
    return pack({**(header or {}), "axes": axes, "panels": described}, arrays)


def scale_of(panel: Panel) -> str:
    """The colour table: purple belongs to the weights of attention."""
    return "sequential_neutral" if panel.palette == "sequential" and panel.role != "weights" else panel.palette


def natural_bounds(panel: Panel) -> tuple[float, float]:
    """The ends of a scale that fits the panel's finite numbers; zero is inside, or in the middle."""
    finite = panel.array[np.isfinite(panel.array)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if panel.palette == "diverging":
        size = max(abs(low), abs(high)) or 1.0
        return -size, size
    return min(low, 0.0), high if high > min(low, 0.0) else 1.0


def _index_of(axis: Axis, axes: list[Axis]) -> int:
    """The place of an axis among those sent, each once."""
    if axis not in axes:
        axes.append(axis)
    return axes.index(axis)
