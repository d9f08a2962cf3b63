"""The picture of how one number came to be: elements as bars, then the steps that lead to the number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.colors import Role
from visualizer.components.axis import SequenceName
from visualizer.components.packing import pack
from visualizer.components.picture import Picture

say = texts_of(__name__)


@dataclass(frozen=True, eq=False)
class Terms:
    """One row of the picture: name, colour role, n values, and what joins it to the row above ("×", "=").

    ``texts`` are the values as they are written, where they have to add up to a step; else they are shortened.
    """

    label: str
    role: Role
    values: NDArray[np.floating[Any]]
    operator: str = ""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One step of the reckoning: what is done, and the number that it gives, with so many decimals where given."""

    text: str
    value: float
    decimals: int | None = None

    @property
    def number_shown(self) -> str:
        """The number as it is shown."""
        if self.decimals is None or not math.isfinite(self.value):
            return format_number(self.value)
        return _signed(f"{self.value:.{self.decimals}f}")


@dataclass(frozen=True, eq=False)
class Derivation:
    """The derivation of one number.

    title: what the number is.
    columns: n labels, one per element, safe to draw.
    rows: the values of the elements, (n,) each; none where the steps say everything.
    steps: from the elements to the number.
    result: the number as the steps give it.
    formula: plain text.
    agrees: whether the model's own number is the same within its precision.
    difference: between the two, absolute.
    sequence: the token sequence that the columns run over, None for features.
    blocked: for each element whether a mask blocks it; an element with a value of minus infinity always counts as
        blocked.
    focus: the element that the number belongs to, such as the key of one weight, marked through all rows.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Terms, ...]
    steps: tuple[Step, ...]
    result: float
    formula: str
    agrees: bool
    difference: float
    sequence: SequenceName | None = None
    blocked: tuple[bool, ...] = ()
    focus: int | None = None


def derivation(content: Derivation, *, key: str) -> Picture:
    """The picture of it.

    Raises:
        ValueError: a row, or ``blocked``, does not have one value per column.
    """
    return Picture("derivation/element.js", pack(describe_derivation(content, key), _arrays(content)), key)


def describe_derivation(content: Derivation, key: str) -> dict[str, Any]:
    """All but the rows' values as JSON."""
    return {
        "key": key,
        "title": content.title,
        "formula": content.formula,
        "columns": list(content.columns),
        "sequence": content.sequence,
        "focus": content.focus,
        "rows": [
            {"label": row.label, "role": row.role, "operator": row.operator, "texts": [*map(_signed, row.texts)]}
            for row in content.rows
        ],
        "steps": [{"text": step.text, "value": step.number_shown} for step in _steps(content)],
        "role": content.rows[-1].role if content.rows else "neutral",
        "agrees": content.agrees,
        "verdict": verdict(content),
    }


def verdict(content: Derivation) -> str:
    """One sentence that sets the result beside the model's own number."""
    if not content.agrees:
        return say("differs", difference=content.difference)
    if content.difference == 0:
        return say("equals_exactly")
    return say("equals", difference=content.difference)


def format_number(value: float) -> str:
    """Five significant digits with a true minus sign; an exponent only for the very small and the very large."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return _signed(f"{value:.5g}")


def _signed(text: str) -> str:
    return text.replace("-", "−")


def blocked_elements(content: Derivation) -> NDArray[np.bool_]:
    """(n,), True where a mask blocks the element."""
    blocked = np.zeros(len(content.columns), dtype=bool)
    if content.blocked:
        blocked |= _one_per_column(np.asarray(content.blocked, dtype=bool), "blocked", content)
    for row in content.rows:
        blocked |= np.isneginf(_one_per_column(row.values, row.label, content))
    return blocked


def _arrays(content: Derivation) -> dict[str, NDArray[Any]]:
    rows = {f"row{index}": row.values.astype(np.float32) for index, row in enumerate(content.rows)}
    return {**rows, "blocked": blocked_elements(content)}


def _one_per_column(values: NDArray[Any], name: str, content: Derivation) -> NDArray[Any]:
    if values.shape != (len(content.columns),):
        raise ValueError(
            f"{name} has shape {values.shape}: it must have one value for each of {len(content.columns)} columns"
        )
    return values


def _steps(content: Derivation) -> tuple[Step, ...]:
    """The steps, the last of which always gives the result."""
    if content.steps and format_number(content.steps[-1].value) == format_number(content.result):
        return content.steps
    return (*content.steps, Step(say("result"), content.result))
