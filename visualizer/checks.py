"""What must hold of a stage, checked on the tensors of this very run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model import CombinedMask, Stage, Trace
from model.references import sdpa_difference
from visualizer.dataflow import operands

TOLERANCE = 1e-5
"""Largest rounding error, in float32, of what holds exactly on paper."""


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
    numbers = value.double()
    finite = numbers[numbers.isfinite()]
    if not finite.numel():
        return Summary(math.nan, math.nan, math.nan)
    return Summary(finite.min().item(), finite.max().item(), finite.mean().item())


def checks(trace: Trace, model: nn.Module, path: str, masks: CombinedMask | None = None) -> tuple[Check, ...]:
    """Everything that must hold of the stage at ``path``; ``masks`` are those of its attention, if it has any."""
    stage = trace[path]
    module = stage.module_path
    find = _CHECKS.get(stage.name.rstrip("0123456789"))
    found = list(find(trace, model, path) if find else ())
    if stage.name == "mask" and masks is not None:
        found += _each_mask(stage.value, masks)
    if stage.name in _OF_THE_ATTENTION and f"{module}.weights" in trace:
        found.append(attention_agreement(trace, module))
    return (*found, _numbers_are_numbers(stage))


def attention_agreement(trace: Trace, module: str) -> Check:
    """Whether PyTorch's own attention gives what the attention at ``module`` gave in this very run."""
    difference = sdpa_difference(trace, module)
    before_dropout = ", before dropout" if f"{module}.dropped_weights" in trace else ""
    return Check(
        f"matches PyTorch's F.scaled_dot_product_attention{before_dropout}, max |difference| = {difference:.1e}",
        difference < TOLERANCE,
    )


_OF_THE_ATTENTION = ("scores", "scaled_scores", "mask", "masked_scores", "weights", "dropped_weights", "context")


def _each_mask(mask: Tensor, masks: CombinedMask) -> list[Check]:
    """How many cells each mask blocks, whether or not another blocks them too."""
    n_queries, n_keys = mask.shape[-2:]
    bits = masks.blocked_bits(n_queries, n_keys)
    counts = [int((bits >> i & 1).sum()) for i in range(len(masks.names))]
    return [
        Check(f"{count} by {name.replace('_', ' ')}", None) for name, count in zip(masks.names, counts, strict=True)
    ]


def _weights(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    module = path.rpartition(".")[0]
    weights = trace[path].value
    keyless = _rows_without_key(trace, module, weights)
    error = (weights.sum(-1) - (~keyless).to(weights.dtype)).abs().max().item()
    found = [Check(f"every row sums to one (largest error {error:.1e})", error < TOLERANCE)]
    if keyless.any():
        count = _rows(keyless)
        zero = bool((weights[keyless] == 0).all())
        found[0] = Check(f"every row with a key sums to one (largest error {error:.1e})", error < TOLERANCE)
        found.append(Check(f"{count} with every key blocked: zero everywhere", zero))
    if f"{module}.mask" in trace:
        leaked = weights[~trace[f"{module}.mask"].value]
        found.append(Check("every blocked cell is exactly zero", bool((leaked == 0).all())))
    return tuple(found)


def _dropped_weights(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    module, value = path.rpartition(".")[0], trace[path].value
    dropped = (value == 0) & (trace[f"{module}.weights"].value != 0)
    off = (value.sum(-1) - 1).abs() > TOLERANCE
    return (
        Check(f"dropout set {int(dropped.sum())} weights to zero and scaled the others up", None),
        Check(f"{int(off.sum())} of {off.numel()} rows do not sum to one: dropout keeps only their mean", None),
    )


def _mask(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    cells = trace[path].value[0, 0]
    keyless = ~cells.any(-1)
    found = [Check(f"{int((~cells).sum())} of {cells.numel()} cells are blocked", None)]
    if keyless.any():
        found.append(Check(f"{_rows(keyless)} can attend to no key at all", None))
    return tuple(found)


def _masked_scores(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    module, value = path.rpartition(".")[0], trace[path].value
    if f"{module}.mask" not in trace:
        return (
            Check(
                "no mask: equal to the scaled scores", torch.equal(value, trace[f"{module}.scaled_scores"].value)
            ),
        )
    mask = trace[f"{module}.mask"].value
    blocked = bool((value[~mask] == -math.inf).all())
    same = torch.equal(value[mask], trace[f"{module}.scaled_scores"].value[mask])
    return Check("every blocked cell is -∞", blocked), Check("every other cell is as it was", same)


def _scaled_scores(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    module = path.rpartition(".")[0]
    scores, scaled = trace[f"{module}.scores"].value, trace[path].value
    if not getattr(model.get_submodule(module), "scale_scores", True):
        return (Check("scaling is off: equal to the scores", torch.equal(scores, scaled)),)
    width = trace[f"{module}.q"].value.shape[-1]
    divisor = math.sqrt(width)
    return (Check(f"every score was divided by √d_k = √{width} = {divisor:.4g}", _close(scaled * divisor, scores)),)


def _scores(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    module = path.rpartition(".")[0]
    q, k = (trace[f"{module}.{name}"].value[..., :_ROWS, :].double() for name in ("q", "k"))
    scores = trace[path].value[..., :_ROWS, :_ROWS]
    difference = ((q @ k.mT - scores).abs().max() / scores.abs().max().clamp_min(1.0)).item()
    where = f" in the first {_ROWS} rows and columns" if max(trace[path].value.shape[-2:]) > _ROWS else ""
    text = f"equal to Q Kᵀ in float64{where}, relative difference {difference:.1e}"
    return (Check(text, difference < TOLERANCE),)


_ROWS = 128
"""As many rows are computed again in float64: all of them would take longer than the run itself."""


def _context(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    module = path.rpartition(".")[0]
    if f"{module}.dropped_weights" in trace:
        return ()
    value, v = trace[path].value, trace[f"{module}.v"].value
    keyless = _rows_without_key(trace, module, trace[f"{module}.weights"].value)
    margin = TOLERANCE * (1 + v.abs().max())
    above = value >= v.amin(-2, keepdim=True) - margin
    below = value <= v.amax(-2, keepdim=True) + margin
    inside = bool((above & below)[~keyless].all())
    return (Check("every number lies between the smallest and the largest value of its column", inside),)


def _same_numbers(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    before = operands(trace, path)
    if not before:
        return ()
    value, source = trace[path].value, trace[before[0].source].value
    same = torch.equal(value.flatten().sort().values, source.flatten().sort().values)
    return (Check(f"the same {value.numel()} numbers as {trace[before[0].source].name}, in another order", same),)


def _residual(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    x, sublayer = (trace[operand.source].value for operand in operands(trace, path))
    if torch.equal(trace[path].value, x + sublayer):
        return (Check("exactly x + sublayer(x)", True),)
    dropped = any(getattr(module, "active", False) for module in model.modules())
    return (Check("x + dropout(sublayer(x))" if dropped else "exactly x + sublayer(x)", dropped or False),)


def _norm(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    layer_norm = model.get_submodule(path)
    if not isinstance(layer_norm, nn.LayerNorm):
        return ()
    plain = (trace[path].value - layer_norm.bias) / layer_norm.weight
    mean, variance = plain.mean(-1).abs().max().item(), plain.var(-1, unbiased=False)
    low, high = variance.min().item(), variance.max().item()
    return (
        Check(f"every token has mean 0 (largest |mean| {mean:.1e})", mean < TOLERANCE * 10),
        Check(f"every token has variance 1 ({low:.4f} to {high:.4f})", high < 1.001),
    )


def _activation(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    value = trace[path].value
    inactive = (value <= 0).double().mean().item()
    return (Check(f"{inactive:.0%} of the hidden units are not positive after it", None),)


def _probabilities(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    error = (trace[path].value.sum(-1) - 1).abs().max().item()
    return (Check(f"every row sums to one (largest error {error:.1e})", error < TOLERANCE),)


def _embedded(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    module = path.rpartition(".")[0]
    total = trace[f"{module}.scaled_embedding"].value + trace[f"{module}.positional_encoding"].value
    if torch.equal(trace[path].value, total):
        return (Check("exactly scaled embedding + positional encoding", True),)
    return (Check("scaled embedding + positional encoding, after dropout", None),)


def _positional_encoding(trace: Trace, model: nn.Module, path: str) -> tuple[Check, ...]:
    value = trace[path].value
    pairs = value[:, 0::2] ** 2 + value[:, 1::2] ** 2
    if not _close(pairs, torch.ones_like(pairs)):
        return ()
    return (Check("sin² + cos² = 1 in every pair of columns", True),)


def _numbers_are_numbers(stage: Stage) -> Check:
    return Check("no NaN", not bool(stage.value.isnan().any()))


def _rows_without_key(trace: Trace, module: str, weights: Tensor) -> Tensor:
    """(B, H, Tq), True where the mask leaves a query no key."""
    path = f"{module}.mask"
    return ~trace[path].value.any(-1) if path in trace else torch.zeros(weights.shape[:-1], dtype=torch.bool)


def _rows(keyless: Tensor) -> str:
    queries = keyless if keyless.dim() == 1 else keyless[0, 0]
    count = int(queries.sum())
    return f"{count} {'query' if count == 1 else 'queries'}"


def _close(a: Tensor, b: Tensor) -> bool:
    return bool(((a - b).abs() <= TOLERANCE * (1 + b.abs())).all())


_CHECKS: dict[str, Callable[[Trace, nn.Module, str], tuple[Check, ...]]] = {
    "q": _same_numbers,
    "k": _same_numbers,
    "v": _same_numbers,
    "concat": _same_numbers,
    "scores": _scores,
    "scaled_scores": _scaled_scores,
    "mask": _mask,
    "masked_scores": _masked_scores,
    "weights": _weights,
    "dropped_weights": _dropped_weights,
    "context": _context,
    "residual": _residual,
    "norm": _norm,
    "activation": _activation,
    "probabilities": _probabilities,
    "embedded": _embedded,
    "positional_encoding": _positional_encoding,
}
