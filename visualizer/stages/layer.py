"""The stages of a layer around its sub-layers ("Attention Is All You Need", section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable

from model import Trace
from model.texts import texts_of
from visualizer.components.derivation.element import Derivation, Step
from visualizer.stages.by_operation import dropout, dropout_check, in_steps, number_at, with_dropout
from visualizer.stages.checks import Check, equal
from visualizer.stages.derivations import Cell, plus
from visualizer.stages.entry import StageEntry, StageInRun
from visualizer.stages.explanations import Fact, Facts

say = texts_of(__name__)


def is_pre_norm(trace: Trace, layer: str) -> bool:
    """True if a layer, such as ``encoder.layers.0``, normalises what enters its sub-layers."""
    stages = list(trace)
    return stages.index(f"{layer}.norm1") < stages.index(f"{layer}.residual1")


def sublayer_output(stage: StageInRun) -> StageInRun:
    """The output of the sub-layer that a residual sum adds, or that dropout is about to thin out before it."""
    output = stage.inputs[-1]
    return output.inputs[-1] if "dropped_output" in output.path else output


def _facts(stage: StageInRun) -> Facts:
    return Facts(frozenset({"pre_norm" if is_pre_norm(stage.run.trace, stage.module) else "post_norm"}))


def _facts_of_sum(stage: StageInRun) -> Facts:
    """The same, and whose output is dropped or added."""
    added = sublayer_output(stage).path
    return _facts(stage) | Facts(frozenset(fact for name, fact in _SUBLAYERS.items() if f".{name}." in added))


_SUBLAYERS: dict[str, Fact] = {
    "self_attention": "after_self_attention",
    "cross_attention": "after_cross_attention",
    "feed_forward": "after_feed_forward",
}


def _residual_formula(stage: StageInRun) -> str:
    sublayer = sublayer_output(stage).path.split(".")[-2].title().replace("_", "")
    entering = r"\operatorname{norm}(x)" if is_pre_norm(stage.run.trace, stage.module) else "x"
    found = rf"\operatorname{{{sublayer}}}({entering})"
    is_dropped = stage.inputs[-1].entry.name == "dropped_output"
    return rf"x' = x + \operatorname{{dropout}}({found})" if is_dropped else f"x' = x + {found}"


def _residual_checks(stage: StageInRun) -> Iterable[Check]:
    x, y = stage.inputs
    name = y.path.removeprefix(f"{stage.module}.")
    yield equal(f"exactly x + {name}", stage.value, x.value + y.value)


def _residual(stage: StageInRun, cell: Cell) -> Derivation:
    found = stage.inputs[-1].entry.title.lower()
    x, y = (number_at(before, cell) for before in stage.inputs)
    steps = plus(Step("x", x), found, y)
    return in_steps(stage, cell, say("addition"), f"x + {found}", steps)


ENTRIES: tuple[StageEntry, ...] = (
    StageEntry(
        "dropped_output",
        "Output after dropout",
        "residual",
        facts=_facts_of_sum,
        formula=r"\tilde y = \operatorname{dropout}(y)",
        numpy=with_dropout("{0}"),
        checks=dropout_check("numbers"),
        derive=dropout,
        block="add",
    ),
    StageEntry(
        "residual",
        "Residual addition",
        "residual",
        facts=_facts_of_sum,
        formula=_residual_formula,
        checks=_residual_checks,
        derive=_residual,
        on_the_stream=True,
        block="add",
    ),
    StageEntry(
        "norm",
        "Layer norm",
        "residual",
        facts=_facts,
        formula=r"\operatorname{LayerNorm}(x) = \gamma \, \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta",
        on_the_stream=True,
        block="norm",
    ),
)
