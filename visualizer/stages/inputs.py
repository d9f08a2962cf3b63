"""The stages that lead from token ids into the first layer ("Attention Is All You Need", sections 3.4 and 3.5)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

from torch import Tensor, nn

from model.positional_encoding import LearnedPositions, NoPositions
from model.texts import texts_of
from visualizer.components.derivation.element import Derivation, Step
from visualizer.stages import derivations
from visualizer.stages.by_operation import from_inputs, in_steps, number_at, parameters, with_dropout
from visualizer.stages.checks import Check, dropped, equal, near, square_root
from visualizer.stages.derivations import Cell, plus
from visualizer.stages.entry import StageEntry, StageInRun
from visualizer.stages.explanations import Fact, Facts
from visualizer.stages.numpy_lines import NumpyLine

say = texts_of(__name__)

# What is true of the inputs.


def _facts(stage: StageInRun) -> Facts:
    run, d_model = stage.run, stage.value.shape[-1]
    has_layers = any(other.name == "residual1" for other in run.trace.values())
    n_tokens = run.model.get_parameter(f"{stage.module}.tokens.weight").shape[0]
    values = {"root_d_model": square_root(d_model), "vocab_size": f"{n_tokens:,}"}
    return Facts(frozenset({"in_layer" if has_layers else "alone", *_of_positions(stage)}), values)


def _of_positions(stage: StageInRun) -> Iterable[Fact]:
    run, kind = stage.run, stage.run.settings.positions
    yield "without_positions" if kind == "none" else "learned" if kind == "learned" else "sinusoidal"
    if kind != "none":
        yield "some_positions"
        name = "target" if stage.module.startswith("decoder.") and "target" in run.tokens else "source"
        if name in run.positions:
            yield "counted_from_first"


# Embeddings.


def _embedding_line(stage: StageInRun) -> NumpyLine:
    (table,) = stage.operands
    return NumpyLine("embedding = embedding_table[ids]", {"embedding_table": table.source}, ("ids",))


def _looked_up(stage: StageInRun, cell: Cell) -> Derivation:
    (table,), token_id = parameters(stage), stage.run.token_id(stage.path, cell.row)
    text = say("row_of_embedding", row=token_id, column=cell.column)
    return in_steps(stage, cell, say("looked_up"), text, [Step(text, float(table[token_id, cell.column]))])


def _scaled_checks(stage: StageInRun) -> Iterable[Check]:
    (before,), width = stage.inputs, stage.value.shape[-1]
    yield equal(say("multiplied", root=square_root(width)), stage.value, before.value * math.sqrt(width))


def _scaled(stage: StageInRun, cell: Cell) -> Derivation:
    number, width = number_at(stage.inputs[0], cell), stage.value.shape[-1]
    root = math.sqrt(width)
    steps = [Step(say("embedding"), number), Step(f"× √{width} ({root:.4g})", number * root)]
    return in_steps(stage, cell, say("scaled"), "e · √d_model", steps)


# Positions.

SINUSOIDS = (
    r"\begin{aligned} P_{t,2i} &= \sin (t / 10000^{2i/d}) \\ "
    r"P_{t,2i+1} &= \cos (t / 10000^{2i/d}) \end{aligned}"
)


def _positions(stage: StageInRun) -> nn.Module | None:
    """The module that gives positions; None for sinusoids by themselves."""
    found: nn.Module | None = getattr(stage.run.model.get_submodule(stage.module), "positions", None)
    return found


def _positions_formula(stage: StageInRun) -> str:
    if isinstance(_positions(stage), LearnedPositions):
        return r"P_t = W_P[t]"
    return r"P_t = 0" if isinstance(_positions(stage), NoPositions) else SINUSOIDS


def positions_line(stage: StageInRun) -> NumpyLine:
    """Positions in NumPy."""
    *_, n_tokens, width = stage.value.shape
    are_given = stage.value.dim() == 3
    from_outside = ("positions",) if are_given else ()
    first = [] if are_given else [f"positions = np.arange({n_tokens})"]
    positions = _positions(stage)
    if isinstance(positions, LearnedPositions):
        lines = [*first, "positional_encoding = position_table[positions]"]
        return NumpyLine("\n".join(lines), {"position_table": f"{stage.module}.positions.table"}, from_outside)
    if isinstance(positions, NoPositions):
        lines = [*first, f"positional_encoding = np.zeros((*positions.shape, {width}))"]
        return NumpyLine("\n".join(lines), {}, from_outside)
    cut = f"[..., :{width}]" if width % 2 else ""
    waves = [
        f"angle = positions[..., None] / 10000 ** (np.arange(0, {width}, 2) / {width})",
        "sines_and_cosines = np.stack([np.sin(angle), np.cos(angle)], axis=-1)",
        f"positional_encoding = sines_and_cosines.reshape(*positions.shape, -1){cut}",
    ]
    return NumpyLine("\n".join([*first, *waves]), {}, from_outside)


def positions_checks(stage: StageInRun) -> Iterable[Check]:
    """Check what must hold of sinusoids; of a learned table nothing must."""
    value, positions = stage.value, _positions(stage)
    if isinstance(positions, LearnedPositions):
        return
    if isinstance(positions, NoPositions):
        yield Check(say("all_zero"), not bool(value.any()))
        return
    if value.dim() == 3:
        yield Check(say("counted"), None)
    n_pairs = value.shape[-1] // 2
    pairs: Tensor = value[..., 0 : 2 * n_pairs : 2] ** 2 + value[..., 1 : 2 * n_pairs : 2] ** 2
    yield Check(say("pairs"), bool(near(pairs, pairs.new_ones(())).all()))


def position(stage: StageInRun, cell: Cell) -> Derivation:
    """A number of a position: of a wave or of a table."""
    place, before_it = stage.run.position(stage.path, cell.row, cell.batch), []
    if place != cell.row:
        text = say("position_of_row", row=cell.row)
        before_it = [Step(text, place)]
    positions = _positions(stage)
    if isinstance(positions, NoPositions):
        return in_steps(stage, cell, say("no_positions"), "p = 0", [Step(say("zero"), 0.0)])
    if isinstance(positions, LearnedPositions):
        text = say("row_of_positions", row=place, column=cell.column)
        return in_steps(stage, cell, say("looked_up"), text, [*before_it, Step(text, number_at(stage, cell))])
    width, even = stage.value.shape[-1], cell.column - cell.column % 2
    angle = place / 10000.0 ** (even / width)
    wave = "cos" if cell.column % 2 else "sin"
    steps = [
        *before_it,
        Step(say("angle", place=place, even=even, width=width), angle),
        Step(f"{wave}(angle)", getattr(math, wave)(angle)),
    ]
    return in_steps(stage, cell, say("wave"), f"{wave}(t / 10000^(2i/d_model))", steps)


# Their sum.


def _embedded_formula(stage: StageInRun) -> str:
    return r"x = \operatorname{dropout}(\hat E + P)" if stage.dropout else r"x = \hat E + P"


def _embedded_checks(stage: StageInRun) -> Iterable[Check]:
    embedding, positions = (before.value for before in stage.inputs)
    if stage.dropout == 0:
        yield equal(say("sum_exact"), stage.value, embedding + positions)
    else:
        yield dropped(say("sums"), stage.value, embedding + positions, stage.dropout)


def _embedded(stage: StageInRun, cell: Cell) -> Derivation:
    token, place = (number_at(before, cell) for before in stage.inputs)
    steps = [*plus(Step(say("scaled_embedding"), token), say("positional_encoding"), place)]
    if stage.dropout == 0:
        return in_steps(stage, cell, say("sum"), "e · √d_model + p", steps)
    is_zero = number_at(stage, cell) == 0.0
    steps.append(derivations.dropout(token + place, stage.dropout, is_zero=is_zero))
    return in_steps(stage, cell, say("sum"), "dropout(e · √d_model + p)", steps)


_stage = partial(StageEntry, facts=_facts, block="inputs")

ENTRIES: tuple[StageEntry, ...] = (
    _stage(
        "embedding",
        say("embedding_title"),
        "residual",
        formula=r"E = W_E[\text{id}]",
        numpy=_embedding_line,
        derive=_looked_up,
    ),
    _stage(
        "scaled_embedding",
        say("scaled_embedding_title"),
        "residual",
        formula=r"\hat E = \sqrt{d_{model}} \, E",
        numpy=from_inputs("np.sqrt({0}.shape[-1]) * {0}"),
        checks=_scaled_checks,
        derive=_scaled,
    ),
    _stage(
        "positional_encoding",
        say("positional_encoding_title"),
        "residual",
        formula=_positions_formula,
        numpy=positions_line,
        checks=positions_checks,
        derive=position,
        charts=("positions",),
        left_out=("table",),
    ),
    _stage(
        "embedded",
        say("embedded_title"),
        "residual",
        formula=_embedded_formula,
        numpy=with_dropout("{0} + {1}", "({0} + {1})"),
        checks=_embedded_checks,
        derive=_embedded,
        on_the_stream=True,
        is_telling=True,
    ),
)
