"""The findings that the painter lists of a mask."""

from __future__ import annotations

from headlight.masks.mask_case import Finding
from visualizer.components.mask_painter.element import FindingMark


def mark_of(finding: Finding) -> FindingMark:
    """A finding as the painter lists it."""
    return FindingMark(
        title=finding.title,
        severity=finding.severity,
        why=finding.why,
        mend=finding.mend,
        cells=finding.cells.numpy(),
        can_mend=finding.mended is not None,
    )
