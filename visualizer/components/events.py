"""The whole numbers in what a browser sends, which can be anything."""

from __future__ import annotations

from collections.abc import Mapping


def whole_number_in(event: object, name: str, stop: int | None = None) -> int | None:
    """The number from 0 to below ``stop``, if that is given, that an event holds under a name; None for none."""
    value = event.get(name) if isinstance(event, Mapping) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return None
    return value if stop is None or value < stop else None
