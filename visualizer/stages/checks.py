"""What must hold of a stage, checked on the tensors of this very run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from model import Dropout, FeedForward, Stage, Trace, record
from model.analysis.references import sdpa_difference
from model.positional_encoding import LearnedPositions, NoPositions
from visualizer.runs.run import Run
from visualizer.stages.explanations import FUSED, explain, fused_stage
from visualizer.stages.expressions import is_its_expression
from visualizer.stages.operands import operands_of, used

TOLERANCE = 1e-5
"""Largest rounding error, in float32, of what holds exactly on paper; relative to the size of what is computed."""

_TINY = 1e-30
"""Below this float32 runs out of exponents, and errors are no longer relative."""

PUBLISHED_TOLERANCE = 1e-9
"""Largest difference between a published number and its stage, both in float64."""

MOST_ROWS = 64
"""As many rows, spread over all of them, are computed again in float64: more would take longer than the run."""


@dataclass(frozen=True)
class Check:
    """One statement about a stage; ``holds`` is None for a remark that nothing hinges on."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Summary:
    """Smallest, largest and mean value over the finite cells; NaN where none is finite."""

    least: float
    greatest: float
    mean: float


def summarize(value: Tensor) -> Summary:
    """Summarize a tensor of any shape."""
    numbers = value if value.is_floating_point() else value.float()
    finite = numbers.abs() < math.inf
    count = int(finite.count_nonzero())
    if count == 0:
        return Summary(math.nan, math.nan, math.nan)
    return Summary(
        least=torch.where(finite, numbers, math.inf).min().item(),
        greatest=torch.where(finite, numbers, -math.inf).max().item(),
        mean=torch.where(finite, numbers, 0.0).sum(dtype=torch.float64).item() / count,
    )


def checks(run: Run, path: str) -> tuple[Check, ...]:
    """Everything that must hold of the stage at ``path``, and that it is what was published for it."""
    stage, published = run.trace[path], run.published.get(path)
    module = stage.module_path
    is_known = bool(explain(run.trace, path).exact)
    find = _CHECKS.get(stage.name.rstrip("0123456789")) if is_known else _computed_again
    found = [] if published is None else [equals_published(stage.value, published)]
    found += find(run, path) if find else ()
    if is_known and stage.name in _FROM_SCORES_TO_OUTPUT and f"{module}.weights" in run.trace:
        found.append(attention_agreement(run.trace, module))
    if stage.edited:
        found.append(Check("changed on purpose by the mask bug that is chosen", None))
    return (*found, _numbers_are_numbers(stage))


def _computed_again(run: Run, path: str) -> tuple[Check, ...]:
    """Whether the recorded operations give a stage of which nothing else is known."""
    return (Check(*is_its_expression(run, path)),)


def equals_published(value: Tensor, published: Tensor) -> Check:
    """Whether a stage is what was published, number for number."""
    difference = published_difference(value, published)
    count = published.numel()
    which = "the published number" if count == 1 else f"the {count} published numbers"
    return Check(
        f"equals {which} to {PUBLISHED_TOLERANCE:.0e}".replace("e-0", "e-")
        + f", max |difference| = {short(difference)}",
        difference <= PUBLISHED_TOLERANCE,
    )


def published_difference(value: Tensor, published: Tensor) -> float:
    """The largest difference between a stage and what was published; infinities must be the same ones."""
    difference = (value - published).abs()
    return difference.masked_fill(value == published, 0.0).nan_to_num(nan=math.inf).max().item()


def attention_agreement(trace: Trace, module: str) -> Check:
    """Whether PyTorch's own attention gives what the attention at ``module`` gave in this very run."""
    difference = sdpa_difference(trace, module)
    q, k, v = (trace[f"{module}.{name}"].value for name in ("q", "k", "v"))
    largest_score = q.norm(dim=-1).max() * k.norm(dim=-1).max()  # its rounding error shifts the weights by as much
    size = (1 + v.abs().max().item()) * (1 + largest_score.item() / 20)
    compared = " with the weights before dropout" if f"{module}.dropped_weights" in trace else ""
    return Check(
        f"matches PyTorch's F.scaled_dot_product_attention{compared}, max |difference| = {short(difference)}",
        difference <= TOLERANCE * size,
    )


def dropout_in(model: nn.Module, module: str) -> float:
    """The probability with which a module drops numbers; 0 where its dropout is off."""
    dropout = getattr(model.get_submodule(module), "dropout", None)
    return dropout.p if isinstance(dropout, Dropout) and dropout.active else 0.0


_FROM_SCORES_TO_OUTPUT = (
    *("scores", "scaled_scores", "mask", "masked_scores", "weights", "dropped_weights"),
    *("context", "concat", "output"),
)


# Computed again in float64.


def _linear(run: Run, path: str) -> tuple[Check, ...]:
    """The product with a matrix, or, in an attention without an output projection, the copy of ``concat``."""
    value, (entering, *parameters) = run.trace[path].value, operands_of(run, path)
    x = run.trace[entering.source].value
    if not parameters:
        return (Check(f"no projection: equal to {run.trace[entering.source].name}", torch.equal(value, x)),)
    weight, *biases = (used(run.model, operand) for operand in parameters)
    return (_product("x W + b" if biases else "x W", value, x, weight.T, *biases),)


def _projection(run: Run, path: str) -> tuple[Check, ...]:
    """A projection of its own, or a part of one that serves several."""
    fused = fused_stage(run.trace, path)
    if not fused:
        return _linear(run, path)
    name, whole = run.trace[path].name, run.trace[f"{run.trace[path].module_path}.{fused}"].value
    parts = FUSED[fused]
    part = whole.chunk(len(parts), -1)[parts.index(name)]
    return (
        Check(
            f"part {parts.index(name) + 1} of the {len(parts)} that lie side by side in {fused}",
            torch.equal(run.trace[path].value, part),
        ),
    )


def _position_wise(run: Run, path: str) -> tuple[Check, ...]:
    """Whether one token alone, sent through the feed-forward network by itself, gives the same row of a stage."""
    stage, feed_forward = run.trace[path], run.model.get_submodule(run.trace[path].module_path)
    if not isinstance(feed_forward, FeedForward) or feed_forward.dropout.active:
        return ()  # dropout draws anew for each pass
    hidden = path.replace(stage.name, "hidden")
    x = run.trace[operands_of(run, hidden)[0].source].value
    rows, where = _some_rows(stage.value)
    with torch.inference_mode():
        alone = torch.cat([_alone(feed_forward, x[..., row : row + 1, :], stage.name) for row in rows], dim=-2)
    difference = (alone - stage.value[..., rows, :]).abs()
    text = f"position-wise: each token sent through alone gives the same row{where}"
    size = 1 + alone.abs().max()
    return (
        Check(
            f"{text}, max |difference| = {short(difference.max())}", bool((difference <= TOLERANCE * size).all())
        ),
    )


def _alone(feed_forward: FeedForward, x: Tensor, name: str) -> Tensor:
    """A stage of the network for one token."""
    with record(feed_forward) as trace:
        feed_forward(x)
    return trace[name].value


def _feed_forward(run: Run, path: str) -> tuple[Check, ...]:
    """What holds of a linear layer or an activation, and for the network that it is of."""
    found = _activation if run.trace[path].name == "activation" else _linear
    return (*found(run, path), *_position_wise(run, path))


def _scores(run: Run, path: str) -> tuple[Check, ...]:
    q, k = (run.trace[operand.source].value for operand in operands_of(run, path))
    return (_product("Q Kᵀ", run.trace[path].value, q, k.mT),)


def _context(run: Run, path: str) -> tuple[Check, ...]:
    value = run.trace[path].value
    weights, v = (run.trace[operand.source].value for operand in operands_of(run, path))
    found = [_product("weights × V", value, weights, v)]
    module = run.trace[path].module_path
    if f"{module}.dropped_weights" not in run.trace:
        margin = TOLERANCE * (1 + v.abs().max())
        between = (value >= v.amin(-2, keepdim=True) - margin) & (value <= v.amax(-2, keepdim=True) + margin)
        inside = bool(between[~_rows_without_key(run.trace, module)].all())
        found.append(Check("every number lies between the smallest and the largest value of its column", inside))
    return tuple(found)


def _product(what: str, value: Tensor, x: Tensor, y: Tensor, bias: Tensor | None = None) -> Check:
    """Whether ``value`` is ``x @ y + bias``, within what rounding does to terms of their size."""
    rows, where = _some_rows(value)
    x, y = x[..., rows, :].double(), y.double()
    expected, size = x @ y, x.norm(dim=-1, keepdim=True) * y.norm(dim=-2, keepdim=True)
    if bias is not None:
        expected, size = expected + bias, size + bias.abs()
    return _again(what, where, value[..., rows, :], expected, size)


def _weights(run: Run, path: str) -> tuple[Check, ...]:
    module, weights = run.trace[path].module_path, run.trace[path].value
    keyless = _rows_without_key(run.trace, module)
    error = (weights.sum(-1) - (~keyless).to(weights.dtype)).abs().max().item()
    which = "every row with a key" if keyless.any() else "every row"
    found = [Check(f"{which} sums to one (largest error {short(error)})", error < TOLERANCE)]
    if keyless.any():
        zero = bool((weights[keyless] == 0).all())
        found.append(Check(f"{_queries(keyless)} with every key blocked: zero everywhere", zero))
    if f"{module}.mask" in run.trace:
        leaked = weights.masked_fill(run.trace[f"{module}.mask"].value, 0.0).count_nonzero()
        found.append(Check("every blocked cell is exactly zero", int(leaked) == 0))
    rows, where = _some_rows(weights)
    expected = run.trace[f"{module}.masked_scores"].value[..., rows, :].double().softmax(-1)
    expected = expected.masked_fill(keyless[..., rows, None], 0.0)
    found.append(_again("softmax of the masked scores", where, weights[..., rows, :], expected))
    return tuple(found)


def _probabilities(run: Run, path: str) -> tuple[Check, ...]:
    value = run.trace[path].value
    error = (value.sum(-1) - 1).abs().max().item()
    rows, where = _some_rows(value)
    expected = run.trace["logits"].value[..., rows, :].double().softmax(-1)
    return (
        Check(f"every row sums to one (largest error {short(error)})", error < TOLERANCE),
        _again("softmax of the logits", where, value[..., rows, :], expected),
    )


def _activation(run: Run, path: str) -> tuple[Check, ...]:
    value, (before,) = run.trace[path].value, operands_of(run, path)
    feed_forward = run.model.get_submodule(run.trace[path].module_path)
    is_relu = isinstance(feed_forward, FeedForward) and feed_forward.activation == "relu"
    rows, where = _some_rows(value)
    hidden = run.trace[before.source].value[..., rows, :].double()
    inactive = (value <= 0).double().mean().item()
    return (
        _again("ReLU", where, value[..., rows, :], F.relu(hidden))
        if is_relu
        else _again("GELU", where, value[..., rows, :], F.gelu(hidden), 1 + hidden.abs()),
        Check(f"{inactive:.0%} of the hidden units are not positive after it", None),
    )


def _norm(run: Run, path: str) -> tuple[Check, ...]:
    value, (before,), norm = run.trace[path].value, operands_of(run, path), run.model.get_submodule(path)
    if not isinstance(norm, nn.LayerNorm):
        return ()
    x, gamma, beta = run.trace[before.source].value.double(), norm.weight.double(), norm.bias.double()
    variance = x.var(-1, correction=0, keepdim=True)
    reach = x.abs().amax(-1, keepdim=True) / (variance + norm.eps).sqrt()
    expected = F.layer_norm(x, norm.normalized_shape, gamma, beta, norm.eps)
    found = [_again("LayerNorm(x)", "", value, expected, 1 + gamma.abs() * reach + beta.abs())]
    if gamma.all():
        found += _mean_and_variance((value.double() - beta) / gamma, variance / (variance + norm.eps), reach)
    return tuple(found)


def _mean_and_variance(normal: Tensor, expected: Tensor, reach: Tensor) -> tuple[Check, ...]:
    mean, variance = normal.mean(-1, keepdim=True).abs(), normal.var(-1, correction=0, keepdim=True)
    errors = torch.maximum(mean, (variance - expected).abs())
    span = f"{variance.min():.4f} to {variance.max():.4f}"
    text = f"before γ and β mean 0 (largest |mean| {short(mean.max())}), variance 1 but for ε ({span})"
    return (Check(text, bool((errors <= 10 * TOLERANCE * (1 + reach)).all())),)


def _again(what: str, where: str, value: Tensor, expected: Tensor, size: Tensor | float = 1.0) -> Check:
    """Whether a stage is what float64 gives, up to rounding errors relative to ``size``."""
    difference = (value.double() - expected).abs()
    return Check(
        f"{what} recomputed in float64{where}, max |difference| = {short(difference.max())}",
        bool((difference <= TOLERANCE * size + _TINY).all()),
    )


def _some_rows(value: Tensor) -> tuple[Tensor, str]:
    """The indices of the rows that are computed again, and which these are where they are not all."""
    n_rows = value.shape[-2]
    if n_rows <= MOST_ROWS:
        return torch.arange(n_rows), ""
    return torch.linspace(0, n_rows - 1, MOST_ROWS).long(), f" on {MOST_ROWS} of {n_rows} rows"


# What holds exactly.


def _mask(run: Run, path: str) -> tuple[Check, ...]:
    """How many cells are blocked, counted once where every head has the same, and how many of them by each mask."""
    mask, masks = run.trace[path].value, run.mask_of(run.trace[path].module_path)
    blocked = _distinct_heads(~mask)
    text = f"{_of_cells(blocked)} are blocked"
    agrees = None
    if masks.names:
        n_batch, _, n_queries, n_keys = mask.shape
        bits = torch.stack([masks.blocked_bits(n_queries, n_keys, batch) for batch in range(n_batch)])
        counts = [int((bits >> i & 1).sum()) for i in range(len(masks.names))]
        by_each = [f"{n} by {name.replace('_', ' ')}" for n, name in zip(counts, masks.names, strict=True)]
        several = int((bits & (bits - 1) != 0).sum())
        overlap = f", {several} of them by {'both' if len(counts) == 2 else 'more than one'}" if several else ""
        agrees = torch.equal((bits != 0).expand_as(blocked), blocked)
        text = f"{text}: {', '.join(by_each)}{overlap}"
    found = [Check(text, agrees)]
    keyless = blocked.all(-1)
    if keyless.any():
        found.append(Check(f"{_queries(keyless)} can attend to no key at all", None))
    return tuple(found)


def _masked_scores(run: Run, path: str) -> tuple[Check, ...]:
    module, value = run.trace[path].module_path, run.trace[path].value
    scaled = run.trace[f"{module}.scaled_scores"].value
    if f"{module}.mask" not in run.trace:
        return (Check("no mask: equal to the scaled scores", torch.equal(value, scaled)),)
    expected = torch.where(run.trace[f"{module}.mask"].value, scaled, -math.inf)
    return (Check("every blocked cell is -∞, every other cell as it was", torch.equal(value, expected)),)


def _scaled_scores(run: Run, path: str) -> tuple[Check, ...]:
    module = run.trace[path].module_path
    scores, scaled = run.trace[f"{module}.scores"].value, run.trace[path].value
    if not getattr(run.model.get_submodule(module), "scale_scores", True):
        return (Check("scaling is off: equal to the scores", torch.equal(scores, scaled)),)
    width = run.trace[f"{module}.q"].value.shape[-1]
    text = f"every score was divided by √d_k = {square_root(width)}"
    return (Check(text, torch.equal(scaled, scores / math.sqrt(width))),)


def _scaled_embedding(run: Run, path: str) -> tuple[Check, ...]:
    (before,), value = operands_of(run, path), run.trace[path].value
    width = value.shape[-1]
    text = f"every number was multiplied by √d_model = {square_root(width)}"
    return (Check(text, torch.equal(value, run.trace[before.source].value * math.sqrt(width))),)


def _heads(run: Run, path: str) -> tuple[Check, ...]:
    """The columns of a projection, cut into heads."""
    value, before = run.trace[path].value, operands_of(run, path)
    if not before:
        return ()
    projection, n_heads = run.trace[before[0].source], value.shape[1]
    same = torch.equal(value, torch.unflatten(projection.value, -1, (n_heads, -1)).transpose(1, 2))
    return (
        Check(f"the {value.numel()} numbers of {projection.name}, {value.shape[-1]} columns to each head", same),
    )


def _concat(run: Run, path: str) -> tuple[Check, ...]:
    value, (before,) = run.trace[path].value, operands_of(run, path)
    same = torch.equal(value, run.trace[before.source].value.transpose(1, 2).flatten(-2))
    return (Check(f"the {value.numel()} numbers of context, head after head in each row", same),)


def _residual(run: Run, path: str) -> tuple[Check, ...]:
    stage, (stream, found) = run.trace[path], operands_of(run, path)
    x, y = (run.trace[operand.source].value for operand in (stream, found))
    name = found.source.removeprefix(f"{stage.module_path}.")
    return (Check(f"exactly x + {name}", torch.equal(stage.value, x + y)),)


def _dropped_output(run: Run, path: str) -> tuple[Check, ...]:
    (output,), stage = operands_of(run, path), run.trace[path]
    p = dropout_in(run.model, stage.module_path)
    return (_dropout("numbers", stage.value, run.trace[output.source].value, p),)


def _embedded(run: Run, path: str) -> tuple[Check, ...]:
    value, module = run.trace[path].value, run.trace[path].module_path
    embedding, positions = (run.trace[operand.source].value for operand in operands_of(run, path))
    p = dropout_in(run.model, module)
    if p == 0:
        text = "exactly scaled_embedding + positional_encoding"
        return (Check(text, torch.equal(value, embedding + positions)),)
    return (_dropout("sums", value, embedding + positions, p),)


def _dropped_weights(run: Run, path: str) -> tuple[Check, ...]:
    module, value = run.trace[path].module_path, run.trace[path].value
    weights = run.trace[f"{module}.weights"].value
    off = ((value.sum(-1) - 1).abs() > TOLERANCE) & ~_rows_without_key(run.trace, module)
    return (
        _dropout("weights", value, weights, dropout_in(run.model, module)),
        Check(f"{int(off.sum())} of {off.numel()} rows do not sum to one: dropout keeps only their mean", None),
    )


def _dropped_activation(run: Run, path: str) -> tuple[Check, ...]:
    module = run.trace[path].module_path
    activation = run.trace[f"{module}.activation"].value
    return (_dropout("hidden units", run.trace[path].value, activation, dropout_in(run.model, module)),)


def _dropout(what: str, value: Tensor, before: Tensor, p: float) -> Check:
    """Whether every number was either set to zero or divided by 1 - p."""
    dropped = (value == 0) & (before != 0)
    holds = dropped | _near(value, before / (1 - p))
    text = f"dropout set {int(dropped.sum())} of {int((before != 0).sum())} nonzero {what} to zero"
    return Check(f"{text} and divided the others by 1 - {p:g}", bool(holds.all()))


def _positional_encoding(run: Run, path: str) -> tuple[Check, ...]:
    value = run.trace[path].value
    positions = getattr(run.model.get_submodule(run.trace[path].module_path), "positions", None)
    if isinstance(positions, LearnedPositions):
        return ()
    if isinstance(positions, NoPositions):
        return (Check("no positions: zero everywhere", not bool(value.any())),)
    found = [Check("positions count from the first token that is no padding", None)] if value.dim() == 3 else []
    n_pairs = value.shape[-1] // 2
    pairs = value[..., 0 : 2 * n_pairs : 2] ** 2 + value[..., 1 : 2 * n_pairs : 2] ** 2
    found.append(Check("sin² + cos² = 1 in every pair of columns", _close(pairs, torch.ones_like(pairs))))
    return tuple(found)


def _numbers_are_numbers(stage: Stage) -> Check:
    return Check("no NaN", not bool(stage.value.isnan().any()))


def _rows_without_key(trace: Trace, module: str) -> Tensor:
    """(B, H, Tq), True where the mask leaves a query no key."""
    path, weights = f"{module}.mask", trace[f"{module}.weights"].value
    return ~trace[path].value.any(-1) if path in trace else torch.zeros(weights.shape[:-1], dtype=torch.bool)


def _distinct_heads(of_heads: Tensor) -> Tensor:
    """(B, H, ...) as it is, or its first head alone, (B, 1, ...), where all heads are the same."""
    first = of_heads[:, :1]
    return first if bool((of_heads == first).all()) else of_heads


def _queries(keyless: Tensor) -> str:
    """How many queries (B, H, Tq) marks, counted once where they are the same ones for every head."""
    marked = _distinct_heads(keyless)
    count = int(marked.sum())
    return f"{count} {'query' if count == 1 else 'queries'}{_in_heads(marked)}"


def _of_cells(blocked: Tensor) -> str:
    """``24 of 49 cells``, and in how many sequences and heads where that is more than one."""
    sequences = f" in {len(blocked)} sequences" if len(blocked) > 1 else ""
    return f"{int(blocked.sum())} of {blocked.numel()} cells{_in_heads(blocked)}{sequences}"


def _in_heads(of_heads: Tensor) -> str:
    return f" in {of_heads.shape[1]} heads" if of_heads.shape[1] > 1 else ""


def square_root(width: int) -> str:
    """``√16 = 4``, or ``√8 ≈ 2.828``."""
    root = math.sqrt(width)
    return f"√{width} {'=' if root.is_integer() else '≈'} {root:.4g}"


def short(error: Tensor | float) -> str:
    """``1.2e-07``, or ``0``."""
    return f"{float(error):.1e}" if error else "0"


def _near(a: Tensor, b: Tensor) -> Tensor:
    """Element by element, whether two tensors are the same up to rounding errors."""
    return (a - b).abs() <= TOLERANCE * (1 + b.abs())


def _close(a: Tensor, b: Tensor) -> bool:
    return bool(_near(a, b).all())


_CHECKS: dict[str, Callable[[Run, str], tuple[Check, ...]]] = {
    "scaled_embedding": _scaled_embedding,
    "positional_encoding": _positional_encoding,
    "embedded": _embedded,
    "qkv": _linear,
    "kv": _linear,
    "q_proj": _projection,
    "k_proj": _projection,
    "v_proj": _projection,
    "q": _heads,
    "k": _heads,
    "v": _heads,
    "scores": _scores,
    "scaled_scores": _scaled_scores,
    "mask": _mask,
    "masked_scores": _masked_scores,
    "weights": _weights,
    "dropped_weights": _dropped_weights,
    "context": _context,
    "concat": _concat,
    "hidden": _feed_forward,
    "activation": _feed_forward,
    "dropped_activation": _dropped_activation,
    "output": _feed_forward,
    "dropped_output": _dropped_output,
    "residual": _residual,
    "norm": _norm,
    "logits": _linear,
    "probabilities": _probabilities,
}
