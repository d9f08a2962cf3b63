"""The stages after the last layer ("Attention Is All You Need", section 3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from model import Trace
from model.learning.tasks import TASKS
from model.texts import texts_of
from visualizer.runs.trained import checkpoint_of
from visualizer.settings.fields import TRAINED
from visualizer.stages.by_operation import linear_formula, softmax
from visualizer.stages.entry import StageEntry, StageInRun, beside
from visualizer.stages.explanations import Fact, Facts
from visualizer.stages.layer import is_pre_norm

say = texts_of(__name__)


def _facts(stage: StageInRun) -> Facts:
    settings = stage.run.settings
    values = {"vocab_size": f"{stage.value.shape[-1]:,}"}
    if settings.weights == TRAINED:
        checkpoint = checkpoint_of(settings)
        values |= {"task": TASKS[checkpoint.recipe.task].title, "steps": f"{checkpoint.step:,}"}
    return Facts(frozenset(_of_output(stage)), values)


def _of_output(stage: StageInRun) -> Iterable[Fact]:
    if "unembedding.bias" in dict(stage.run.model.named_parameters()):
        yield "output_bias"
    yield "answers_in_place" if stage.run.settings.architecture == "encoder" else "expects_next"


def _follows_post_norm(trace: Trace, path: str) -> bool:
    return not is_pre_norm(trace, beside(path, "layers.0"))


ENTRIES: tuple[StageEntry, ...] = (
    StageEntry(
        "norm",
        say("norm_title"),
        "residual",
        texts="norm_after_post_norm",
        formula=r"x' = \operatorname{LayerNorm}(x)",
        when=_follows_post_norm,
        on_the_stream=True,
        block="norm",
    ),
    StageEntry(
        "norm",
        say("norm_title"),
        "residual",
        formula=r"x' = \operatorname{LayerNorm}(x)",
        on_the_stream=True,
        block="norm",
    ),
    StageEntry(
        "logits",
        say("logits_title"),
        "neutral",
        facts=_facts,
        formula=linear_formula("Z", "x", "W_U", "b_U"),
        on_the_stream=True,
        block="output",
    ),
    StageEntry(
        "probabilities",
        say("probabilities_title"),
        "neutral",
        facts=_facts,
        formula=r"p_{tv} = \frac{e^{Z_{tv}}}{\sum_w e^{Z_{tw}}}",
        derive=partial(softmax, word="probability"),
        numbers="distribution",
        block="output",
        is_telling=True,
    ),
)
