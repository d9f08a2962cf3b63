"""Shares as they are written."""

from __future__ import annotations

import pytest

from visualizer.shares import percent


@pytest.mark.parametrize(
    ("share", "digits", "expected"),
    [
        (0.0, 0, "0%"),
        (0.004, 0, "under 1%"),
        (0.006, 0, "1%"),
        (0.62, 0, "62%"),
        (0.996, 0, "over 99%"),
        (1.0, 0, "100%"),
        (0.0, 1, "0.0%"),
        (1e-9, 1, "under 0.1%"),
        (0.1184, 1, "11.8%"),
        (0.99996, 1, "over 99.9%"),
        (1.0, 1, "100.0%"),
        (float("nan"), 0, "NaN"),
    ],
)
def test_a_share_that_is_neither_nothing_nor_everything_is_never_written_as_such(share, digits, expected):
    assert percent(share, digits) == expected
