"""The ways in which a mask is put into effect, and what each makes of one row of scores in each number type.

A blocked key should weigh nothing, and the other keys should weigh as if it were not there. How near a way of
masking comes to this is measured here on the scores of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from model.texts import texts_of

say = texts_of(__name__)

Apply = Callable[[Tensor, Tensor], Tensor]
"""From scores (..., Tk) and allowed (..., Tk), True = may attend, to weights (..., Tk) of the scores' type."""

Outcome = Literal["NaN", "zero", "uniform", "unmasked", "other"]
"""The weights of a row without a key, as a word; "unmasked" is the weights of the same row without any mask."""

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Application:
    """One way to put a mask into effect.

    Attributes:
        title: a few words.
        code: the line as it is written in PyTorch, of ``scores`` and the boolean ``allowed``.
        note: one sentence on what to expect of it.
        apply: computes the weights.
        fill: the number that takes the place of a blocked score, by number type; None where none does.
    """

    title: str
    code: str
    note: str
    apply: Apply
    fill: Callable[[torch.dtype], float] | None = None


def _filled(title: str, number: str, note: str, fill: Callable[[torch.dtype], float]) -> Application:
    """Blocked scores replaced by a number, which is first rounded to the scores' type."""

    def apply(scores: Tensor, allowed: Tensor) -> Tensor:
        rounded = torch.tensor(fill(scores.dtype), dtype=scores.dtype, device=scores.device)
        return scores.masked_fill(~allowed, rounded).softmax(-1)

    return Application(title, f"scores.masked_fill(~allowed, {number}).softmax(-1)", note, apply, fill)


def _filled_then_zero(scores: Tensor, allowed: Tensor) -> Tensor:
    weights = scores.masked_fill(~allowed, -math.inf).softmax(-1)
    return weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


def _added_minus_1e4(scores: Tensor, allowed: Tensor) -> Tensor:
    return (scores + (~allowed).to(scores.dtype) * -1e4).softmax(-1)


def _before_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return (scores * allowed).softmax(-1)


def _after_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.softmax(-1) * allowed


APPLICATIONS: dict[str, Application] = {
    # "Attention Is All You Need", section 3.2.3; the zeros as in PyTorch's scaled_dot_product_attention.
    "minus_infinity_then_zero": Application(
        "−∞, then zero",
        "scores.masked_fill(~allowed, -math.inf).softmax(-1).masked_fill(~allowed.any(-1, keepdim=True), 0.0)",
        say("minus_infinity_then_zero"),
        _filled_then_zero,
        lambda dtype: -math.inf,
    ),
    # "Attention Is All You Need", section 3.2.3.
    "minus_infinity": _filled("−∞", "-math.inf", say("minus_infinity"), lambda dtype: -math.inf),
    # The attention masks of Hugging Face's transformers.
    "lowest": _filled(
        say("lowest"), "torch.finfo(scores.dtype).min", say("lowest_note"), lambda dtype: torch.finfo(dtype).min
    ),
    # Rush, "The Annotated Transformer" (2018), function attention.
    "minus_1e9": _filled("−1e9", "-1e9", say("minus_1e9"), lambda dtype: -1e9),
    # The causal mask of GPT-2 in early versions of Hugging Face's transformers (masked_bias).
    "minus_1e4": _filled("−1e4", "-1e4", say("minus_1e4"), lambda dtype: -1e4),
    # Devlin et al., "BERT" (2019): attention_layer in the published modeling.py.
    "added_minus_1e4": Application(
        say("added_minus_1e4"),
        "(scores + (~allowed).to(scores.dtype) * -1e4).softmax(-1)",
        say("added_minus_1e4_note"),
        _added_minus_1e4,
    ),
    "before_softmax": Application(
        say("before_softmax"), "(scores * allowed).softmax(-1)", say("before_softmax_note"), _before_softmax
    ),
    "after_softmax": Application(
        say("after_softmax"), "scores.softmax(-1) * allowed", say("after_softmax_note"), _after_softmax
    ),
}


@dataclass(frozen=True, eq=False)
class AppliedRow:
    """One row as one way of masking leaves it, in one number type.

    Attributes:
        application: its name in ``APPLICATIONS``.
        dtype: the number type in which the row was masked and its softmax computed.
        weights: (Tk,) float32, which holds every number of the three types exactly.
        fill: the number written into blocked scores, as the type holds it: minus infinity for one that is out of
            the type's range. None where none is written.
        fill_overflows: whether a finite number became that minus infinity.
        refusal: PyTorch's own words where ``masked_fill`` refuses the number as written, None where it does not.
        leak: the weight on blocked keys, whose values flow into the output by it.
        taken: how much the blocked keys change the weights of the allowed ones: the sum of |difference| from the
            row masked by minus infinity. With the mask after the softmax, what is missing: 1 - ``row_sum``.
        row_sum: of the weights as they are, in double precision.
        sums_to_one: whether the sum is one as exactly as the type can say it.
        fully_blocked: (Tk,) float32, the weights when no key of the row is left.
        outcome: the same as a word.
    """

    application: str
    dtype: torch.dtype
    weights: Tensor
    fill: float | None
    fill_overflows: bool
    refusal: str | None
    leak: float
    taken: float
    row_sum: float
    sums_to_one: bool
    fully_blocked: Tensor
    outcome: Outcome


def applied(scores: Tensor, allowed: Tensor, dtypes: Sequence[torch.dtype] = DTYPES) -> tuple[AppliedRow, ...]:
    """One row under every way of masking, in some number types: the types of the first way, then of the next.

    The scores are taken as they were computed and rounded to the type; mask and softmax are computed in it.

    Args:
        scores: (Tk,) scaled scores of one query, of any floating type.
        allowed: (Tk,) boolean, True = may attend.
        dtypes: the number types.

    Raises:
        ValueError: they are not two rows of one length, or not of these types.
    """
    _check_row(scores, allowed)
    with torch.no_grad():
        return tuple(_applied(name, scores.to(dtype), allowed) for name in APPLICATIONS for dtype in dtypes)


def outcome_of(weights: Tensor, unmasked: Tensor) -> Outcome:
    """Return the word for the weights of a row without a key, told from their numbers.

    Args:
        weights: (Tk,).
        unmasked: (Tk,), the weights of the same row without a mask. A row that has less than a hundredth of its
            weight elsewhere counts as the same.
    """
    if weights.isnan().any():
        return "NaN"
    if not weights.any():
        return "zero"
    if (weights == weights[0]).all():
        return "uniform"
    elsewhere = (weights.double() - unmasked.double()).abs().sum() / 2
    return "unmasked" if elsewhere < 0.01 else "other"


def _applied(name: str, scores: Tensor, allowed: Tensor) -> AppliedRow:
    application = APPLICATIONS[name]
    weights = application.apply(scores, allowed).double()
    without_blocked = APPLICATIONS["minus_infinity"].apply(scores, allowed).double()
    fully_blocked = application.apply(scores, torch.zeros_like(allowed))
    asked = application.fill(scores.dtype) if application.fill else None
    fill = None if asked is None else torch.tensor(asked, dtype=scores.dtype).item()
    row_sum = weights.sum().item()
    return AppliedRow(
        application=name,
        dtype=scores.dtype,
        weights=weights.float(),
        fill=fill,
        fill_overflows=fill == -math.inf and asked != -math.inf,
        refusal=None if asked is None else _refusal(scores, allowed, asked),
        leak=weights[~allowed].sum().item(),
        taken=(weights - without_blocked)[allowed].abs().sum().item(),
        row_sum=row_sum,
        sums_to_one=abs(row_sum - 1) <= _rounding_of_sum(scores),
        fully_blocked=fully_blocked.float(),
        outcome=outcome_of(fully_blocked, scores.softmax(-1)),
    )


def _refusal(scores: Tensor, allowed: Tensor, fill: float) -> str | None:
    try:
        scores.masked_fill(~allowed, fill)
    except RuntimeError as error:
        return str(error)
    return None


def _rounding_of_sum(scores: Tensor) -> float:
    """Return the largest rounding error of a softmax's sum: relative to a weight, absolute for the tiniest."""
    found = torch.finfo(scores.dtype)
    computed_in_single = 8 * torch.finfo(torch.float32).eps
    return found.eps + computed_in_single + len(scores) * found.smallest_normal * found.eps


def _check_row(scores: Tensor, allowed: Tensor) -> None:
    if scores.dim() != 1 or scores.shape != allowed.shape or len(scores) == 0:
        shapes = f"{tuple(scores.shape)} and {tuple(allowed.shape)}"
        raise ValueError(f"scores and allowed have shapes {shapes}: both must be (Tk,), of one key or more")
    if not scores.is_floating_point():
        raise ValueError(f"scores must be of a floating type, not {scores.dtype}")
    if allowed.dtype is not torch.bool:
        raise ValueError(f"allowed must be boolean, not {allowed.dtype}")
