"""One row of weights under many ways of masking."""

from visualizer.components.row_bars.element import BarCell, BarRow, Remark, row_bars

__all__ = ["BarCell", "BarRow", "Remark", "row_bars"]
