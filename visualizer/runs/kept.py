"""Results that are computed of a run once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

Value = TypeVar("Value")


class KeepsResults:
    """A holder of results, which last as long as it does."""

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Compute a result under a key the first time, then return the one that was kept."""
        if key not in self._kept:
            self._kept[key] = compute()
        found: Value = self._kept[key]
        return found

    @cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}
