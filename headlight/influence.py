"""The influence of each token on each row of any model's output, by derivatives.

A random direction of a row is pulled back to the embeddings of the tokens. Where a mask blocks every way, what
arrives is not about zero but exactly zero, because the weight of a blocked key is; any other derivative gives zero
with probability zero. How much arrives is an estimate: the mean of its square over all directions is the square of
the Frobenius norm of the Jacobian (Hutchinson 1989).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from headlight.checking import check
from headlight.passes import Pass, StageOutput, Subject, run_pass

_logger = logging.getLogger(__name__)
_ROW_BY_ROW = ("Linear", "Conv1D")
"""Modules that cannot mix rows: within an attention that is written out, what leaks into them is the attention."""


def differentiated(subject: Subject) -> Pass | None:
    """A pass with a derivative; None where the model has none by its tokens."""
    try:
        found = run_pass(subject, subject.tokens, differentiable=True)
        if not found.embedded or not found.output.requires_grad:
            return None
        pulled_back(found.output_stage(subject), all_rows(subject, found.output), found, subject)
    except Exception:  # a plain pass says whether it is the model's own
        _logger.info("the output has no derivative by its tokens", exc_info=True)
        return None
    return found


def sampled(n: int, most: int, n_sampled: int) -> list[int]:
    """All numbers below one, or above the most some of them, from the first to the last."""
    return list(range(n)) if n <= most else [round(i * (n - 1) / (n_sampled - 1)) for i in range(n_sampled)]


def all_rows(subject: Subject, output: Tensor) -> Tensor:
    """(B, T) bool, every row of an output; (B, 1) where it has one for each sequence."""
    n_rows = subject.n_tokens if subject.has_rows(output) else 1
    return torch.ones(subject.n_sequences, n_rows, dtype=torch.bool)


def influence(
    stage: StageOutput,
    rows: Sequence[int],
    found: Pass,
    subject: Subject,
    progress: Callable[[float], None] = lambda _: None,
) -> Tensor:
    """Return how far each token moves some rows of a stage of one sequence, in one random direction each.

    Args:
        stage: the stage.
        rows: which rows.
        found: the differentiable pass that it is of.
        subject: what was run, one sequence.
        progress: called with the fraction done. An error that it raises ends the measurement.

    Returns:
        (rows, T) float64; 0 only where the row does not depend on the token.
    """
    moved = []
    for n_done, row in enumerate(rows, 1):
        only = torch.zeros(1, subject.n_tokens, dtype=torch.bool)
        only[0, row] = True
        moved.append(pulled_back(stage, only, found, subject)[0])
        progress(n_done / len(rows))
    return torch.stack(moved)


def pulled_back(stage: StageOutput, rows: Tensor, found: Pass, subject: Subject) -> Tensor:
    """Return how far each token moves some rows of a stage in a random direction, (B, T); 0 only where it does not.

    Args:
        stage: the stage.
        rows: (B, T) bool, its rows; (B, 1) where it has one for each sequence.
        found: the pass that it is of.
        subject: what was run.
    """
    total = torch.zeros(subject.n_sequences, subject.n_tokens, dtype=torch.float64)
    if not stage.value.requires_grad:
        return total
    direction = torch.randn(stage.value.shape, generator=torch.Generator().manual_seed(1)).to(stage.value)
    direction = direction.masked_fill(~_over(stage, rows), 0.0)
    gradients = torch.autograd.grad(stage.value, found.embedded, direction, retain_graph=True, allow_unused=True)
    for gradient in gradients:
        if gradient is not None:
            parts = gradient.detach().reshape(*subject.tokens.shape[:2], -1)
            by_token = parts.to("cpu", torch.float64).square().sum(-1)
            total = total + (by_token if subject.token_axis == 1 else by_token.T)
    return total.sqrt()


def _over(stage: StageOutput, rows: Tensor) -> Tensor:
    """Rows, (B, T) or (B, 1) bool, as a mask that broadcasts to a stage; of all sequences if it has none."""
    shape = [1] * stage.value.dim()
    if stage.axis is None:
        shape[stage.batch_axis] = len(rows)
        return rows.any(1).reshape(shape).to(stage.value.device)
    axis = stage.axis % stage.value.dim()
    shape[axis] = rows.shape[1]
    if stage.value.shape[stage.batch_axis] != len(rows):
        return rows.any(0).reshape(shape).to(stage.value.device)
    shape[stage.batch_axis] = len(rows)
    return (rows if stage.batch_axis < axis else rows.T).reshape(shape).to(stage.value.device)


def first_stage(found: Pass, rows: Tensor, forbidden: Tensor, subject: Subject) -> StageOutput | None:
    """The first stage of which some rows, (B, T) bool, depend on some token of those forbidden, (B, T) bool."""
    leaking = (
        stage for stage in found.stages if bool((forbidden & (pulled_back(stage, rows, found, subject) != 0)).any())
    )
    return next(leaking, None)


def first_nan(found: Pass) -> str:
    """The first stage that comes to NaN, and why an attention does, as the end of a sentence on the derivative."""
    stage = next((each for each in found.stages if bool(each.value.isnan().any())), None)
    so_is = "" if stage is None else f", and so is what {stage.module or 'the model'} comes to"
    is_of_mask = stage is None or stage.kind == "attention"
    return f"{so_is}: a query is left without a key" if is_of_mask else so_is


def stage_in_words(stage: StageOutput | None, subject: Subject, *, causal: bool) -> str:
    """A sentence on the first stage that depends on what it must not depend on.

    Args:
        stage: it; None where no module does before the end.
        subject: what was run.
        causal: whether no token may see a later one.
    """
    args, kwargs = subject.given(subject.tokens)
    if stage is None:
        found = check(subject.model, *args, causal=causal, **kwargs).findings
        errors = (f"; {path}: {finding.title}" for path, finding in found if finding.severity == "error")
        said = (
            "No module with a row for each token does before the end: it happens after them, or in a forward itself"
        )
        return f"{said}{next(errors, '')}"
    name, is_attention = stage.module or "the model", stage.kind == "attention"
    if not is_attention and stage.kind not in _ROW_BY_ROW:
        return f"The first stage that does is {name} ({stage.kind})"
    mask = ""
    for row in check(subject.model, *args, causal=causal, **kwargs).rows:
        attention = row.attention.module
        is_inside = not attention or name.startswith(f"{attention}.")
        if attention == name or (not is_attention and is_inside):
            name, is_attention = attention or "the model", True
            words = "; ".join(description.words for _, description in row.descriptions[:2])
            title = f" ({row.findings[0].title})" if row.findings else ""
            mask = f", whose mask is: {words}{title}"
            break
    if not is_attention:
        return f"The first stage that does is {name} ({stage.kind})"
    return f"The first stage that does is the attention of {name}{mask}"
