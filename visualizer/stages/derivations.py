"""The derivation of one number from the numbers before it: the reckoning of each operation, on plain arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from model.texts import texts_of
from visualizer.colors import Role
from visualizer.components.derivation.element import Step, Terms

say = texts_of(__name__)

Numbers = NDArray[np.float64]

_MOST_DECIMALS = 12
TOLERANCE = 1e-4
"""Largest relative error, in float32, between the recomputed number and the model's."""
ROUNDED = 2e-2
"""The same where the model computes in a type of fewer digits, such as bfloat16."""


@dataclass(frozen=True)
class Cell:
    """One number of a stage: the row and column drawn, in one batch item and, for per-head stages, one head."""

    path: str
    batch: int
    head: int
    row: int
    column: int

    def index(self, n_dims: int) -> tuple[int, ...]:
        """Its index into a tensor of any number of axes: one row of a vector, the first of what is not chosen."""
        before = (self.batch, self.head, *[0] * n_dims)[: max(n_dims - 2, 0)]
        return (*before, self.row, self.column)[-n_dims:] if n_dims else ()


@dataclass(frozen=True, eq=False)
class Reckoning:
    """The reckoning of one number: the elements it was computed from, the steps that lead to it, and itself."""

    steps: tuple[Step, ...]
    value: float
    rows: tuple[Terms, ...] = ()


def dot(
    left: Terms, right: Terms, *, bias: float | None = None, root_of: int | None = None, role: Role = "neutral"
) -> Reckoning:
    """The sum of the products of two rows, in colour ``role``, and a bias, or that sum by a square root."""
    products = left.values * right.values
    step = Step(say("products"), float(products.sum()))
    steps: tuple[Step, ...] = (step,) if bias is None else plus(step, "bias", bias)
    if root_of is not None:
        root = f"{math.sqrt(root_of):.7g}"
        scaled = Step(f"÷ √{root_of} ({root})", step.value / math.sqrt(root_of))
        steps = (carried(step, scaled, lambda number: number / float(root)), scaled)
    texts = terms_in_digits(products, steps[0])
    rows = (left, replace(right, operator="×"), Terms("product", role, products, "=", texts))
    return Reckoning(steps, steps[-1].value, rows)


def plus(step: Step, name: str, number: float) -> tuple[Step, Step]:
    """A step, and the one that adds a number to it: both numbers are written so that they add up as they stand."""
    total = Step("", step.value + number)
    decimals = _adding([step.value, number], total, digits=5)
    return replace(step, decimals=decimals), replace(total, text=f"+ {name} ({number:.{decimals}f})")


def carried(step: Step, to: Step, compute: Callable[[float], float]) -> Step:
    """A step with the digits with which ``compute`` makes the next step of it, as both are written."""
    for decimals in range(_MOST_DECIMALS):
        more = replace(step, decimals=decimals)
        if replace(to, value=compute(_read(more.number_shown))).number_shown == to.number_shown:
            return more
    return step


def _read(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def terms_in_digits(values: Numbers, total: Step) -> tuple[str, ...]:
    """Each value with the digits with which all, as they are written, add up to the step as it is written."""
    if not np.isfinite(values).all():
        return ()
    terms = [float(value) for value in values]
    decimals = _adding(terms, total, digits=3)
    return tuple(_term(value, decimals) for value in terms)


def _adding(values: Sequence[float], total: Step, *, digits: int) -> int:
    """The fewest decimals with which values add up to a step, and the largest has so many digits."""
    if not all(map(math.isfinite, values)):
        return digits
    shown = Decimal(total.number_shown.replace("−", "-"))
    size = max(map(abs, values), default=0.0)
    least = max(0, -int(shown.as_tuple().exponent), digits - 1 - math.floor(math.log10(size)) if size else 0)
    for decimals in range(min(least, _MOST_DECIMALS), _MOST_DECIMALS):
        found = sum((Decimal(_term(value, decimals)) for value in values), Decimal())
        if found.quantize(shown) == shown:
            return decimals
    return _MOST_DECIMALS


def _term(value: float, decimals: int) -> str:
    """A number with so many decimals; one that they cannot show with its power of ten."""
    text = f"{value + 0.0:.{decimals}f}"  # no -0
    return text if float(text) or not value else f"{value:.0e}"


def softmax(row: Numbers, at: int, *, role: Role = "neutral") -> Reckoning:
    """The share of one number of a row."""
    greatest = float(row.max())
    exponentials = np.exp(row - greatest)
    own, total = float(exponentials[at]), float(exponentials.sum())
    share = Step("exp ÷ sum", own / total)
    power = carried(Step("exp(s - max)", own), share, lambda number: number / total)
    in_all = carried(Step(say("row_sum"), total), share, lambda number: _read(power.number_shown) / number)
    steps = (
        Step(say("largest_score"), greatest),
        power,
        in_all,
        share,
    )
    rows = (
        Terms("score", role, row),
        Terms("exp(s - max)", role, exponentials, texts=terms_in_digits(exponentials, in_all)),
        Terms("share", role, exponentials / total),
    )
    return Reckoning(steps, own / total, rows)


def layer_norm(x: Terms, at: int, *, gamma: float, beta: float, epsilon: float) -> Reckoning:
    """One number of a row, shifted and scaled."""
    row = x.values.astype(np.float64)
    mean, variance = float(row.mean()), float(row.var())
    deviation = math.sqrt(variance + epsilon)
    centred = float(row[at]) - mean
    steps = (
        Step("x", float(row[at])),
        Step(say("minus_mean", mean=mean), centred),
        Step(f"÷ √(variance + ε) ({deviation:.5g}, ε = {epsilon:g})", centred / deviation),
        Step(f"× γ ({gamma:.5g}) + β ({beta:.5g})", centred / deviation * gamma + beta),
    )
    return Reckoning(steps, steps[-1].value, (x, Terms("x - mean", x.role, row - mean)))


def relu(x: float) -> tuple[Step, ...]:
    """The larger of zero and a number."""
    return Step("x", x), Step("max(0, x)", max(0.0, x))


def gelu(x: float) -> tuple[Step, ...]:
    """A number times the share of the normal distribution below it."""
    share = 0.5 * (1 + math.erf(x / math.sqrt(2)))
    return (
        Step("x", x),
        Step(say("normal_share"), share),
        Step("x · Φ(x)", x * share),
    )


def dropout(number: float, p: float, *, is_zero: bool) -> Step:
    """The result of dropout with probability ``p`` for a number: zero, or somewhat more than it was."""
    if number == 0.0:
        return Step(say("zero_already"), 0.0)
    return Step(say("dropped"), 0.0) if is_zero else Step(f"kept: ÷ (1 - {p:g})", number / (1 - p))


def as_numbers(value: Tensor) -> Numbers:
    """A tensor as an array of float64."""
    array: Numbers = value.detach().double().numpy()
    return array
