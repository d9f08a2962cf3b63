"""What is computed of a run once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

Value = TypeVar("Value")


class KeepsResults:
    """What keeps the results of others as long as it is there itself."""

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """What is computed of it under a key: the first time, then kept."""
        if key not in self._kept:
            self._kept[key] = compute()
        found: Value = self._kept[key]
        return found

    @cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}
