"""Results that are computed of a run once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

Value = TypeVar("Value")


class CachesResults:
    """An object that caches the results computed of it for as long as it exists."""

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the result under a key: computed the first time, then kept."""
        if key not in self._results:
            self._results[key] = compute()
        found: Value = self._results[key]
        return found

    @cached_property
    def _results(self) -> dict[Hashable, Any]:
        return {}
