"""The stages of scaled dot-product attention ("Attention Is All You Need", section 3.2.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from model.texts import texts_of
from visualizer.components.derivation.element import Derivation, Step, Terms
from visualizer.stages import derivations, score_changes
from visualizer.stages.attention import agreeing, facts
from visualizer.stages.by_operation import (
    dropout,
    dropout_check,
    framed,
    from_inputs,
    in_steps,
    number_at,
    row_of,
    softmax,
    softmax_checks,
    softmax_line,
    with_dropout,
)
from visualizer.stages.checks import TOLERANCE, Check, equal, product, square_root
from visualizer.stages.derivations import Cell, Reckoning, as_numbers
from visualizer.stages.entry import StageEntry, StageInRun
from visualizer.stages.numpy_lines import NumpyLine

say = texts_of(__name__)

# Scores.


def _scores_checks(stage: StageInRun) -> Iterable[Check]:
    q, k = stage.inputs
    yield product("Q Kᵀ", stage.value, q.value, k.value.mT)


def _scaled_formula(stage: StageInRun) -> str:
    return r"\hat S = S / \sqrt{d_k}" if stage.run.scales_scores(stage.module) else r"\hat S = S / 1"


def _scaled_line(stage: StageInRun) -> NumpyLine:
    if not stage.run.scales_scores(stage.module):
        return from_inputs("{0} / 1.0")(stage)
    return NumpyLine("scaled_scores = scores / np.sqrt(q.shape[-1])", _here(stage, "scores", "q"))


def _scaled_checks(stage: StageInRun) -> Iterable[Check]:
    scores, width = stage.beside("scores").value, stage.beside("q").value.shape[-1]
    if not stage.run.scales_scores(stage.module):
        yield equal(say("not_scaled"), stage.value, scores)
    else:
        yield equal(say("scaled", root=square_root(width)), stage.value, scores / math.sqrt(width))


def _masked_line(stage: StageInRun) -> NumpyLine:
    return from_inputs("np.where({1}, {0}, -np.inf)" if stage.has_beside("mask") else "{0}")(stage)


def _masked_formula(stage: StageInRun) -> str:
    before = "S'" if stage.has_beside("modified_scores") else r"\hat S"
    if not stage.has_beside("mask"):
        return rf"\tilde S = {before}"
    return rf"\tilde S_{{qk}} = {before}_{{qk}} \text{{ if }} M_{{qk}} = 1 \text{{, else }} {{-\infty}}"


def _unmasked(stage: StageInRun) -> StageInRun:
    """The scores that the mask is laid on: the scaled ones, or what a change made of them."""
    return stage.beside("modified_scores" if stage.has_beside("modified_scores") else "scaled_scores")


def _masked_checks(stage: StageInRun) -> Iterable[Check]:
    before = _unmasked(stage)
    if not stage.has_beside("mask"):
        yield equal(say("not_masked", scores=before.entry.title.lower()), stage.value, before.value)
    else:
        expected = torch.where(stage.beside("mask").value, before.value, -math.inf)
        yield equal(say("masked"), stage.value, expected)


def _score(stage: StageInRun, cell: Cell) -> Derivation:
    """A score and what follows from it alone, up to the stage."""
    q = row_of(stage.beside("q"), cell)
    k = as_numbers(stage.beside("k").value[cell.batch, cell.head, cell.column])
    left, right = Terms(say("query", query=cell.row), "query", q), Terms(say("key", key=cell.column), "key", k)
    is_scaled = stage.name != "scores" and stage.run.scales_scores(stage.module)
    found = derivations.dot(left, right, root_of=len(q) if is_scaled else None, role="weights")
    formula, steps = "s = q · k / √d_k" if is_scaled else "s = q · k", list(found.steps)
    if stage.name != "scores" and not is_scaled:
        steps.append(Step(say("not_scaled_number"), found.value))
    if stage.name in ("modified_scores", "masked_scores") and stage.has_beside("modified_scores"):
        formula = say("then", formula=formula, change=score_changes.change_of(stage).text)
        steps += score_changes.steps(stage, cell)
    if stage.name == "masked_scores":
        steps.append(_masked(stage, cell, steps[-1].value))
        formula += say("or_blocked") if stage.has_beside("mask") else ""
    found = Reckoning(tuple(steps), steps[-1].value, found.rows)
    return framed(stage, cell, say("query_times_key"), formula, found, word="score")


def _masked(stage: StageInRun, cell: Cell, score: float) -> Step:
    """Return the step in which the mask passes or blocks a score."""
    if not stage.has_beside("mask"):
        return Step(say("copy", score=_unmasked(stage).entry.title.lower().removesuffix("s")), score)
    if number_at(stage.beside("mask"), cell):
        return Step(say("may_attend"), score)
    blockers = _blockers(stage, cell)
    return Step(say("blocked_by", masks=", ".join(blockers)) if blockers else say("blocked"), -math.inf)


# The mask.


def _blockers(stage: StageInRun, cell: Cell) -> tuple[str, ...]:
    """The masks that block a cell."""
    return stage.run.blocked_by(stage.module, cell.row, cell.column, cell.batch, cell.head)


def _mask_line(stage: StageInRun) -> NumpyLine:
    return NumpyLine("mask = np.broadcast_to(mask, scores.shape)", _here(stage, "scores"), ("mask",))


def _verdicts(stage: StageInRun, cell: Cell) -> Derivation:
    blockers = _blockers(stage, cell)
    verdicts = [
        Step(say("blocks", mask=name), 0.0) if name in blockers else Step(say("allows", mask=name), 1.0)
        for name in stage.run.mask_of(stage.module).names
    ]
    return in_steps(stage, cell, say("all_must_allow"), say("one_and_zero"), verdicts, float(not blockers))


def _mask_checks(stage: StageInRun) -> Iterable[Check]:
    """Count the blocked cells, once where every head has the same, and how many of them each mask blocks."""
    mask, masks = stage.value, stage.run.mask_of(stage.module)
    blocked = _distinct_heads(~mask)
    text = say("cells_blocked", cells=_of_cells(blocked))
    agrees = None
    if masks.names:
        n_batch, _, n_queries, n_keys = mask.shape
        bits = torch.stack([masks.blocked_bits(n_queries, n_keys, batch) for batch in range(n_batch)])
        counts = [int((bits >> i & 1).sum()) for i in range(len(masks.names))]
        by_each = [
            say("by_mask", count=n, mask=name.replace("_", " "))
            for n, name in zip(counts, masks.names, strict=True)
        ]
        several = int((bits & (bits - 1) != 0).sum())
        if several:
            by_each.append(say("by_both", count=several) if len(counts) == 2 else say("by_several", count=several))
        agrees = torch.equal((bits != 0).expand_as(blocked), blocked)
        text = f"{text}: {', '.join(by_each)}"
    yield Check(text, agrees)
    keyless = blocked.all(-1)
    if keyless.any():
        yield Check(say("keyless", queries=_queries(keyless)), None)


def _rows_without_key(stage: StageInRun) -> Tensor:
    """(B, H, Tq), True where the mask leaves a query no key."""
    if stage.has_beside("mask"):
        return ~stage.beside("mask").value.any(-1)
    return torch.zeros(stage.beside("weights").value.shape[:-1], dtype=torch.bool)


def _distinct_heads(of_heads: Tensor) -> Tensor:
    """(B, H, ...) as it is, or its first head alone, (B, 1, ...), where all heads are the same."""
    first = of_heads[:, :1]
    return first if bool((of_heads == first).all()) else of_heads


def _queries(keyless: Tensor) -> str:
    """Say how many queries (B, H, Tq) marks, counted once where they are the same ones for every head."""
    marked = _distinct_heads(keyless)
    return say("queries", count=int(marked.sum())) + _in_heads(marked)


def _of_cells(blocked: Tensor) -> str:
    """``24 of 49 cells``, and in how many sequences and heads where that is more than one."""
    cells = say("cells", count=int(blocked.sum()), total=blocked.numel()) + _in_heads(blocked)
    return cells + say("in_sequences", count=len(blocked)) if len(blocked) > 1 else cells


def _in_heads(of_heads: Tensor) -> str:
    return say("in_heads", count=of_heads.shape[1]) if of_heads.shape[1] > 1 else ""


# Weights, and what they mix.


def _weights_line(stage: StageInRun) -> NumpyLine:
    if not stage.has_beside("mask"):
        return softmax_line(stage)
    lines = (
        "has_key = mask.any(-1, keepdims=True)",
        "largest = np.where(has_key, masked_scores.max(-1, keepdims=True), 0.0)",
        "exponentials = np.exp(masked_scores - largest)",
        "total = np.where(has_key, exponentials.sum(-1, keepdims=True), 1.0)",
        "weights = np.where(mask, exponentials / total, 0.0)",
    )
    return NumpyLine("\n".join(lines), _here(stage, "mask", "masked_scores"))


def _weights_checks(stage: StageInRun) -> Iterable[Check]:
    keyless = _rows_without_key(stage)
    sum_to_one, is_softmax = softmax_checks(stage, keyless=keyless)
    yield sum_to_one
    if keyless.any():
        zero = bool((stage.value[keyless] == 0).all())
        yield Check(say("keyless_zero", queries=_queries(keyless)), zero)
    if stage.has_beside("mask"):
        leaked = stage.value.masked_fill(stage.beside("mask").value, 0.0).count_nonzero()
        yield Check(say("blocked_zero"), int(leaked) == 0)
    yield is_softmax


def _weight(stage: StageInRun, cell: Cell) -> tuple[Derivation, ...]:
    """The score's own derivation, then the softmax along its row."""
    scores = stage.beside("masked_scores") if stage.has_beside("mask") else _unmasked(stage)
    return _score(scores, cell), softmax(stage, cell, word="weight")


def _dropped_checks(stage: StageInRun) -> Iterable[Check]:
    yield from dropout_check(say("weights"))(stage)
    off = ((stage.value.sum(-1) - 1).abs() > TOLERANCE) & ~_rows_without_key(stage)
    yield Check(say("off", count=int(off.sum()), total=off.numel()), None)


def _context_checks(stage: StageInRun) -> Iterable[Check]:
    value, (weights, v) = stage.value, (before.value for before in stage.inputs)
    yield product("weights × V", value, weights, v)
    if not stage.has_beside("dropped_weights"):
        margin = TOLERANCE * (1 + v.abs().max())
        between = (value >= v.amin(-2, keepdim=True) - margin) & (value <= v.amax(-2, keepdim=True) + margin)
        inside = bool(between[~_rows_without_key(stage)].all())
        yield Check(say("between"), inside)


def _context(stage: StageInRun, cell: Cell) -> Derivation:
    weights, v = stage.inputs
    values = as_numbers(v.value[cell.batch, cell.head, :, cell.column])
    found = derivations.dot(
        Terms(say("row", weights=weights.entry.title.lower(), query=cell.row), "weights", row_of(weights, cell)),
        Terms(say("column", column=cell.column), "value", values),
    )
    formula, keys = say("over_the_keys"), stage.run.axes(weights.path)[1]
    return framed(stage, cell, say("weights_times_values"), formula, found, columns=keys)


def _beside(name: str, with_it: str, without: str) -> Callable[[StageInRun], str]:
    """One formula where the same module has a stage of another name, else another."""
    return lambda stage: with_it if stage.has_beside(name) else without


def _here(stage: StageInRun, *names: str) -> dict[str, str]:
    return {name: stage.beside(name).path for name in names}


_SOFTMAX = r"A_{qk} = \frac{e^{\tilde S_{qk}}}{\sum_j e^{\tilde S_{qj}}}"
_OF_SCORES = ("row", "temperature", "directions")
_stage = partial(StageEntry, facts=facts, block="attention")
_detail = partial(_stage, is_detail=True)

ENTRIES: tuple[StageEntry, ...] = (
    _stage(
        "scores",
        say("scores_title"),
        "weights",
        formula=r"S = Q_h K_h^\top",
        numpy=from_inputs("{0} @ {1}.swapaxes(-1, -2)"),
        checks=agreeing(_scores_checks),
        derive=_score,
        charts=_OF_SCORES,
    ),
    _detail(
        "scaled_scores",
        say("scaled_scores_title"),
        "weights",
        formula=_scaled_formula,
        numpy=_scaled_line,
        checks=agreeing(_scaled_checks),
        derive=_score,
        charts=_OF_SCORES,
    ),
    _stage(
        "modified_scores",
        say("modified_scores_title"),
        "weights",
        formula=score_changes.formula,
        numpy=score_changes.line,
        checks=agreeing(score_changes.checks),
        derive=_score,
        is_any_function=True,
        charts=_OF_SCORES,
    ),
    _stage(
        "mask",
        say("mask_title"),
        "weights",
        formula=r"M_{qk} = 1 \text{ if } q \text{ may attend to } k \text{, else } 0",
        numpy=_mask_line,
        checks=agreeing(_mask_checks),
        derive=_verdicts,
        charts=_OF_SCORES,
        numbers="shares",
        marks_blocked=True,
    ),
    _detail(
        "masked_scores",
        say("masked_scores_title"),
        "weights",
        formula=_masked_formula,
        numpy=_masked_line,
        checks=agreeing(_masked_checks),
        derive=_score,
        charts=_OF_SCORES,
        marks_blocked=True,
    ),
    _stage(
        "weights",
        say("weights_title"),
        "weights",
        formula=_beside("mask", rf"{_SOFTMAX} \text{{, or }} 0 \text{{ if no key is left}}", _SOFTMAX),
        numpy=_weights_line,
        checks=agreeing(_weights_checks),
        derive=_weight,
        charts=(*_OF_SCORES, "distance"),
        numbers="shares",
        marks_blocked=True,
        is_telling=True,
        left_out=("mask",),
    ),
    _detail(
        "dropped_weights",
        say("dropped_weights_title"),
        "weights",
        formula=r"\tilde A = \operatorname{dropout}(A)",
        numpy=with_dropout("{0}"),
        checks=agreeing(_dropped_checks),
        derive=dropout,
        numbers="shares",
        marks_blocked=True,
    ),
    _stage(
        "context",
        say("context_title"),
        "value",
        formula=_beside("dropped_weights", r"C_h = \tilde A V_h", "C_h = A V_h"),
        checks=agreeing(_context_checks),
        derive=_context,
    ),
)
