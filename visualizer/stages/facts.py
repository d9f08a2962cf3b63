"""The facts that may be told of every stage of a run, whichever part of the model it is of."""

from __future__ import annotations

from collections.abc import Iterable

from visualizer.runs.run import Run
from visualizer.runs.trained import checkpoint_of
from visualizer.settings.fields import TRAINED, WORKED_EXAMPLES
from visualizer.stages.entry import StageInRun
from visualizer.stages.explanations import Fact, Facts


def common_facts(stage: StageInRun) -> Facts:
    """Return the origin of the weights, whether dropout is on, and the width of the stage."""
    p = stage.dropout
    values = {"p": f"{p:g}", "d_model": str(stage.value.shape[-1])}
    return Facts(frozenset({"dropout" if p else "no_dropout", *_of_weights(stage.run)}), values)


def _of_weights(run: Run) -> Iterable[Fact]:
    """Yield the origin of the weights; a worked example's are given."""
    source = run.settings.weights
    if source == TRAINED:
        if checkpoint_of(run.settings).step:
            yield "trained"
            return
        source = "random"
    if source not in WORKED_EXAMPLES:
        yield from ("untrained", "hand_built" if source == "hand_built" else "random")
