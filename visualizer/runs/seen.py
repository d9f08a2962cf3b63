"""The attentions of a pass that was watched as the stages of a run, under the names of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from headlight.attentions import Attention
from model import CombinedMask, Trace, TracedModule, tracing
from model.config import Architecture
from model.masks import causal, padding, sliding_window, with_leading_axes
from model.texts import texts_of
from model.tracing import Stage
from visualizer.components.axis import SequenceName
from visualizer.masks import OWN
from visualizer.runs.paths import in_layer
from visualizer.runs.run import Run
from visualizer.runs.tokens import TokenSequence
from visualizer.runs.watched import key_groups
from visualizer.settings.settings import Settings, masked_attention

say = texts_of(__name__)

ALL = slice(None)

_FOLDER = Path(tracing.__file__).parent
_ROWS_CHECKED = 16


def seen_run(
    settings: Settings,
    attentions: Mapping[str, Attention],
    trace: Trace,
    masks: Mapping[str, CombinedMask],
    batches: Mapping[SequenceName, tuple[TokenSequence, ...]],
    *,
    vocabulary: Sequence[str] = (),
    **more: Any,  # noqa: ANN401 - further attributes of Run
) -> Run:
    """A pass that was seen as a run, with attributes of that; it holds no model, since it outlives the one seen."""
    groups = key_groups(next(iter(attentions.values())))
    return Run(
        *(settings, cast(TracedModule, nn.Module()), trace, masks, masks, batches, vocabulary),
        head_names=tuple(say("keys_and_values", group=group) for group in groups),
        forward=not_repeated,
        attentions=attentions,
        **more,
    )


def not_repeated(_run: Run) -> None:
    """Run nothing, since there is no model to run again."""
    raise NotImplementedError


def kind_of(attention: Attention, architecture: Architecture) -> str:
    """The path of an attention in a model of an architecture, without its layer."""
    if architecture != "encoder-decoder":
        return masked_attention(architecture)
    if attention.is_cross:
        return "decoder.cross_attention"
    return f"{'decoder' if attention.is_decoding else 'encoder'}.self_attention"


def named(attentions: Iterable[Attention], architecture: Architecture) -> dict[str, Attention]:
    """The attentions by their paths, each kind counted from layer 0."""
    found: dict[str, list[Attention]] = {}
    for attention in attentions:
        found.setdefault(kind_of(attention, architecture), []).append(attention)
    return {in_layer(kind, layer): one for kind, alike in found.items() for layer, one in enumerate(alike)}


def without_sinks(attention: Attention) -> Attention:
    """The same over its tokens alone: what a sink takes of a row is missing in it."""
    n_keys = attention.shape[-1] - attention.sinks
    return cut(attention, keys=slice(0, n_keys)) if attention.sinks else attention


def cut(attention: Attention, items: slice = ALL, queries: slice = ALL, keys: slice = ALL) -> Attention:
    """The same attention in some of its sequences, queries and keys."""

    def cells(tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        whole = with_leading_axes(tensor)
        whole = whole.expand(*whole.shape[:2], *attention.shape[2:])
        return (whole[items] if len(whole) > 1 else whole)[..., queries, keys]

    def vectors(tensor: Tensor | None, tokens: slice) -> Tensor | None:
        found = per_head(tensor, attention)
        return None if found is None else found[items, :, tokens]

    sizes = [
        len(range(size)[part]) for size, part in zip(attention.shape, (items, ALL, queries, keys), strict=True)
    ]
    context = attention.context
    return replace(
        attention,
        shape=(sizes[0], sizes[1], sizes[2], sizes[3]),
        weights=cells(attention.weights),
        allowed=cells(attention.allowed),
        bias=cells(attention.bias),
        query=vectors(attention.query, queries),
        key=vectors(attention.key, keys),
        value=vectors(attention.value, keys),
        context=context[items, :, queries] if context is not None and context.dim() == 4 else None,
    )


class SeenStage(Stage):
    """A stage whose tensor is made each time it is asked for: kept, the scores would double the memory of a run."""

    make: Callable[[], Tensor]

    def __init__(self, path: str, make: Callable[[], Tensor], dims: tuple[tuple[str, int], ...], file: str) -> None:
        fields = {"path": path, "make": make, "dims": dims, "location": (f"{_FOLDER}/{file}", 0), "edited": False}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def value(self) -> Tensor:
        """The tensor, in single precision."""
        return self.make()


def stages_of(attentions: Mapping[str, Attention], masks: Mapping[str, CombinedMask]) -> list[Stage]:
    """The stages of attentions; without the scores where their softmax is not what the model computed.

    Args:
        attentions: by their paths; a context counts as the one that the model went on with.
        masks: by the same paths.
    """
    first = next(iter(attentions))
    has_scores = _gives_the_weights(attentions[first], masks[first].allowed)
    return [
        stage
        for path, attention in attentions.items()
        for stage in _stages_of_one(path, attention, masks[path].allowed)
        if has_scores or "scores" not in stage.name
    ]


def _stages_of_one(path: str, attention: Attention, allowed: Tensor | None) -> Iterator[Stage]:
    sizes = dict(zip(("B", "H", "Tq", "Tk"), attention.shape, strict=True))

    def stage(name: str, make: Callable[[], Tensor], symbols: str, width: int = 0) -> Stage:
        dims = tuple((symbol, sizes.get(symbol, width)) for symbol in symbols.split())
        return SeenStage(f"{path}.{name}", make, dims, "attention.py")

    vectors = (("q", attention.query, "Tq"), ("k", attention.key, "Tk"), ("v", attention.value, "Tk"))
    of_heads = [(name, per_head(tensor, attention), symbol) for name, tensor, symbol in vectors]
    for name, tensor, symbol in of_heads:
        if tensor is not None:
            yield stage(name, partial(_repeated, tensor, sizes["H"]), f"B H {symbol} Dh", tensor.shape[-1])
    if all(tensor is not None for _, tensor, _ in of_heads[:2]):
        yield stage("scaled_scores", partial(scores_of, attention), "B H Tq Tk")
        yield stage("masked_scores", partial(scores_of, attention, allowed), "B H Tq Tk")
    if allowed is not None:
        yield stage("mask", partial(with_leading_axes(allowed).expand, attention.shape), "B H Tq Tk")
    if attention.weights is not None:
        yield stage("weights", attention.weights.float, "B H Tq Tk")
    if attention.context is not None and attention.context.dim() == 4:
        yield stage("context", attention.context.float, "B H Tq Dh", attention.context.shape[-1])


def scores_of(attention: Attention, allowed: Tensor | None = None, rows: slice = ALL) -> Tensor:
    """(B, H, Tq, Tk), with the bias, and minus infinity where a mask blocks.

    Raises:
        ValueError: its queries and keys were not kept.
    """
    query, key = per_head(attention.query, attention), per_head(attention.key, attention)
    if query is None or key is None:
        raise ValueError(f"no queries and keys of {attention.path} were kept")
    scores = (
        _repeated(query[:, :, rows], attention.n_heads) @ _repeated(key, attention.n_heads).mT * attention.scale
    )
    if attention.bias is not None:
        scores = (
            scores + attention.bias.expand(*attention.bias.shape[:-2], *attention.shape[2:])[..., rows, :].float()
        )
    if allowed is not None:
        scores = scores.where(allowed.expand(*allowed.shape[:-2], *attention.shape[2:])[..., rows, :], -math.inf)
    return scores


def _gives_the_weights(attention: Attention, allowed: Tensor | None) -> bool:
    """True if the softmax of the scores gives the weights, in the last rows: some cap scores, or have a sink.

    A query without a key has zeros, NaN or what its fill gives, and proves nothing.
    """
    vectors = per_head(attention.query, attention), per_head(attention.key, attention)
    if attention.sinks or attention.weights is None or any(each is None for each in vectors):
        return False
    rows = slice(-_ROWS_CHECKED, None)
    scores = scores_of(attention, allowed, rows)
    has_key = ~scores.isneginf().all(-1, keepdim=True)
    difference = (scores.softmax(-1) - attention.weights[:, :, rows].float()).abs().where(has_key, 0.0)
    return bool(has_key.any()) and bool(difference.max() <= rounding_of(attention))


def rounding_of(attention: Attention) -> float:
    """The largest difference at which weights computed again in single precision are those that were seen."""
    kept = [each for each in (attention.query, attention.weights) if each is not None]
    return max([1e-4, *(2 * torch.finfo(each.dtype).eps for each in kept)])


def per_head(tensor: Tensor | None, attention: Attention) -> Tensor | None:
    """(B, heads, T, D), out of four axes, or three that join sequences and heads; None where they are others."""
    if tensor is not None and tensor.dim() == 3 and len(tensor) % attention.shape[0] == 0:
        tensor = tensor.view(attention.shape[0], -1, *tensor.shape[1:])
    is_shared = tensor is not None and tensor.dim() == 4 and attention.n_heads % tensor.shape[1] == 0
    return tensor if is_shared else None


def _repeated(tensor: Tensor, n_heads: int) -> Tensor:
    """The same for each query head, where several share it."""
    return tensor.float().repeat_interleave(n_heads // tensor.shape[1], 1)


def own_masks(attentions: Mapping[str, Attention], pads: Callable[[str], Tensor]) -> dict[str, CombinedMask]:
    """The masks of the model itself, named where they are one of the list, or two of them.

    Args:
        attentions: by their paths.
        pads: gives for a path which of its keys are padding, (B, Tk) bool.
    """
    found: dict[str, CombinedMask] = {}
    known: dict[int, CombinedMask] = {id(None): CombinedMask({})}
    for path, attention in attentions.items():
        allowed = attention.allowed
        if allowed is not None and id(allowed) not in known:
            known[id(allowed)] = _named(attention, with_leading_axes(allowed.cpu()), pads(path))
        found[path] = known[id(allowed)]
    return found


_NAMED_TOGETHER = (
    *(("causal",), ("padding",), ("causal", "padding"), ("causal", "sliding_window")),
    ("causal", "padding", "sliding_window"),
)


def _named(attention: Attention, allowed: Tensor, pads: Tensor) -> CombinedMask:
    n_queries, n_keys = attention.shape[2:]
    whole = allowed.expand(*allowed.shape[:2], *attention.shape[2:])
    if bool(whole.all()):
        return CombinedMask({})
    width = max(1, int(whole[0, 0, -1].sum()))
    parts = {"causal": causal(n_queries, n_keys), "sliding_window": sliding_window(n_queries, n_keys, width)}
    parts["padding"] = padding(pads if pads.shape[-1] == n_keys else pads.new_zeros(1, n_keys))
    for names in _NAMED_TOGETHER:
        mask = CombinedMask({name: parts[name] for name in names})
        if mask.allowed is not None and bool((mask.allowed == whole).all()):
            return mask
    return CombinedMask({OWN: whole})
