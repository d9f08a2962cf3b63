"""The stages after the last layer ("Attention Is All You Need", section 3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from model import Trace
from model.learning.tasks import TASKS
from visualizer.runs.trained import checkpoint_of
from visualizer.settings.fields import TRAINED
from visualizer.stages.by_operation import linear_formula, softmax
from visualizer.stages.entry import StageEntry, StageInRun, beside
from visualizer.stages.layer import is_pre_norm
from visualizer.stages.texts import Fact, Facts


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


_ANSWERS = """
    untrained: The weights are not trained: this shows how the output is computed, not what is good language.
    trained and answers_in_place: The model was trained on “{task}” for {steps} steps: each row is its answer in
    that place.
    trained and expects_next: The model was trained on “{task}” for {steps} steps: each row is the token that it
    expects next."""

ENTRIES: tuple[StageEntry, ...] = (
    StageEntry(
        "norm",
        "Last layer norm",
        "residual",
        formula=r"x' = \operatorname{LayerNorm}(x)",
        when=_follows_post_norm,
        on_the_stream=True,
        block="norm",
        plain="""The last layer has just brought the cards to one scale, and one more [layer norm] does it
            again.""",
        exact="""The last layer has just normalised its sum, and one more [layer norm] follows, as in
            nn.Transformer. Until training gives either of the two other γ and β, it changes nothing but what ε and
            rounding do.""",
    ),
    StageEntry(
        "norm",
        "Last layer norm",
        "residual",
        formula=r"x' = \operatorname{LayerNorm}(x)",
        on_the_stream=True,
        block="norm",
        plain="""Until here the cards themselves were never brought to one scale, only copies of them. This
            last [layer norm] does it.""",
        exact="""With [pre-norm] the sums of the [residual stream] are never normalised themselves, so one
            more [layer norm] stands after the last layer.""",
    ),
    StageEntry(
        "logits",
        "Logits",
        "neutral",
        facts=_facts,
        formula=linear_formula("Z", "x", "W_U", "b_U"),
        on_the_stream=True,
        block="output",
        plain="""Every finished card is held against all {vocab_size} tokens of the [vocabulary]: the better
            one fits, the larger its number, its [logit](logits).""",
        exact="""The last vectors times one column per token of the [vocabulary]: a score, the
            [logit](logits), for each of the {vocab_size} tokens at every position.
            output_bias: Each token has a bias of its own, which is added.""",
    ),
    StageEntry(
        "probabilities",
        "Probabilities",
        "neutral",
        facts=_facts,
        formula=r"p_{tv} = \frac{e^{Z_{tv}}}{\sum_w e^{Z_{tw}}}",
        derive=partial(softmax, word="probability"),
        numbers="distribution",
        block="output",
        is_telling=True,
        plain="""Each row is shared out as one whole among the tokens of the [vocabulary]: how likely the
            model holds each of them."""
        + _ANSWERS,
        exact="""A [softmax] over the [vocabulary]. Each row sums to one.""" + _ANSWERS,
    ),
)
