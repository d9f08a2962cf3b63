"""Statements about tensors, and whether they hold on those of this very run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from model import Trace
from model.analysis.references import sdpa_difference
from model.texts import texts_of

say = texts_of(__name__)

TOLERANCE = 1e-5
"""Largest rounding error, in float32, of what holds exactly on paper; relative to the size of what is computed."""

_TINY = 1e-30
"""Below this float32 runs out of exponents, and errors are no longer relative."""

PUBLISHED_TOLERANCE = 1e-9
"""Largest difference between a published number and its stage, both in float64."""

MOST_ROWS = 64
"""As many rows, spread over all of them, are computed again in float64: more would take longer than the run."""


@dataclass(frozen=True)
class Check:
    """One statement about a stage; ``holds`` is None for a remark that nothing depends on."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Summary:
    """Smallest, largest and mean value over the finite cells, -0 as 0; NaN where none is finite."""

    least: float
    greatest: float
    mean: float


def summarize(value: Tensor) -> Summary:
    """Summarize a tensor of any shape."""
    numbers = value if value.is_floating_point() else value.float()
    finite = numbers.abs() < math.inf
    count = int(finite.count_nonzero())
    if count == 0:
        return Summary(math.nan, math.nan, math.nan)
    return Summary(
        least=torch.where(finite, numbers, math.inf).min().item() + 0.0,
        greatest=torch.where(finite, numbers, -math.inf).max().item() + 0.0,
        mean=torch.where(finite, numbers, 0.0).sum(dtype=torch.float64).item() / count,
    )


def equals_published(value: Tensor, published: Tensor) -> Check:
    """Check that a stage is what was published, number for number."""
    difference = published_difference(value, published)
    count = published.numel()
    which = say("published_number") if count == 1 else say("published_numbers", count=count)
    tolerance = f"{PUBLISHED_TOLERANCE:.0e}".replace("e-0", "e-")
    text = say("published", which=which, tolerance=tolerance, difference=short(difference))
    return Check(text, difference <= PUBLISHED_TOLERANCE)


def published_difference(value: Tensor, published: Tensor) -> float:
    """The largest difference between a stage and what was published; infinities must be the same ones."""
    difference = (value - published).abs()
    return difference.masked_fill(value == published, 0.0).nan_to_num(nan=math.inf).max().item()


def attention_agreement(trace: Trace, module: str) -> Check:
    """Check that PyTorch's own attention gives what the attention at ``module`` gave in this very run."""
    difference = sdpa_difference(trace, module)
    q, k, v = (trace[f"{module}.{name}"].value for name in ("q", "k", "v"))
    largest_score = q.norm(dim=-1).max() * k.norm(dim=-1).max()  # its rounding error shifts the weights by as much
    size = (1 + v.abs().max().item()) * (1 + largest_score.item() / 20)
    dropped_out = say("before_dropout") if f"{module}.dropped_weights" in trace else ""
    text = say("pytorch", before_dropout=dropped_out, difference=short(difference))
    return Check(text, difference <= TOLERANCE * size)


def equal(what: str, value: Tensor, expected: Tensor) -> Check:
    """Check that a stage is bit by bit what it should be."""
    return Check(what, torch.equal(value, expected))


def product(what: str, value: Tensor, x: Tensor, y: Tensor, bias: Tensor | None = None) -> Check:
    """Check that ``value`` is ``x @ y + bias``, within what rounding does to terms of their size."""
    rows, where = some_rows(value)
    x, y = x[..., rows, :].double(), y.double()
    expected, size = x @ y, x.norm(dim=-1, keepdim=True) * y.norm(dim=-2, keepdim=True)
    if bias is not None:
        expected, size = expected + bias, size + bias.abs()
    return again(what, where, value[..., rows, :], expected, size)


def again(what: str, where: str, value: Tensor, expected: Tensor, size: Tensor | float = 1.0) -> Check:
    """Check that a stage is what float64 gives, up to rounding errors relative to ``size``."""
    difference = (value.double() - expected).abs()
    return Check(
        say("recomputed", what=what, where=where, difference=short(difference.max())),
        bool((difference <= TOLERANCE * size + _TINY).all()),
    )


def some_rows(value: Tensor) -> tuple[Tensor, str]:
    """The indices of the rows that are computed again, and which these are where they are not all."""
    n_rows = value.shape[-2]
    if n_rows <= MOST_ROWS:
        return torch.arange(n_rows), ""
    return torch.linspace(0, n_rows - 1, MOST_ROWS).long(), say("some_rows", count=MOST_ROWS, n_rows=n_rows)


def dropped(what: str, value: Tensor, before: Tensor, p: float) -> Check:
    """Check that every number was either set to zero or divided by 1 - p."""
    dropped = (value == 0) & (before != 0)
    holds = dropped | near(value, before / (1 - p))
    text = say("dropped", count=int(dropped.sum()), total=int((before != 0).sum()), what=what, p=p)
    return Check(text, bool(holds.all()))


def is_exact(value: Tensor) -> bool:
    """True if a tensor is of a type in which sums differ in the last of many digits alone; bfloat16 is none."""
    return value.dtype in (torch.float32, torch.float64)


def near(a: Tensor, b: Tensor) -> Tensor:
    """Element by element, whether two tensors are the same up to rounding errors."""
    return (a - b).abs() <= TOLERANCE * (1 + b.abs())


def square_root(width: int) -> str:
    """``√16 = 4``, or ``√8 ≈ 2.828``."""
    root = math.sqrt(width)
    return f"√{width} {'=' if root.is_integer() else '≈'} {root:.4g}"


def short(error: Tensor | float) -> str:
    """``1.2e-07``, or ``0``."""
    return f"{float(error):.1e}" if error else "0"
