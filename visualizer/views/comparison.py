"""Two runs of one input side by side: what a mask took away, where that weight went, and what it did downstream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model import Trace
from model.texts import texts_of
from visualizer.pictures.heads import modules_of
from visualizer.runs.paths import attention_modules, without_layer
from visualizer.runs.run import Run
from visualizer.settings.fields import Field, fields_of
from visualizer.settings.settings import FIELDS, Settings
from visualizer.stages.registry import entry_of

say = texts_of(__name__)

Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Shift:
    """The movement of the attention of one query between run A and run B.

    Attributes:
        freed: what the keys lost that only B blocks.
        blocked_keys: how many keys only B blocks for this query.
        gains: the keys that gained most, largest first, as (key, gain).
        other_gains: the gains of all other keys that gained.
        other_losses: what was lost by the keys that lost although B blocks them no more than A does.
        has_key: whether B leaves this query any key or, in a model broken on purpose, weight without one.
    """

    freed: float
    blocked_keys: int
    gains: tuple[tuple[int, float], ...]
    other_gains: tuple[float, ...]
    other_losses: tuple[float, ...]
    has_key: bool

    @property
    def gained(self) -> float:
        """The sum of all gains."""
        return sum(gain for _, gain in self.gains) + sum(self.other_gains)


@dataclass(frozen=True, eq=False)
class Downstream:
    """The distance of two runs at every stage and token.

    Attributes:
        paths: the stages of the residual stream, in the order computed.
        norms: (stages, tokens), the Euclidean norm of B - A.
        relative: (stages, tokens), that norm over the norm of A; 0 where A is zero and so is the difference.
    """

    paths: tuple[str, ...]
    norms: Numbers
    relative: Numbers


@dataclass(frozen=True)
class Prediction:
    """The most likely tokens of one position, as (label, probability), most likely first, in each run."""

    before: tuple[tuple[str, float], ...]
    after: tuple[tuple[str, float], ...]

    @property
    def changed(self) -> bool:
        """True if the most likely token is another one."""
        return self.before[0][0] != self.after[0][0]


_N_LIKELY = 3
_UNCHANGED = 1e-6
"""Up to this a weight counts as the same: single precision leaves no more of it."""


def shift(a: Run, b: Run, module: str, *, batch: int, head: int, query: int, top: int = 3) -> Shift:
    """Follow the weight of one query of one head from run A to run B."""
    before, after = (_weights(run, module, batch)[head, query] for run in (a, b))
    allowed_by_b = _allowed(b, module, batch, head, query)
    newly_blocked = _allowed(a, module, batch, head, query) & ~allowed_by_b
    change = after - before
    order = change.argsort(descending=True).tolist()
    gains = [(key, float(change[key])) for key in order if change[key] > _UNCHANGED]
    lost = -change[(change < -_UNCHANGED) & ~newly_blocked]
    return Shift(
        freed=float(-change[newly_blocked].clamp_max(0).sum()),
        blocked_keys=int(newly_blocked.sum()),
        gains=tuple(gains[:top]),
        other_gains=tuple(gain for _, gain in gains[top:]),
        other_losses=tuple(lost.tolist()),
        has_key=bool(allowed_by_b.any() or after.any()),
    )


def differences(a: Settings, b: Settings) -> str:
    """Say in which settings two runs differ."""
    names = [name for name in fields_of(Settings) if getattr(a, name) != getattr(b, name)]
    found = [_changed(FIELDS[name], getattr(a, name), getattr(b, name)) for name in names]
    return say("differ", names="; ".join(found)) if found else say("same")


def _changed(field: Field, before: object, after: object) -> str:
    are_short = max(len(str(before)), len(str(after))) <= _SHORT
    if field.kind in ("cells", "identifier", "interventions") or not are_short:
        return field.label
    return say("changed", label=field.label, before=_in_words(field, before), after=_in_words(field, after))


_SHORT = 60


def _in_words(field: Field, value: object) -> str:
    if field.kind == "text":
        return f"“{value}”" if value else say("nothing")
    if isinstance(value, tuple):
        return ", ".join(_in_words(field, each) for each in value) or say("nothing")
    if isinstance(value, bool):
        return say("on") if value else say("off")
    return str(field.choices.get(str(value), value)) if field.choices else str(value)


def has_same_shapes(a: Run, b: Run, kind: str) -> bool:
    """True if an attention has as many layers, heads, queries and keys in both runs."""
    of_a, of_b = ([run.trace[f"{path}.weights"].value.shape for path in modules_of(run, kind)] for run in (a, b))
    return of_a == of_b


def has_same_rows(a: Run, b: Run, path: str) -> bool:
    """True if both runs have a stage, with as many rows."""
    of_a, of_b = (run.trace[path].value.shape[:-1] if path in run.trace else None for run in (a, b))
    return of_a is not None and of_a == of_b


def has_same_mask(a: Run, b: Run, module: str) -> bool:
    """True if an attention has masks of the same names, blocking the same cells, in A and in B."""
    if a.mask_of(module).names != b.mask_of(module).names:
        return False
    return all(
        torch.equal(_all_allowed(a, module, item), _all_allowed(b, module, item))
        for item in range(len(a.trace[f"{module}.weights"].value))
    )


def opened(a: Run, b: Run, module: str, *, batch: int, head: int) -> tuple[int, int]:
    """Count the cells of a head that A opens and B blocks, and those that B opens and A blocks."""
    of_a, of_b = (_all_allowed(run, module, batch)[head] for run in (a, b))
    return int((of_a & ~of_b).sum()), int((of_b & ~of_a).sum())


def same_mask_note(a: Run, b: Run, module: str, masks: str) -> str:
    """Say where the difference at an attention comes from whose ``masks`` are the same in A and B."""
    modules = attention_modules(a.trace)
    other = [path for path in modules if not has_same_mask(a, b, path)]
    if other and a.repeat is not None:  # no attention of B reads what another one of B gave
        return say("recorded", masks=masks)
    before = [path for path in other if modules.index(path) < modules.index(module)]
    if not other:
        return say("alone", masks=masks) if len(modules) == 1 else say("all", masks=masks, count=len(modules))
    note = say("before", masks=masks, count=len(before)) if before else say("none_before", masks=masks)
    if "target" not in a.tokens or without_layer(module) == "decoder.self_attention":
        return note
    return f"{note} {say('paper')}"


def most_freed(a: Run, b: Run, module: str, *, batch: int) -> tuple[int, int]:
    """The head and the query from which B took most weight."""
    before = _weights(a, module, batch)
    newly_blocked = _all_allowed(a, module, batch) & ~_all_allowed(b, module, batch)
    freed = (before * newly_blocked).sum(-1)
    head, query = divmod(int(freed.argmax()), freed.shape[-1])
    return head, query


def downstream(a: Run, b: Run, *, batch: int, prefix: str) -> Downstream | None:
    """The distance between two runs along the sequence of tokens that runs through ``prefix``.

    It ends at the logits, except that of the encoder beside a decoder: their rows are other tokens there. Stages
    with other rows than its end, such as a prompt that a model puts before the tokens, are left out. None where
    there is no such stage, as in an attention by itself.
    """
    both = [path for path in a.trace if _is_in_both(a, b, path) and _is_on_the_way(a, path, prefix)]
    if not both:
        return None
    n_rows = [a.trace[path].value.shape[-2] for path in both]
    paths = tuple(path for path, count in zip(both, n_rows, strict=True) if count == n_rows[-1])
    norms, relative = [], []
    for path in paths:
        first, second = _vectors(a.trace, path, batch), _vectors(b.trace, path, batch)
        norm = (second - first).norm(dim=-1)
        norms.append(norm)
        relative.append(norm / first.norm(dim=-1).clamp_min(1e-12))
    return Downstream(paths, torch.stack(norms).numpy(), torch.stack(relative).numpy())


def predictions(a: Run, b: Run, *, batch: int) -> tuple[Prediction, ...]:
    """The most likely tokens at every position, in run A and in run B."""
    return tuple(map(Prediction, _most_likely(a, batch), _most_likely(b, batch)))


def _weights(run: Run, module: str, batch: int) -> Tensor:
    """(H, Tq, Tk); weights of NaN, as some models give to a query without a key, are none."""
    return run.trace[f"{module}.weights"].value[batch].nan_to_num(0.0)


def _allowed(run: Run, module: str, batch: int, head: int, query: int) -> Tensor:
    return _all_allowed(run, module, batch)[head, query]


def _all_allowed(run: Run, module: str, batch: int) -> Tensor:
    """(H, Tq, Tk), True = may attend."""
    path = f"{module}.mask"
    if path in run.trace:
        return run.trace[path].value[batch]
    return torch.ones(run.trace[f"{module}.weights"].value.shape[1:], dtype=torch.bool)


def _is_on_the_way(run: Run, path: str, prefix: str) -> bool:
    has_logits = prefix != "encoder" or "target" not in run.tokens
    leads_on = without_layer(path).startswith(prefix) or (path == "logits" and has_logits)
    module, _, name = path.rpartition(".")
    is_brought = name == "context" and module in run.attentions  # of a checkpoint the stream itself is not kept
    return leads_on and (is_brought or entry_of(run, path).on_the_stream)


def _is_in_both(a: Run, b: Run, path: str) -> bool:
    return path in b.trace and a.trace[path].value.shape == b.trace[path].value.shape


def _vectors(trace: Trace, path: str, batch: int) -> Tensor:
    """(T, D) of one sequence; of a context (H, T, Dh) with its heads side by side."""
    value = trace[path].value[batch].float()
    return value if value.dim() == 2 else value.transpose(0, 1).flatten(1)


def _most_likely(run: Run, batch: int) -> list[tuple[tuple[str, float], ...]]:
    probabilities = run.trace["probabilities"].value[batch]
    best = probabilities.topk(min(_N_LIKELY, probabilities.shape[-1]), dim=-1)
    return [
        tuple((run.vocabulary[token_id], share) for token_id, share in zip(ids, shares, strict=True))
        for ids, shares in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
