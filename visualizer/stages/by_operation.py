"""The consequences of the operation that computed a stage: checks, a line of NumPy, the derivation of a number.

An entry takes from here what it does not say itself, or the pieces to say it with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from model.dataflow import Constant, Operation, ParameterInput, StageInput, inputs_of
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.derivation.element import Derivation, Step, Terms
from visualizer.stages import derivations
from visualizer.stages.checks import TOLERANCE, Check, again, dropped, is_exact, product, short, some_rows
from visualizer.stages.derivations import Cell, Numbers, Reckoning, as_numbers
from visualizer.stages.entry import StageInRun
from visualizer.stages.expressions import axis_of
from visualizer.stages.numpy_lines import NumpyLine, variable
from visualizer.stages.operands import used

say = texts_of(__name__)


def is_one_operation(stage: StageInRun) -> bool:
    """True if one operation made a stage of other stages themselves, and of parameters or parts of them."""
    node = stage.node
    return isinstance(node, Operation) and not any(
        isinstance(part, StageInput)
        for computed in node.inputs
        if isinstance(computed, Operation)
        for part in inputs_of(computed)
    )


# What must hold.


def checks(stage: StageInRun) -> Sequence[Check]:
    """Return the checks of a stage that follow from its operation, computed again in float64."""
    is_simple = is_one_operation(stage) and len(stage.inputs) == 1 and stage.value.dim() > 1
    find = _CHECKS.get(stage.operation) if is_simple else None
    return find(stage) if find else ()


def linear_check(stage: StageInRun) -> Sequence[Check]:
    """The product with a matrix, and a bias."""
    weight, *biases = parameters(stage)
    (x,) = stage.inputs
    return (product("x W + b" if biases else "x W", stage.value, x.value, weight.T, *biases),)


def softmax_checks(stage: StageInRun, *, keyless: Tensor | None = None) -> Sequence[Check]:
    """Rows that sum to one, but for those (...) without any key, which are zero."""
    value, before = stage.value, stage.inputs[0]
    total = torch.ones(value.shape[:-1], dtype=value.dtype)
    which = say("rows")
    if keyless is not None and keyless.any():
        total, which = (~keyless).to(value.dtype), say("rows_with_key")
    error = (value.sum(-1) - total).abs().max().item()
    rows, where = some_rows(value)
    expected = before.value[..., rows, :].double().softmax(-1)
    if keyless is not None:
        expected = expected.masked_fill(keyless[..., rows, None], 0.0)
    return (
        Check(say("sum_to_one", which=which, error=short(error)), error < TOLERANCE),
        again(say("softmax_of", title=before.entry.title.lower()), where, value[..., rows, :], expected),
    )


def _softmax_checks(stage: StageInRun) -> Sequence[Check]:
    is_along_rows = isinstance(stage.node, Operation) and axis_of(stage.node) in (-1, stage.value.dim() - 1)
    return softmax_checks(stage) if is_along_rows else ()


def _activation_check(stage: StageInRun) -> Sequence[Check]:
    rows, where = some_rows(stage.value)
    x, value = stage.inputs[0].value[..., rows, :].double(), stage.value[..., rows, :]
    if stage.operation == "relu":
        return (again("ReLU", where, value, F.relu(x)),)
    return (again("GELU", where, value, F.gelu(x), 1 + x.abs()),)


def _norm_checks(stage: StageInRun) -> Sequence[Check]:
    value, x, norm = stage.value, stage.inputs[0].value.double(), norm_of(stage)
    if norm is None:
        return ()
    gamma, beta, epsilon = norm[0].double(), norm[1].double(), norm[2]
    variance = x.var(-1, correction=0, keepdim=True)
    reach = x.abs().amax(-1, keepdim=True) / (variance + epsilon).sqrt()
    expected = F.layer_norm(x, gamma.shape, gamma, beta, epsilon)
    found = [again("LayerNorm(x)", "", value, expected, 1 + gamma.abs() * reach + beta.abs())]
    if gamma.all():
        normal = (value.double() - beta) / gamma
        mean, spread = normal.mean(-1, keepdim=True).abs(), normal.var(-1, correction=0, keepdim=True)
        errors = torch.maximum(mean, (spread - variance / (variance + epsilon)).abs())
        span = f"{spread.min():.4f} to {spread.max():.4f}"
        text = say("normal", largest=short(mean.max()), span=span)
        found.append(Check(text, bool((errors <= 10 * TOLERANCE * (1 + reach)).all())))
    return found


_CHECKS: dict[str, Callable[[StageInRun], Sequence[Check]]] = {
    "linear": linear_check,
    "softmax": _softmax_checks,
    "relu": _activation_check,
    "gelu": _activation_check,
    "layer_norm": _norm_checks,
}


def dropout_check(what: str) -> Callable[[StageInRun], Iterable[Check]]:
    """That dropout did nothing else to ``what`` was its input."""
    return lambda stage: (dropped(what, stage.value, stage.inputs[0].value, stage.dropout),)


def parameters(stage: StageInRun) -> tuple[Tensor, ...]:
    """The parameters among the inputs of a stage, or the rows of them that are used."""
    return tuple(used(stage.run, operand) for operand in stage.operands if operand.is_parameter)


def norm_of(stage: StageInRun) -> tuple[Tensor, Tensor, float] | None:
    """The γ, β and ε of the layer norm that computed a stage; None where it has not all of them."""
    node = stage.node
    if not isinstance(node, Operation) or "eps" not in node.keywords:
        return None
    found = [stage.run.parameters[part.name] for part in node.inputs if isinstance(part, ParameterInput)]
    return (found[0], found[1], float(node.keywords["eps"])) if len(found) == 2 else None


# In symbols.


def linear_formula(result: str, entering: str, matrix: str, bias: str) -> Callable[[StageInRun], str]:
    """A product with a matrix, and a bias where the model adds one."""

    def write(stage: StageInRun) -> str:
        signs = [operand.operator for operand in stage.operands]
        return f"{result} = {entering} {matrix}" + (f" + {bias}" if "+" in signs else "")

    return write


# In NumPy.


def numpy_line(stage: StageInRun) -> NumpyLine | None:
    """The line that does the same; None where nobody has written one for the operation."""
    if isinstance(stage.node, StageInput):
        return from_inputs("{0}")(stage)
    if isinstance(stage.node, Constant):
        outside = stage.name.removesuffix("_input").replace("input", "x")
        return NumpyLine(f"{stage.name} = {outside}", {}, (outside,))
    write = _NUMPY.get(stage.operation)
    return write(stage) if write else None


def linear_line(stage: StageInRun) -> NumpyLine:
    """A product with a matrix as ``nn.Linear`` stores it."""
    names = {variable(operand.source, stage.path): operand.source for operand in stage.operands}
    x, weight, *biases = [
        f"{name}[{':'.join(map(str, operand.rows))}]" if operand.rows else name
        for name, operand in zip(names, stage.operands, strict=True)
    ]
    return NumpyLine(f"{stage.name} = {' + '.join([f'{x} @ {weight}.T', *biases])}", names)


def softmax_line(stage: StageInRun) -> NumpyLine:
    """Shares along the rows."""
    return from_inputs(
        "exponentials / exponentials.sum(-1, keepdims=True)",
        before=("exponentials = np.exp({0} - {0}.max(-1, keepdims=True))",),
    )(stage)


def _norm_line(stage: StageInRun) -> NumpyLine | None:
    norm = norm_of(stage)
    if norm is None:
        return None
    line = from_inputs(
        "gamma * normal + beta",
        before=(
            "centred = {0} - {0}.mean(-1, keepdims=True)",
            f"normal = centred / np.sqrt({{0}}.var(-1, keepdims=True) + {norm[2]:g})",
        ),
    )(stage)
    return NumpyLine(line.code, {**line.reads, "gamma": f"{stage.path}.weight", "beta": f"{stage.path}.bias"})


def from_inputs(expression: str, *, before: Sequence[str] = ()) -> Callable[[StageInRun], NumpyLine]:
    """Lines whose ``{0}``, ``{1}`` are the inputs of the stage, the last of which gives it."""

    def write(stage: StageInRun) -> NumpyLine:
        names = {variable(operand.source, stage.path): operand.source for operand in stage.operands}
        lines = [*before, f"{stage.name} = {expression}"]
        return NumpyLine("\n".join(line.format(*names) for line in lines), names)

    return write


def with_dropout(without: str, inside: str = "") -> Callable[[StageInRun], NumpyLine]:
    """The same where dropout may act on the result, which is ``inside`` what it multiplies."""

    def write(stage: StageInRun) -> NumpyLine:
        if stage.dropout == 0:
            return from_inputs(without)(stage)
        line = from_inputs(f"{inside or without} * keep / (1 - {stage.dropout:g})")(stage)
        return NumpyLine(line.code, line.reads, ("keep",))

    return write


_NUMPY: dict[str, Callable[[StageInRun], NumpyLine | None]] = {
    "linear": linear_line,
    "softmax": softmax_line,
    "layer_norm": _norm_line,
    "matmul": from_inputs("{0} @ {1}"),
    "add": from_inputs("{0} + {1}"),
    "relu": from_inputs("np.maximum(0, {0})"),
    "gelu": from_inputs("{0} * (1 + np.vectorize(math.erf)({0} / math.sqrt(2))) / 2"),
}


# How a number came to be.


def derivation(stage: StageInRun, cell: Cell) -> Derivation | None:
    """A number by the operation of its stage; None where nobody has written it down for the operation."""
    if isinstance(stage.node, Constant):
        number = number_at(stage, cell)
        return in_steps(stage, cell, say("an_input"), say("from_outside"), [Step("given", number)])
    if isinstance(stage.node, StageInput):
        (before,) = stage.inputs
        return moved(stage, cell, say("same_as", name=before.name), number_at(before, cell))
    find = _DERIVATIONS.get(stage.operation)
    return find(stage, cell) if find and is_one_operation(stage) else None


def _linear(stage: StageInRun, cell: Cell) -> Derivation:
    """A row of the input times a column of the matrix, plus the bias."""
    (x,), (weight, *biases) = stage.inputs, parameters(stage)
    found = derivations.dot(
        Terms(f"x, token {cell.row}", x.entry.role, row_of(x, cell)),
        Terms(f"w, column {cell.column}", stage.entry.role, as_numbers(weight[cell.column])),
        bias=float(biases[0][cell.column]) if biases else None,
    )
    return framed(stage, cell, say("linear"), "y = x · w + b" if biases else "y = x · w", found)


def softmax(stage: StageInRun, cell: Cell, *, word: str = "") -> Derivation:
    """A share, called ``word``, of the numbers of its row."""
    (before,) = stage.inputs
    columns = stage.run.axes(before.path)[1]
    row = row_of(before, cell)
    if row.max(initial=-math.inf) == -math.inf:
        nothing = Reckoning((Step(say("no_key_left"), 0.0),), 0.0, (Terms(say("masked_score"), "weights", row),))
        formula = say("all_blocked")
        return framed(stage, cell, say("no_key_left"), formula, nothing, word=word, columns=columns)
    found = derivations.softmax(row, cell.column, role="weights")
    formula = "a = exp(s - max) / Σ exp(s - max)"
    return framed(stage, cell, say("softmax"), formula, found, word=word, columns=columns, focus=cell.column)


def _norm(stage: StageInRun, cell: Cell) -> Derivation | None:
    norm, (before,), at = norm_of(stage), stage.inputs, cell.column
    if norm is None:
        return None
    x = Terms(f"x, token {cell.row}", before.entry.role, row_of(before, cell))
    gamma, beta, epsilon = float(norm[0][at]), float(norm[1][at]), norm[2]
    found = derivations.layer_norm(x, at, gamma=gamma, beta=beta, epsilon=epsilon)
    formula = "y = γ (x - mean) / √(variance + ε) + β"
    return framed(stage, cell, say("norm"), formula, found, word="norm")


def _relu(stage: StageInRun, cell: Cell) -> Derivation:
    return in_steps(stage, cell, "ReLU", "max(0, x)", derivations.relu(number_at(stage.inputs[0], cell)))


def _gelu(stage: StageInRun, cell: Cell) -> Derivation:
    return in_steps(stage, cell, "GELU", "x · Φ(x)", derivations.gelu(number_at(stage.inputs[0], cell)))


_DERIVATIONS: dict[str, Callable[[StageInRun, Cell], Derivation | None]] = {
    "linear": _linear,
    "softmax": softmax,
    "layer_norm": _norm,
    "relu": _relu,
    "gelu": _gelu,
}


def dropout(stage: StageInRun, cell: Cell) -> Derivation:
    """Derive what dropout made of a number."""
    (before,) = stage.inputs
    number = number_at(before, cell)
    step = derivations.dropout(number, stage.dropout, is_zero=number_at(stage, cell) == 0.0)
    steps = [Step(before.entry.title.lower(), number), step]
    return in_steps(stage, cell, "dropout", "x / (1 - p) or 0", steps)


def moved(stage: StageInRun, cell: Cell, origin: str, number: float) -> Derivation:
    """A number that stands elsewhere too."""
    return in_steps(stage, cell, say("moved"), origin, [Step(origin, number)])


def in_steps(
    stage: StageInRun,
    cell: Cell,
    what: str,
    formula: str,
    steps: Sequence[Step],
    result: float | None = None,
) -> Derivation:
    """A number that comes to be step by step, without rows."""
    value = steps[-1].value if result is None else result
    return framed(stage, cell, what, formula, Reckoning(tuple(steps), value))


def framed(
    stage: StageInRun,
    cell: Cell,
    what: str,
    formula: str,
    found: Reckoning,
    *,
    word: str = "",
    columns: Axis | None = None,
    focus: int | None = None,
) -> Derivation:
    """A reckoning under its title, and whether it gives the model's own number.

    Args:
        stage: what the number is of.
        cell: where it stands.
        what: what is done.
        formula: the same in symbols.
        found: the reckoning.
        word: what such a number is called; by the name of the stage unless given.
        columns: the labels of the elements; counted unless given.
        focus: the element that the number belongs to.
    """
    rows, own_columns = stage.run.axes(stage.path)
    title = say(
        "number_at",
        word=word or stage.name,
        rows=rows.name,
        row=cell.row,
        columns=own_columns.name,
        column=cell.column,
    )
    n_elements = len(found.rows[0].values) if found.rows else 0
    number = number_at(stage, cell)
    is_same = number == found.value or (math.isnan(number) and math.isnan(found.value))
    difference = 0.0 if is_same else abs(number - found.value)
    tolerance = derivations.TOLERANCE if is_exact(stage.value) else derivations.ROUNDED
    return Derivation(
        title=f"{title}: {what}" if what else title,
        columns=columns.labels if columns else tuple(map(str, range(n_elements))),
        sequence=columns.sequence if columns else None,
        rows=found.rows,
        steps=found.steps,
        result=found.value,
        formula=formula,
        agrees=difference <= tolerance * max(1.0, abs(number)),
        difference=difference,
        focus=focus,
    )


def row_of(stage: StageInRun, cell: Cell) -> Numbers:
    """The numbers of a stage in the row of a cell of another."""
    return as_numbers(stage.value[cell.index(stage.value.dim())[:-1]])


def number_at(stage: StageInRun, cell: Cell) -> float:
    """The number of a stage in the place of a cell of another."""
    return float(stage.value[cell.index(stage.value.dim())])
