"""A mask painted cell by cell, with what else blocks a cell and what looks wrong."""

from visualizer.components.mask_painter.element import (
    FindingMark,
    PaintedHeads,
    Reason,
    mask_painter,
    parse_mask,
    parse_masks,
    parse_mend,
    parse_select,
)

__all__ = [
    "FindingMark",
    "PaintedHeads",
    "Reason",
    "mask_painter",
    "parse_mask",
    "parse_masks",
    "parse_mend",
    "parse_select",
]
