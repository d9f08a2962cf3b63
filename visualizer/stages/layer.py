"""The stages of a layer around its sub-layers ("Attention Is All You Need", section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable

from model import Trace
from visualizer.components.derivation import Derivation, Step
from visualizer.stages.by_operation import dropout, dropout_check, in_steps, number_at, with_dropout
from visualizer.stages.checks import Check, equal
from visualizer.stages.derivations import Cell, plus
from visualizer.stages.entry import StageEntry, StageInRun
from visualizer.stages.texts import Fact, Facts


def is_pre_norm(trace: Trace, layer: str) -> bool:
    """Whether a layer, such as ``encoder.layers.0``, normalises what enters its sub-layers."""
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
    return in_steps(stage, cell, "residual addition", f"x + {found}", steps)


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
        plain="""after_self_attention: Of what a token brought home from the library,
            after_cross_attention: Of what a token found in the books of the source,
            after_feed_forward: Of the note that a token wrote itself,
            always: [dropout] strikes out each number with a chance of {p}, and enlarges the others to make up for
            it on average.""",
        exact="""[Dropout](dropout) sets each number of the sub-layer's output to zero with probability {p}
            and divides the others by 1 - {p}, before it is added to the [residual stream].""",
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
        plain="""after_self_attention: What a token brought home from the library is added to its card.
            after_cross_attention: What a token found in the books of the source is added to its card.
            after_feed_forward: The note that a token wrote itself is added to its card.
            dropout: [Dropout](dropout) has struck out some of it by chance.
            always: What stood there before stays in the sum: this is a [residual](residual stream) addition.""",
        exact="""no_dropout: What the sub-layer found is added to the [residual stream], x.
            dropout: What the sub-layer found is added to the [residual stream], x, after [dropout] with probability
            {p}.
            always: So information and gradients also have a way around every sub-layer.""",
    ),
    StageEntry(
        "norm",
        "Layer norm",
        "residual",
        facts=_facts,
        formula=r"\operatorname{LayerNorm}(x) = \gamma \, \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta",
        on_the_stream=True,
        block="norm",
        plain="""post_norm: [Layer norm](layer norm) writes every card anew on one scale, so that none speaks
            louder than the others.
            pre_norm: [Layer norm](layer norm) makes a copy of every card on one scale, for what comes next to read.
            The card itself stays as it is.""",
        exact="""[Layer norm](layer norm) shifts each token's vector to mean zero and scales it to variance
            one, then multiplies it by γ and adds β, which training learns.
            pre_norm: What comes next reads this; the [residual stream] itself is not normalised.
            post_norm: What comes next reads vectors of like size, whatever was added before.""",
    ),
)
