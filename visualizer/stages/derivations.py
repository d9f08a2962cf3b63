"""How one number comes to be from the numbers before it: the reckoning of each operation, on plain arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from visualizer.colors import Role
from visualizer.components.derivation import Step, Terms

Numbers = NDArray[np.float64]

TOLERANCE = 1e-4
"""Largest relative error, in float32, between the recomputed number and the model's."""


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
    """How one number came to be: the elements it was computed from, the steps that lead to it, and itself."""

    steps: tuple[Step, ...]
    value: float
    rows: tuple[Terms, ...] = ()


def dot(left: Terms, right: Terms, *, bias: float | None = None, role: Role = "neutral") -> Reckoning:
    """The sum of the products of two rows, in colour ``role``, and a bias."""
    products = left.values * right.values
    total = float(products.sum())
    steps = [Step("sum of the products", total)]
    if bias is not None:
        steps.append(Step(f"+ bias ({bias:.4g})", total + bias))
    rows = (left, replace(right, operator="×"), Terms("product", role, products, "="))
    return Reckoning(tuple(steps), steps[-1].value, rows)


def softmax(row: Numbers, at: int, *, role: Role = "neutral") -> Reckoning:
    """The share of one number of a row."""
    greatest = float(row.max())
    exponentials = np.exp(row - greatest)
    own, total = float(exponentials[at]), float(exponentials.sum())
    steps = (
        Step("largest score of the row", greatest),
        Step("exp(s - max)", own),
        Step("sum over the row", total),
        Step("exp ÷ sum", own / total),
    )
    rows = (
        Terms("score", role, row),
        Terms("exp(s - max)", role, exponentials),
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
        Step("- mean of the row", centred),
        Step(f"÷ √(variance + ε) ({deviation:.4g}, ε = {epsilon:g})", centred / deviation),
        Step(f"× γ ({gamma:.3g}) + β ({beta:.3g})", centred / deviation * gamma + beta),
    )
    return Reckoning(steps, steps[-1].value, (x, Terms("x - mean", x.role, row - mean)))


def relu(x: float) -> tuple[Step, ...]:
    """What is above zero."""
    return Step("x", x), Step("max(0, x)", max(0.0, x))


def gelu(x: float) -> tuple[Step, ...]:
    """A number times the share of the normal distribution below it."""
    share = 0.5 * (1 + math.erf(x / math.sqrt(2)))
    return (
        Step("x", x),
        Step("Φ(x), the normal distribution's share below x", share),
        Step("x · Φ(x)", x * share),
    )


def dropout(number: float, p: float, *, is_zero: bool) -> Step:
    """What dropout with probability ``p`` made of a number: zero, or somewhat more than it was."""
    if number == 0.0:
        return Step("zero already", 0.0)
    return Step("dropped at random", 0.0) if is_zero else Step(f"kept: ÷ (1 - {p:g})", number / (1 - p))


def as_numbers(value: Tensor) -> Numbers:
    """A tensor as an array of float64."""
    array: Numbers = value.detach().double().numpy()
    return array
