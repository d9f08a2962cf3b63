"""How one number came to be: the elements it was computed from, recomputed step by step from the trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.positional_encoding import LearnedPositions, NoPositions
from visualizer.components.axis import Axis
from visualizer.components.derivation import Derivation, Step, Terms
from visualizer.runs.run import Run
from visualizer.stages.by_operation import reckon
from visualizer.stages.checks import dropout_in
from visualizer.stages.explanations import FUSED, explain, fused_stage, kind_of
from visualizer.stages.expressions import words_on
from visualizer.stages.operands import operands_of, used

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


def derive(run: Run, cell: Cell) -> tuple[Derivation, ...]:
    """The derivations of one number, in the order in which they were computed."""
    name = run.trace[cell.path].name.rstrip("0123456789")
    found = _DERIVATIONS.get((kind_of(run.trace, cell.path), name), _by_operation)(run, cell)
    return found if isinstance(found, tuple) else (found,)


def _by_operation(run: Run, cell: Cell) -> Derivation:
    """What the recorded operations make of a number, where nothing else is known of the stage."""
    found = reckon(run, cell.path, cell.index(run.trace[cell.path].value.dim()))
    return _derivation(
        run,
        cell,
        title=_cell_title(run, cell, run.trace[cell.path].name),
        formula=words_on(run, cell.path),
        columns=_counted(len(found.rows[0].values) if found.rows else 0),
        rows=found.rows,
        steps=found.steps,
        result=found.value,
    )


def _scores(run: Run, cell: Cell) -> Derivation:
    """A score and what follows from it alone, up to the stage the cell belongs to."""
    module, _, name = cell.path.rpartition(".")
    at = (cell.batch, cell.head)
    q = _numbers(run, f"{module}.q", *at, cell.row)
    k = _numbers(run, f"{module}.k", *at, cell.column)
    products = q * k
    score = float(products.sum())
    steps = [Step("sum of the products", score)]
    formula, result = "s = q · k", score
    if name != "scores" and run.scales_scores(module):
        formula, result = "s = q · k / √d_k", score / math.sqrt(len(q))
        steps.append(Step(f"÷ √{len(q)} ({math.sqrt(len(q)):.4g})", result))
    elif name != "scores":
        steps.append(Step("scaling is off: the same number", result))
    if name in ("masked_scores", "weights"):
        if f"{module}.mask" in run.trace:
            formula = f"{formula}, or -∞ where a mask blocks"
            masked = _masked(run, cell, result)
            steps, result = [*steps, masked], masked.value
        elif name == "masked_scores":
            steps.append(Step("no mask: a copy of the scaled score", result))
    stage = f"{module}.{'masked_scores' if name == 'weights' else name}"
    return _derivation(
        run,
        Cell(stage, cell.batch, cell.head, cell.row, cell.column),
        title=f"{_cell_title(run, cell, 'score')}: query times key",
        formula=formula,
        columns=_counted(len(q)),
        rows=(
            Terms(f"query {cell.row}", "query", q),
            Terms(f"key {cell.column}", "key", k, "×"),
            Terms("product", "weights", products, "="),
        ),
        steps=steps,
        result=result,
    )


def _masked(run: Run, cell: Cell, score: float) -> Step:
    """What the mask makes of a score."""
    module = cell.path.rpartition(".")[0]
    if run.trace[f"{module}.mask"].value[cell.batch, cell.head, cell.row, cell.column]:
        return Step("mask: may attend", score)
    blockers = run.blocked_by(module, cell.row, cell.column, cell.batch, cell.head)
    return Step(f"mask: blocked by {', '.join(blockers)}" if blockers else "mask: blocked", -math.inf)


def _weights(run: Run, cell: Cell) -> tuple[Derivation, ...]:
    """The score's own derivation, then the softmax along its row."""
    module = cell.path.rpartition(".")[0]
    row = _numbers(run, f"{module}.masked_scores", cell.batch, cell.head, cell.row)
    return _scores(run, cell), _softmax(run, cell, row, _columns_of(run, f"{module}.masked_scores"), "weight")


def _probabilities(run: Run, cell: Cell) -> Derivation:
    row = _numbers(run, "logits", cell.batch, cell.row)
    return _softmax(run, cell, row, _columns_of(run, "logits"), "probability")


def _softmax(run: Run, cell: Cell, row: Numbers, keys: Axis, word: str) -> Derivation:
    greatest = row.max() if len(row) else -math.inf
    if greatest == -math.inf:
        return _derivation(
            run,
            cell,
            title=f"{_cell_title(run, cell, word)}: no key left",
            formula="every key of this query is blocked: all its weights are zero",
            columns=keys,
            rows=(Terms("masked score", "weights", row),),
            steps=[Step("no key left", 0.0)],
            result=0.0,
        )
    exponentials = np.exp(row - greatest)
    total = float(exponentials.sum())
    own = float(exponentials[cell.column])
    return _derivation(
        run,
        cell,
        title=f"{_cell_title(run, cell, word)}: softmax along the row",
        formula="a = exp(s - max) / Σ exp(s - max)",
        columns=keys,
        focus=cell.column,
        rows=(
            Terms("score", "weights", row),
            Terms("exp(s - max)", "weights", exponentials),
            Terms("share", "weights", exponentials / total),
        ),
        steps=[
            Step("largest score of the row", float(greatest)),
            Step("exp(s - max)", own),
            Step("sum over the row", total),
            Step("exp ÷ sum", own / total),
        ],
        result=own / total,
    )


def _context(run: Run, cell: Cell) -> Derivation:
    module = cell.path.rpartition(".")[0]
    weights_path = operands_of(run, cell.path)[0].source
    weights = _numbers(run, weights_path, cell.batch, cell.head, cell.row)
    values = _numbers(run, f"{module}.v", cell.batch, cell.head, slice(None), cell.column)
    return _dot(
        run,
        cell,
        title=f"{_cell_title(run, cell, 'context')}: weights times values",
        formula="c = Σ a · v over the keys",
        columns=_columns_of(run, weights_path),
        left=Terms(f"{explain(run.trace, weights_path).title.lower()}, query {cell.row}", "weights", weights),
        right=Terms(f"values, column {cell.column}", "value", values),
    )


def _linear(run: Run, cell: Cell) -> Derivation:
    """A row of the input times a column of the matrix, plus the bias."""
    entering, matrix, *biases = operands_of(run, cell.path)
    row = _numbers(run, entering.source, cell.batch, cell.row)
    column = _array(used(run.model, matrix)[cell.column])
    bias = float(used(run.model, biases[0])[cell.column]) if biases else None
    role = explain(run.trace, cell.path).role
    return _dot(
        run,
        cell,
        title=f"{_cell_title(run, cell, run.trace[cell.path].name)}: row times column",
        formula="y = x · w" if bias is None else "y = x · w + b",
        columns=_counted(len(row)),
        left=Terms(f"x, token {cell.row}", explain(run.trace, entering.source).role, row),
        right=Terms(f"w, column {cell.column}", role, column),
        bias=bias,
    )


def _attention_output(run: Run, cell: Cell) -> Derivation:
    return _linear(run, cell) if len(operands_of(run, cell.path)) > 1 else _copy(run, cell)


def _projection(run: Run, cell: Cell) -> Derivation:
    """A projection of its own, or a part of one that serves several."""
    fused = fused_stage(run.trace, cell.path)
    if not fused:
        return _linear(run, cell)
    (before,) = operands_of(run, cell.path)
    name, width = run.trace[cell.path].name, run.trace[cell.path].value.shape[-1]
    part = FUSED[fused].index(name)
    column = part * width + cell.column
    origin = f"column {column} of {fused}: part {part} × {width} + {cell.column}"
    number = _number(run, before.source, cell.batch, cell.row, column)
    return _steps_only(run, cell, "moved, not computed", origin, [Step(origin, number)])


def _copy(run: Run, cell: Cell) -> Derivation:
    """A number that was only moved: cut into heads, or laid side by side."""
    before = operands_of(run, cell.path)
    name = run.trace[cell.path].name
    if not before:
        return _given(run, cell)
    source = before[0].source
    head_dim = run.head_dim(cell.path)
    if name in ("q", "k", "v"):
        column = cell.head * head_dim + cell.column
        number = _number(run, source, cell.batch, cell.row, column)
        origin = f"column {column} of {run.trace[source].name}: head {cell.head} × {head_dim} + {cell.column}"
    elif name == "concat":
        head, column = divmod(cell.column, head_dim)
        number = _number(run, source, cell.batch, head, cell.row, column)
        origin = f"head {head}, column {column} of context"
    else:
        number = _number(run, source, cell.batch, cell.row, cell.column)
        origin = f"the same number as in {run.trace[source].name}"
    return _steps_only(run, cell, "moved, not computed", origin, [Step(origin, number)])


def _given(run: Run, cell: Cell) -> Derivation:
    number = _number(run, cell.path, *cell.index(run.trace[cell.path].value.dim()))
    return _steps_only(run, cell, "an input", "given from outside", [Step("given", number)])


def _mask(run: Run, cell: Cell) -> Derivation:
    module = cell.path.rpartition(".")[0]
    blockers = run.blocked_by(module, cell.row, cell.column, cell.batch, cell.head)
    verdicts = [
        Step(f"{name}: {'blocks' if name in blockers else 'allows'}", float(name not in blockers))
        for name in run.mask_of(module).names
    ]
    return _steps_only(run, cell, "all masks must allow it", "1 = may attend, 0 = blocked", verdicts, not blockers)


def _dropped(run: Run, cell: Cell) -> Derivation:
    (before,) = operands_of(run, cell.path)
    index = cell.index(run.trace[cell.path].value.dim())
    number = _number(run, before.source, *index)
    p = dropout_in(run.model, run.trace[cell.path].module_path)
    dropout = _dropout(number, p, is_zero=_number(run, cell.path, *index) == 0.0)
    steps = [Step(explain(run.trace, before.source).title.lower(), number), dropout]
    return _steps_only(run, cell, "dropout", "x / (1 - p) or 0", steps)


def _residual(run: Run, cell: Cell) -> Derivation:
    stream, found = operands_of(run, cell.path)
    x, y = (_number(run, operand.source, cell.batch, cell.row, cell.column) for operand in (stream, found))
    name = explain(run.trace, found.source).title.lower()
    steps = [Step("x", x), Step(f"+ {name} ({y:.4g})", x + y)]
    return _steps_only(run, cell, "residual addition", f"x + {name}", steps)


def _dropout(number: float, p: float, *, is_zero: bool) -> Step:
    """What dropout with probability ``p`` made of a number: zero, or somewhat more than it was."""
    if number == 0.0:
        return Step("zero already", 0.0)
    return Step("dropped at random", 0.0) if is_zero else Step(f"kept: ÷ (1 - {p:g})", number / (1 - p))


def _norm(run: Run, cell: Cell) -> Derivation:
    (before,) = operands_of(run, cell.path)
    row = _numbers(run, before.source, cell.batch, cell.row)
    epsilon = run.layer_norm_eps(cell.path)
    gamma, beta = (
        float(run.model.get_parameter(f"{cell.path}.{name}")[cell.column]) for name in ("weight", "bias")
    )
    mean, variance = float(row.mean()), float(row.var())
    deviation = math.sqrt(variance + epsilon)
    normal = (float(row[cell.column]) - mean) / deviation
    result = normal * gamma + beta
    return _derivation(
        run,
        cell,
        title=f"{_cell_title(run, cell, 'norm')}: shift and scale of the row",
        formula="y = γ (x - mean) / √(variance + ε) + β",
        columns=_counted(len(row)),
        rows=(Terms(f"x, token {cell.row}", "residual", row), Terms("x - mean", "residual", row - mean)),
        steps=[
            Step("x", float(row[cell.column])),
            Step("- mean of the row", float(row[cell.column]) - mean),
            Step(f"÷ √(variance + ε) ({deviation:.4g}, ε = {epsilon:g})", normal),
            Step(f"× γ ({gamma:.3g}) + β ({beta:.3g})", result),
        ],
        result=result,
    )


def _activation(run: Run, cell: Cell) -> Derivation:
    (before,) = operands_of(run, cell.path)
    x = _number(run, before.source, cell.batch, cell.row, cell.column)
    if run.activation(cell.path) == "relu":
        return _steps_only(run, cell, "ReLU", "max(0, x)", [Step("x", x), Step("max(0, x)", max(0.0, x))])
    share = 0.5 * (1 + math.erf(x / math.sqrt(2)))
    steps = [
        Step("x", x),
        Step("Φ(x), the normal distribution's share below x", share),
        Step("x · Φ(x)", x * share),
    ]
    return _steps_only(run, cell, "GELU", "x · Φ(x)", steps)


def _embedding(run: Run, cell: Cell) -> Derivation:
    (table,) = operands_of(run, cell.path)
    token_id = run.token_id(cell.path, cell.row)
    number = float(run.model.get_parameter(table.source)[token_id, cell.column])
    text = f"row {token_id} of the embedding table, column {cell.column}"
    return _steps_only(run, cell, "looked up", text, [Step(text, number)])


def _scaled_embedding(run: Run, cell: Cell) -> Derivation:
    (before,) = operands_of(run, cell.path)
    number = _number(run, before.source, cell.batch, cell.row, cell.column)
    width = run.trace[before.source].value.shape[-1]
    root = math.sqrt(width)
    steps = [Step("embedding", number), Step(f"× √{width} ({root:.4g})", number * root)]
    return _steps_only(run, cell, "scaled", "e · √d_model", steps)


def _positional_encoding(run: Run, cell: Cell) -> Derivation:
    number = _number(run, cell.path, *cell.index(run.trace[cell.path].value.dim()))
    position, before_it = run.position(cell.path, cell.row, cell.batch), []
    if position != cell.row:
        before_it = [Step(f"position of row {cell.row}, counted from the first token after the padding", position)]
    positions = getattr(run.model.get_submodule(run.trace[cell.path].module_path), "positions", None)
    if isinstance(positions, NoPositions):
        return _steps_only(run, cell, "no positions", "p = 0", [Step("zero for every position", 0.0)])
    if isinstance(positions, LearnedPositions):
        text = f"row {position} of the position table, column {cell.column}"
        return _steps_only(run, cell, "looked up", text, [*before_it, Step(text, number)])
    width = run.trace[cell.path].value.shape[-1]
    exponent = (cell.column - cell.column % 2) / width
    angle = position / 10000.0**exponent
    wave = "cos" if cell.column % 2 else "sin"
    result = math.cos(angle) if cell.column % 2 else math.sin(angle)
    steps = [
        *before_it,
        Step(f"angle = {position} / 10000^({cell.column - cell.column % 2}/{width})", angle),
        Step(f"{wave}(angle)", result),
    ]
    return _steps_only(run, cell, "a wave", f"{wave}(t / 10000^(2i/d_model))", steps)


def _embedded(run: Run, cell: Cell) -> Derivation:
    scaled, position = operands_of(run, cell.path)
    token = _number(run, scaled.source, cell.batch, cell.row, cell.column)
    place = _number(run, position.source, *cell.index(run.trace[position.source].value.dim()))
    total = token + place
    steps = [Step("scaled embedding", token), Step(f"+ positional encoding ({place:.4g})", total)]
    p = dropout_in(run.model, run.trace[cell.path].module_path)
    if p == 0:
        return _steps_only(run, cell, "sum", "e · √d_model + p", steps)
    is_zero = _number(run, cell.path, cell.batch, cell.row, cell.column) == 0.0
    steps.append(_dropout(total, p, is_zero=is_zero))
    return _steps_only(run, cell, "sum", "dropout(e · √d_model + p)", steps)


def _dot(
    run: Run,
    cell: Cell,
    *,
    title: str,
    formula: str,
    columns: Axis,
    left: Terms,
    right: Terms,
    bias: float | None = None,
) -> Derivation:
    products = left.values * right.values
    total = float(products.sum())
    steps = [Step("sum of the products", total)]
    if bias is not None:
        steps.append(Step(f"+ bias ({bias:.4g})", total + bias))
    rows = (left, replace(right, operator="×"), Terms("product", "neutral", products, "="))
    result = total + (bias or 0.0)
    return _derivation(
        run, cell, title=title, formula=formula, columns=columns, rows=rows, steps=steps, result=result
    )


def _steps_only(
    run: Run, cell: Cell, what: str, formula: str, steps: Sequence[Step], result: float | None = None
) -> Derivation:
    final = steps[-1].value if result is None else float(result)
    title = f"{_cell_title(run, cell, run.trace[cell.path].name)}: {what}"
    return _derivation(
        run, cell, title=title, formula=formula, columns=_counted(0), rows=(), steps=steps, result=final
    )


def _derivation(
    run: Run,
    cell: Cell,
    *,
    title: str,
    formula: str,
    columns: Axis,
    rows: tuple[Terms, ...],
    steps: Sequence[Step],
    result: float,
    focus: int | None = None,
) -> Derivation:
    model_number = _number(run, cell.path, *cell.index(run.trace[cell.path].value.dim()))
    difference = 0.0 if model_number == result else abs(model_number - result)
    return Derivation(
        title=title,
        columns=columns.labels,
        sequence=columns.sequence,
        rows=rows,
        steps=tuple(steps),
        result=result,
        formula=formula,
        agrees=difference <= TOLERANCE * max(1.0, abs(model_number)),
        difference=difference,
        focus=focus,
    )


def _cell_title(run: Run, cell: Cell, word: str) -> str:
    rows, columns = run.axes(cell.path)
    return f"{word} of {rows.name} {cell.row}, {columns.name} {cell.column}"


def _columns_of(run: Run, path: str) -> Axis:
    return run.axes(path)[1]


def _numbers(run: Run, path: str, *index: int | slice) -> Numbers:
    return _array(run.trace[path].value[index])


def _number(run: Run, path: str, *index: int) -> float:
    return float(run.trace[path].value[index])


def _array(value: Tensor) -> Numbers:
    array: Numbers = value.detach().to(torch.float64).numpy()
    return array


def _counted(n: int) -> Axis:
    return Axis("element", tuple(str(i) for i in range(n)))


_DERIVATIONS: dict[tuple[str, str], Callable[[Run, Cell], Derivation | tuple[Derivation, ...]]] = {
    ("inputs", "embedding"): _embedding,
    ("inputs", "scaled_embedding"): _scaled_embedding,
    ("inputs", "positional_encoding"): _positional_encoding,
    ("inputs", "embedded"): _embedded,
    ("attention", "query_input"): _copy,
    ("attention", "key_input"): _copy,
    ("attention", "value_input"): _copy,
    ("attention", "qkv"): _linear,
    ("attention", "kv"): _linear,
    ("attention", "q_proj"): _projection,
    ("attention", "k_proj"): _projection,
    ("attention", "v_proj"): _projection,
    ("attention", "q"): _copy,
    ("attention", "k"): _copy,
    ("attention", "v"): _copy,
    ("attention", "scores"): _scores,
    ("attention", "scaled_scores"): _scores,
    ("attention", "mask"): _mask,
    ("attention", "masked_scores"): _scores,
    ("attention", "weights"): _weights,
    ("attention", "dropped_weights"): _dropped,
    ("attention", "context"): _context,
    ("attention", "concat"): _copy,
    ("attention", "output"): _attention_output,
    ("feed_forward", "input"): _given,
    ("feed_forward", "hidden"): _linear,
    ("feed_forward", "activation"): _activation,
    ("feed_forward", "dropped_activation"): _dropped,
    ("feed_forward", "output"): _linear,
    ("layer", "dropped_output"): _dropped,
    ("layer", "residual"): _residual,
    ("layer", "norm"): _norm,
    ("model", "norm"): _norm,
    ("model", "logits"): _linear,
    ("model", "probabilities"): _probabilities,
    ("model", "positional_encoding"): _positional_encoding,
}
