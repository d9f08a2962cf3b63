"""A refusal with a way out: one sentence, and the change by which one click does what it proposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WayOut:
    """A way out of a refusal: the change of settings with which a run can be computed instead.

    Attributes:
        label: what the button says.
        changes: of ``Settings``.
    """

    label: str
    changes: Mapping[str, Any]


class RefusedError(ValueError):
    """Settings that cannot be run. The message is one sentence with what to do.

    Args:
        problem: the sentence.
        way_out: what one click can do about it; None where a person must choose.
    """

    def __init__(self, problem: str, way_out: WayOut | None = None) -> None:
        super().__init__(problem)
        self.way_out = way_out
