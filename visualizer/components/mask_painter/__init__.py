"""A mask painted cell by cell."""

from visualizer.components.mask_painter.element import mask_painter, parse_mask

__all__ = ["mask_painter", "parse_mask"]
