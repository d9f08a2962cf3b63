"""The line of NumPy that computes a stage, to read beside the line of PyTorch that did.

Nothing here is executed by the app; the tests execute every line on the recorded inputs of its stage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from model.positional_encoding import LearnedPositions, NoPositions
from visualizer.runs.run import Run
from visualizer.stages.checks import dropout_in
from visualizer.stages.explanations import FUSED, fused_stage, kind_of
from visualizer.stages.operands import operands_of


@dataclass(frozen=True)
class NumpyLine:
    """How NumPy computes one stage.

    Attributes:
        code: one or a few lines; the last assigns the stage's name.
        reads: the variables in it that are stages or parameters, with their paths.
        given: the variables in it that come from outside, such as ``ids`` or ``mask``.
    """

    code: str
    reads: Mapping[str, str] = field(default_factory=dict)
    given: tuple[str, ...] = ()


def numpy_line(run: Run, path: str) -> NumpyLine | None:
    """The line for the stage at ``path``; None where nobody has written one."""
    write = NUMPY_LINES.get((kind_of(run.trace, path), run.trace[path].name.rstrip("0123456789")))
    return write(run, path) if write else None


def notes(line: NumpyLine) -> str:
    """What has to be said of the variables of a line; empty where nothing has."""
    matrices = [name for name in line.reads if re.search(rf"\b{name}(\[.*?\])?\.T", line.code)]
    found = [f"{' and '.join(matrices)} as nn.Linear stores it, (d_out, d_in)"] if matrices else []
    found += [_GIVEN[name] for name in line.given if name in _GIVEN]
    return "; ".join(found)


_GIVEN = {
    "keep": "keep is True where dropout's generator kept a number",
    "ids": "ids are the numbers of the tokens",
    "mask": "mask is True where a query may attend",
    "positions": "positions count from the first token that is no padding",
}
"""What variables from outside are."""


def _linear(run: Run, path: str) -> NumpyLine:
    """A product with a matrix as ``nn.Linear`` stores it; without one, a copy."""
    entering, *parameters = operands_of(run, path)
    names = {_variable(operand.source, path): operand.source for operand in (entering, *parameters)}
    x, *rest = names
    used = [
        f"{name}[{':'.join(map(str, operand.rows))}]" if operand.rows else name
        for name, operand in zip(rest, parameters, strict=True)
    ]
    product = "".join([f" @ {used[0]}.T", *(f" + {bias}" for bias in used[1:])]) if used else ""
    return NumpyLine(f"{run.trace[path].name} = {x}{product}", names)


def _projection(run: Run, path: str) -> NumpyLine:
    """A projection of its own, or a part of one that serves several."""
    fused = fused_stage(run.trace, path)
    if not fused:
        return _linear(run, path)
    parts = FUSED[fused]
    part = parts.index(run.trace[path].name)
    return _from_operands(run, path, f"np.split({{0}}, {len(parts)}, axis=-1)[{part}]")


def _embedding(run: Run, path: str) -> NumpyLine:
    (table,) = operands_of(run, path)
    return NumpyLine("embedding = embedding_table[ids]", {"embedding_table": table.source}, ("ids",))


def _scaled_embedding(run: Run, path: str) -> NumpyLine:
    return _from_operands(run, path, "np.sqrt({0}.shape[-1]) * {0}")


def _positional_encoding(run: Run, path: str) -> NumpyLine:
    stage = run.trace[path]
    *_, n_tokens, width = stage.value.shape
    are_given = stage.value.dim() == 3
    given = ("positions",) if are_given else ()
    first = [] if are_given else [f"positions = np.arange({n_tokens})"]
    module = run.trace[path].module_path
    positions = getattr(run.model.get_submodule(module), "positions", None)
    if isinstance(positions, LearnedPositions):
        lines = [*first, "positional_encoding = position_table[positions]"]
        return NumpyLine("\n".join(lines), {"position_table": f"{module}.positions.table"}, given)
    if isinstance(positions, NoPositions):
        return NumpyLine(
            "\n".join([*first, f"positional_encoding = np.zeros((*positions.shape, {width}))"]), {}, given
        )
    cut = f"[..., :{width}]" if width % 2 else ""
    waves = [
        f"angle = positions[..., None] / 10000 ** (np.arange(0, {width}, 2) / {width})",
        "sines_and_cosines = np.stack([np.sin(angle), np.cos(angle)], axis=-1)",
        f"positional_encoding = sines_and_cosines.reshape(*positions.shape, -1){cut}",
    ]
    return NumpyLine("\n".join([*first, *waves]), {}, given)


def _embedded(run: Run, path: str) -> NumpyLine:
    return _with_dropout(run, path, "{0} + {1}", "({0} + {1})")


def _input(run: Run, path: str) -> NumpyLine:
    """What enters a module: an earlier stage under another name, or something from outside."""
    name = run.trace[path].name
    if operands_of(run, path):
        return _from_operands(run, path, "{0}")
    outside = name.removesuffix("_input") if name.endswith("_input") else name
    outside = "x" if outside == "input" else outside
    return NumpyLine(f"{name} = {outside}", {}, (outside,))


def _heads(run: Run, path: str) -> NumpyLine:
    """The columns of a projection cut into heads; queries, keys and values that are given stay as they are."""
    if not operands_of(run, path):
        return _input(run, path)
    _, n_heads, _, head_dim = run.trace[path].value.shape
    return _from_operands(run, path, f"{{0}}.reshape(*{{0}}.shape[:-1], {n_heads}, {head_dim}).swapaxes(1, 2)")


def _scores(run: Run, path: str) -> NumpyLine:
    return _from_operands(run, path, "{0} @ {1}.swapaxes(-1, -2)")


def _scaled_scores(run: Run, path: str) -> NumpyLine:
    module = run.trace[path].module_path
    if not run.scales_scores(module):
        return _from_operands(run, path, "{0} / 1.0")
    return NumpyLine("scaled_scores = scores / np.sqrt(q.shape[-1])", _here(module, "scores", "q"))


def _mask(run: Run, path: str) -> NumpyLine:
    module = run.trace[path].module_path
    return NumpyLine("mask = np.broadcast_to(mask, scores.shape)", _here(module, "scores"), ("mask",))


def _masked_scores(run: Run, path: str) -> NumpyLine:
    module = run.trace[path].module_path
    if f"{module}.mask" not in run.trace:
        return _from_operands(run, path, "{0}")
    return NumpyLine(
        "masked_scores = np.where(mask, scaled_scores, -np.inf)", _here(module, "mask", "scaled_scores")
    )


def _weights(run: Run, path: str) -> NumpyLine:
    module = run.trace[path].module_path
    if f"{module}.mask" not in run.trace:
        return _softmax(run, path)
    lines = (
        "has_key = mask.any(-1, keepdims=True)",
        "largest = np.where(has_key, masked_scores.max(-1, keepdims=True), 0.0)",
        "exponentials = np.exp(masked_scores - largest)",
        "weights = exponentials / np.where(has_key, exponentials.sum(-1, keepdims=True), 1.0)",
    )
    return NumpyLine("\n".join(lines), _here(module, "mask", "masked_scores"))


def _softmax(run: Run, path: str) -> NumpyLine:
    (before,) = operands_of(run, path)
    x = _variable(before.source, path)
    lines = (
        f"exponentials = np.exp({x} - {x}.max(-1, keepdims=True))",
        f"{run.trace[path].name} = exponentials / exponentials.sum(-1, keepdims=True)",
    )
    return NumpyLine("\n".join(lines), {x: before.source})


def _dropped(run: Run, path: str) -> NumpyLine:
    return _with_dropout(run, path, "{0}", "{0}")


def _context(run: Run, path: str) -> NumpyLine:
    return _from_operands(run, path, "{0} @ {1}")


def _concat(run: Run, path: str) -> NumpyLine:
    return _from_operands(run, path, "np.concatenate(np.moveaxis({0}, 1, 0), axis=-1)")


def _activation(run: Run, path: str) -> NumpyLine:
    if run.activation(path) == "relu":
        return _from_operands(run, path, "np.maximum(0, {0})")
    return _from_operands(run, path, "{0} * (1 + np.vectorize(math.erf)({0} / math.sqrt(2))) / 2")


def _residual(run: Run, path: str) -> NumpyLine:
    return _from_operands(run, path, "{0} + {1}")


def _norm(run: Run, path: str) -> NumpyLine:
    (before,) = operands_of(run, path)
    x = _variable(before.source, path)
    lines = (
        f"centred = {x} - {x}.mean(-1, keepdims=True)",
        f"normal = centred / np.sqrt({x}.var(-1, keepdims=True) + {run.layer_norm_eps(path):g})",
        f"{run.trace[path].name} = gamma * normal + beta",
    )
    return NumpyLine("\n".join(lines), {x: before.source, "gamma": f"{path}.weight", "beta": f"{path}.bias"})


def _from_operands(run: Run, path: str, expression: str) -> NumpyLine:
    """A line whose ``{0}``, ``{1}`` are the stages that the stage was computed from."""
    names = {_variable(operand.source, path): operand.source for operand in operands_of(run, path)}
    return NumpyLine(f"{run.trace[path].name} = {expression.format(*names)}", names)


def _with_dropout(run: Run, path: str, without: str, with_it: str) -> NumpyLine:
    """The same, where dropout may act on the last number of the expression."""
    p = dropout_in(run.model, run.trace[path].module_path)
    if p == 0:
        return _from_operands(run, path, without)
    line = _from_operands(run, path, f"{with_it} * keep / (1 - {p:g})")
    return NumpyLine(line.code, line.reads, ("keep",))


def _here(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}.{name}" for name in names}


def _variable(source: str, path: str) -> str:
    """What a line calls a stage or a parameter: ``w_q``, ``b_q``, ``norm1``, ``self_attention_output``."""
    *owner, name = source.split(".")
    if name == "weight":
        return owner[-1]
    if name == "bias":
        return owner[-1].replace("w_", "b_") if owner[-1].startswith("w_") else f"{owner[-1]}_bias"
    is_of_another = ".".join(owner) != path.rpartition(".")[0]
    return f"{owner[-1]}_output" if name == "output" and is_of_another else name


NUMPY_LINES: Mapping[tuple[str, str], Callable[[Run, str], NumpyLine]] = {
    ("inputs", "embedding"): _embedding,
    ("inputs", "scaled_embedding"): _scaled_embedding,
    ("inputs", "positional_encoding"): _positional_encoding,
    ("inputs", "embedded"): _embedded,
    ("attention", "query_input"): _input,
    ("attention", "key_input"): _input,
    ("attention", "value_input"): _input,
    ("attention", "qkv"): _linear,
    ("attention", "kv"): _linear,
    ("attention", "q_proj"): _projection,
    ("attention", "k_proj"): _projection,
    ("attention", "v_proj"): _projection,
    ("attention", "q"): _heads,
    ("attention", "k"): _heads,
    ("attention", "v"): _heads,
    ("attention", "scores"): _scores,
    ("attention", "scaled_scores"): _scaled_scores,
    ("attention", "mask"): _mask,
    ("attention", "masked_scores"): _masked_scores,
    ("attention", "weights"): _weights,
    ("attention", "dropped_weights"): _dropped,
    ("attention", "context"): _context,
    ("attention", "concat"): _concat,
    ("attention", "output"): _linear,
    ("feed_forward", "input"): _input,
    ("feed_forward", "hidden"): _linear,
    ("feed_forward", "activation"): _activation,
    ("feed_forward", "dropped_activation"): _dropped,
    ("feed_forward", "output"): _linear,
    ("layer", "dropped_output"): _dropped,
    ("layer", "residual"): _residual,
    ("layer", "norm"): _norm,
    ("model", "norm"): _norm,
    ("model", "logits"): _linear,
    ("model", "probabilities"): _softmax,
    ("model", "positional_encoding"): _positional_encoding,
}
"""What writes the line of each kind of stage, by the part of the model and the stage's name."""
