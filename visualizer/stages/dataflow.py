"""Which tensors a stage was computed from: the wiring of the model, read from the trace and its paths."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from model import Trace
from visualizer.runs.run import Run

Kind = Literal["inputs", "attention", "feed_forward", "layer", "model"]


@dataclass(frozen=True)
class Operand:
    """One input of a stage, as drawn before it.

    Attributes:
        source: a trace path, or the name of a parameter of the model.
        operator: the sign between it and the operand before, such as ``×``; empty for the first.
        is_parameter: whether ``source`` names a parameter instead of a stage.
        transposed: whether the computation uses its last two axes exchanged.
        rows: the first row of a parameter that is used, and the one after the last; None for all.
    """

    source: str
    operator: str = ""
    is_parameter: bool = False
    transposed: bool = False
    rows: tuple[int, int] | None = None


FUSED = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj")}
"""Stages of one matrix for several projections, which lie side by side in it."""

_PROJECTED_FROM = {
    **{"qkv": "query_input", "kv": "key_input"},
    **{"q_proj": "query_input", "k_proj": "key_input", "v_proj": "value_input"},
}


def kind_of(trace: Trace, path: str) -> Kind:
    """Which part of the model computed the stage at ``path``."""
    module, _, name = path.rpartition(".")
    if _in(trace, module, "scores"):
        return "attention"
    if _in(trace, module, "hidden"):
        return "feed_forward"
    if re.fullmatch(r"(residual|norm|dropped_output)\d", name):
        return "layer"
    return "inputs" if _in(trace, module, "embedded") else "model"


def operands(trace: Trace, path: str) -> tuple[Operand, ...]:
    """The inputs of the stage at ``path``, in the order of its formula; none for what enters from outside."""
    module, _, name = path.rpartition(".")
    found = {
        "attention": _attention_operands,
        "feed_forward": _feed_forward_operands,
        "layer": _layer_operands,
        "inputs": _input_operands,
        "model": _model_operands,
    }[kind_of(trace, path)](trace, module, name)
    return tuple(operand for operand in found if operand.is_parameter or operand.source in trace)


def operands_of(run: Run, path: str) -> tuple[Operand, ...]:
    """The inputs of a stage of a run, with the bias where the model adds one."""
    found = operands(run.trace, path)
    names = dict(run.model.named_parameters())
    biases = [
        Operand(operand.source.replace(".weight", ".bias"), "+", is_parameter=True, rows=operand.rows)
        for operand in found
        if operand.is_parameter and operand.transposed
    ]
    return (*found, *(bias for bias in biases if bias.source in names))


def fused_stage(trace: Trace, path: str) -> str:
    """The fused stage, such as ``qkv``, of which the projection at ``path`` is a part; empty where none is."""
    module, _, name = path.rpartition(".")
    return next((fused for fused, parts in FUSED.items() if name in parts and _in(trace, module, fused)), "")


def parameter(model: nn.Module, operand: Operand) -> Tensor:
    """The parameter that an operand names, or the rows of it that are used."""
    value = model.get_parameter(operand.source)
    return value if operand.rows is None else value[slice(*operand.rows)]


def bias_of(model: nn.Module, operand: Operand) -> Tensor | None:
    """The bias that is added after the product with a matrix; None where the layer has none."""
    bias = getattr(model.get_submodule(operand.source.removesuffix(".weight")), "bias", None)
    return bias if bias is None or operand.rows is None else bias[slice(*operand.rows)]


def sublayer_output(trace: Trace, path: str) -> str:
    """The output of the sub-layer that a residual sum, such as ``encoder.layers.0.residual1``, adds."""
    layer, _, name = path.rpartition(".")
    return _sublayer_output(trace, layer, int(name[-1]))


def is_pre_norm(trace: Trace, layer: str) -> bool:
    """Whether a layer, such as ``encoder.layers.0``, normalises what enters its sub-layers."""
    stages = list(trace)
    return stages.index(f"{layer}.norm1") < stages.index(f"{layer}.residual1")


def _attention_operands(trace: Trace, module: str, name: str) -> tuple[Operand, ...]:
    def here(stage: str, operator: str = "", *, transposed: bool = False) -> Operand:
        return Operand(_join(module, stage), operator, transposed=transposed)

    if name in ("query_input", "key_input", "value_input"):
        origin = _same_tensor_before(trace, _join(module, name))
        return (Operand(origin),) if origin else ()
    if name in _PROJECTED_FROM:
        fused = fused_stage(trace, _join(module, name))
        return (here(fused),) if fused else (here(_PROJECTED_FROM[name]), _projection(trace, module, name))
    if name == "output":
        weight = Operand(_join(module, "w_o.weight"), "×", True, transposed=True)
        projected = trace[_join(module, "output")].value is not trace[_join(module, "concat")].value
        return (here("concat"), weight) if projected else (here("concat"),)
    used = "dropped_weights" if _in(trace, module, "dropped_weights") else "weights"
    return {
        "q": (here("q_proj"),),
        "k": (here("k_proj"),),
        "v": (here("v_proj"),),
        "scores": (here("q"), here("k", "×", transposed=True)),
        "scaled_scores": (here("scores"),),
        "mask": (),
        "masked_scores": (here("scaled_scores"), here("mask", "where")),
        "weights": (here("masked_scores"),),
        "dropped_weights": (here("weights"),),
        "context": (here(used), here("v", "×")),
        "concat": (here("context"),),
    }[name]


def _projection(trace: Trace, module: str, name: str) -> Operand:
    """The matrix of ``q_proj``, ``k_proj`` or ``v_proj``, or of the stage that holds several of them."""
    is_fused = _in(trace, module, "qkv") or _in(trace, module, "kv")
    source = _join(module, "w_qkv.weight" if is_fused else f"w_{name[0]}.weight")
    matrix = Operand(source, "×", True, transposed=True)
    if _in(
        trace, module, "kv"
    ):  # the queries of cross-attention have the first third, its keys and values the rest
        third = trace[_join(module, "q_proj")].value.shape[-1]
        return replace(matrix, rows=(0, third) if name == "q_proj" else (third, 3 * third))
    return matrix


def _feed_forward_operands(trace: Trace, module: str, name: str) -> tuple[Operand, ...]:
    weight = "w_1.weight" if name == "hidden" else "w_2.weight"
    linear = Operand(_join(module, weight), "×", True, transposed=True)
    used = "dropped_activation" if _in(trace, module, "dropped_activation") else "activation"
    return {
        "input": (),
        "hidden": (Operand(_feed_forward_input(trace, module)), linear),
        "activation": (Operand(_join(module, "hidden")),),
        "dropped_activation": (Operand(_join(module, "activation")),),
        "output": (Operand(_join(module, used)), linear),
    }[name]


def _layer_operands(trace: Trace, layer: str, name: str) -> tuple[Operand, ...]:
    i = int(name[-1])
    if name.startswith("norm"):
        return (Operand(_before_norm(trace, layer, i)),)
    output, dropped = _sublayer_output(trace, layer, i), f"{layer}.dropped_output{i}"
    if name.startswith("dropped"):
        return (Operand(output),)
    return Operand(_residual_stream(trace, layer, i)), Operand(dropped if dropped in trace else output, "+")


def _input_operands(trace: Trace, module: str, name: str) -> tuple[Operand, ...]:
    return {
        "embedding": (Operand(_join(module, "tokens.weight"), is_parameter=True),),
        "scaled_embedding": (Operand(_join(module, "embedding")),),
        "positional_encoding": (),
        "embedded": (
            Operand(_join(module, "scaled_embedding")),
            Operand(_join(module, "positional_encoding"), "+"),
        ),
    }[name]


def _model_operands(trace: Trace, module: str, name: str) -> tuple[Operand, ...]:
    if name == "probabilities":
        return (Operand("logits"),)
    before = _stage_before(trace, _join(module, name))
    if before is None:
        return ()
    if name == "logits":
        return Operand(before), Operand("unembedding.weight", "×", True, transposed=True)
    return (Operand(before),)


def _layer_input(trace: Trace, layer: str) -> str:
    """The stage that enters a layer: the end of the layer before, or the embeddings."""
    stem, _, number = layer.rpartition(".")
    if not number.isdigit():
        return f"{layer}.self_attention.query_input"
    if number == "0":
        return f"{stem.removesuffix('.layers')}.inputs.embedded"
    before = [path for path in trace if path.rpartition(".")[0] == f"{stem}.{int(number) - 1}"]
    return before[-1]


def _residual_stream(trace: Trace, layer: str, i: int) -> str:
    """What the i-th sub-layer's output is added to."""
    if i == 1:
        return _layer_input(trace, layer)
    return f"{layer}.{'residual' if is_pre_norm(trace, layer) else 'norm'}{i - 1}"


def _before_norm(trace: Trace, layer: str, i: int) -> str:
    return _residual_stream(trace, layer, i) if is_pre_norm(trace, layer) else f"{layer}.residual{i}"


def _sublayer_output(trace: Trace, layer: str, i: int) -> str:
    order = [
        name for name in ("self_attention", "cross_attention", "feed_forward") if f"{layer}.{name}.output" in trace
    ]
    return f"{layer}.{order[i - 1]}.output"


def _feed_forward_input(trace: Trace, module: str) -> str:
    layer = module.rpartition(".")[0]
    last = 3 if f"{layer}.norm3" in trace else 2
    if f"{layer}.norm1" not in trace:
        return _join(module, "input")
    return f"{layer}.norm{last}" if is_pre_norm(trace, layer) else f"{layer}.norm{last - 1}"


def _same_tensor_before(trace: Trace, path: str) -> str | None:
    """The first earlier stage that is the very same tensor."""
    value = trace[path].value
    for earlier, stage in trace.items():
        if earlier == path:
            return None
        if stage.value is value:
            return earlier
    return None


def _stage_before(trace: Trace, path: str) -> str | None:
    """The stage computed just before, where one computation leads into the next."""
    paths = list(trace)
    i = paths.index(path)
    return paths[i - 1] if i else None


def _in(trace: Trace, module: str, name: str) -> bool:
    return _join(module, name) in trace


def _join(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name
