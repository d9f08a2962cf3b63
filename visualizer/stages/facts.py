"""What is true of a stage in this very run, and so what is told about it."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from model.learning.tasks import TASKS
from visualizer.glossary import mask_piece
from visualizer.runs.run import Run
from visualizer.runs.trained import checkpoint_of
from visualizer.settings.fields import TRAINED, WORKED_EXAMPLES
from visualizer.settings.settings import Depth
from visualizer.stages.checks import dropout_in, square_root
from visualizer.stages.explanations import explain, is_pre_norm, kind_of
from visualizer.stages.expressions import words_on
from visualizer.stages.operands import operands_of
from visualizer.stages.texts import Fact, Facts


def told(run: Run, path: str, depth: Depth) -> str:
    """The text on the stage at ``path``, with the marks of the words that open the glossary."""
    explanation = explain(run.trace, path)
    return explanation.told(depth, facts_of(run, path)) if explanation.exact else words_on(run, path)


def facts_of(run: Run, path: str) -> Facts:
    """What is true of the stage at ``path``."""
    stage, kind = run.trace[path], kind_of(run.trace, path)
    module, d_model = stage.module_path, stage.value.shape[-1]
    p = dropout_in(run.model, module)
    facts: set[Fact] = {"dropout" if p else "no_dropout", *_of_weights(run)}
    values = {"p": f"{p:g}", "d_model": str(d_model)}
    if kind == "attention":
        facts |= {*_of_attention(run, module), *_of_mask(run, module)}
        values |= _attention_values(run, module)
    if kind == "inputs":
        has_layers = any(stage.name == "residual1" for stage in run.trace.values())
        facts |= {"in_layer" if has_layers else "alone", *_of_positions(run, module)}
        values["root_d_model"] = square_root(d_model)
        values["vocab_size"] = _counted(run.model.get_parameter(f"{module}.tokens.weight").shape[0])
    if kind == "feed_forward":
        values["d_ff"] = str(run.trace[f"{module}.hidden"].value.shape[-1])
        facts.add("relu" if run.activation(path) == "relu" else "gelu")
    if kind == "layer":
        facts |= {"pre_norm" if is_pre_norm(run.trace, module) else "post_norm", *_of_sublayer(run, path)}
    if path in ("logits", "probabilities"):
        facts |= set(_of_output(run))
        values |= {"vocab_size": _counted(d_model), **_learned(run)}
    return Facts(frozenset(facts), values)


def _of_weights(run: Run) -> Iterable[Fact]:
    """Where the weights come from; a worked example's are given."""
    source = run.settings.weights
    if source == TRAINED:
        if checkpoint_of(run.settings).step:
            yield "trained"
            return
        source = "random"
    if source not in WORKED_EXAMPLES:
        yield from ("untrained", "hand_built" if source == "hand_built" else "random")


def _of_attention(run: Run, module: str) -> Iterable[Fact]:
    trace = run.trace
    yield "several_heads" if trace[f"{module}.scores"].value.shape[1] > 1 else "one_head"
    yield "scaled" if run.scales_scores(module) else "unscaled"
    yield "cross" if run.is_cross_attention(module) else "self"
    if module.startswith("decoder.") and any(path.startswith("encoder.") for path in trace):
        yield "memory"
    output, concat = (trace.get(f"{module}.{name}") for name in ("output", "concat"))
    if output is not None and concat is not None:
        yield "unprojected" if output.value is concat.value else "projected"
    yield "in_layer" if f"{module.rpartition('.')[0]}.residual1" in trace else "alone"


def _of_mask(run: Run, module: str) -> Iterable[Fact]:
    """How an attention is masked. With a mask bug it is not as it should be."""
    stage = run.trace.get(f"{module}.mask")
    if stage is None:
        yield "unmasked"
        return
    mask: Tensor = stage.value[min(run.item, len(stage.value) - 1)]
    names = run.mask_of(module).names
    yield from (fact for fact in _MASKS if fact in names)
    if len(names) > 1:
        yield "several_masks"
    if bool(mask.all()):
        yield "blocks_nothing"
        return
    is_broken = run.trace[f"{module}.weights"].edited
    yield _BROKEN.get(run.settings.fault, "masked") if is_broken else "masked"
    if not bool(mask.any(-1).all()):
        yield "keyless"


_MASKS: tuple[Fact, ...] = ("causal", "padding", "sliding_window", "prefix", "strided", "custom")
_BROKEN: dict[str, Fact] = {"before_softmax": "scores_zeroed", "after_softmax": "masked_late"}


def _attention_values(run: Run, module: str) -> dict[str, str]:
    trace = run.trace
    n_heads, d_k = trace[f"{module}.q"].value.shape[1], trace[f"{module}.q"].value.shape[-1]
    names = [f"[{words}]({entry})" for words, entry in map(mask_piece, run.mask_of(module).names)]
    output = trace.get(f"{module}.output")
    return {
        "n_heads": str(n_heads),
        "d_k": str(d_k),
        "d_v": str(trace[f"{module}.v"].value.shape[-1]),
        "root_d_k": square_root(d_k),
        "masks": " and ".join(names),
        "d_out": "" if output is None else str(output.value.shape[-1]),
    }


def _of_positions(run: Run, module: str) -> Iterable[Fact]:
    kind = run.settings.positions
    yield "without_positions" if kind == "none" else "learned" if kind == "learned" else "sinusoidal"
    if kind != "none":
        yield "some_positions"
        name = "target" if module.startswith("decoder.") and "target" in run.tokens else "source"
        if name in run.positions:
            yield "counted_from_first"


def _of_sublayer(run: Run, path: str) -> Iterable[Fact]:
    """Whose output is dropped or added, for a residual addition and what comes before it."""
    if run.trace[path].name.startswith(("residual", "dropped_output")):
        added = sublayer_output(run, path)
        yield next(fact for name, fact in _SUBLAYERS.items() if f".{name}." in added)


def sublayer_output(run: Run, path: str) -> str:
    """The output of the sub-layer that a residual sum adds, or that dropout is about to thin out before it."""
    output = operands_of(run, path)[-1].source
    return operands_of(run, output)[-1].source if "dropped_output" in output else output


_SUBLAYERS: dict[str, Fact] = {
    "self_attention": "after_self_attention",
    "cross_attention": "after_cross_attention",
    "feed_forward": "after_feed_forward",
}


def _of_output(run: Run) -> Iterable[Fact]:
    if "unembedding.bias" in dict(run.model.named_parameters()):
        yield "output_bias"
    yield "answers_in_place" if run.settings.architecture == "encoder" else "expects_next"


def _learned(run: Run) -> dict[str, str]:
    if run.settings.weights != TRAINED:
        return {}
    checkpoint = checkpoint_of(run.settings)
    return {"task": TASKS[checkpoint.recipe.task].title, "steps": f"{checkpoint.step:,}"}


def _counted(number: int) -> str:
    return f"{number:,}"
