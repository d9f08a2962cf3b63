"""The temperature of attention, as the change of the scores that it is."""

from __future__ import annotations

import math
import re

LEAST, MOST = 0.1, 10.0
"""The ends of its dial."""

_DIVIDED = re.compile(r"score / (\d{1,2}(?:\.\d{1,2})?)")


def temperature_of(score: str) -> float | None:
    """Return the number that a change of the scores divides them by; 1 for no change, None for any other change."""
    if not score:
        return 1.0
    found = _DIVIDED.fullmatch(score)
    value = float(found[1]) if found else 0.0
    return value if LEAST <= value <= MOST else None


def at_temperature(temperature: object) -> str | None:
    """The change of the scores that divides them, to two decimals; None for what is no temperature of the dial."""
    if isinstance(temperature, bool) or not isinstance(temperature, int | float):
        return None
    if not math.isfinite(temperature) or not LEAST <= temperature <= MOST:
        return None
    rounded = round(float(temperature), 2)
    return "" if rounded == 1 else f"score / {rounded:g}"
