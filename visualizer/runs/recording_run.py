"""The attentions of one kind of a recording as a run, cut to what is drawn at once."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from headlight.attentions import Attention
from model import CombinedMask, Trace
from model.config import Architecture
from visualizer.components.axis import Axis, SequenceName
from visualizer.runs.masks_in_force import masks_of_list
from visualizer.runs.paths import in_layer
from visualizer.runs.run import Run
from visualizer.runs.seen import cut, kind_of, own_masks, scores_of, seen_run, stages_of, without_sinks
from visualizer.runs.tokens import TokenSequence
from visualizer.runs.watched import WatchedRun, n_items, sees_later
from visualizer.safe_text import visible
from visualizer.settings.fields import RECORDED
from visualizer.settings.settings import Settings
from visualizer.settings.watched_settings import MOST_SIDE

Window = tuple[slice, slice]


def window_of(attention: Attention, wanted: tuple[int, int]) -> Window:
    """The queries and keys that are drawn: from those wanted on, or the last ones that fill the picture."""
    starts = [max(0, min(first, size - MOST_SIDE)) for first, size in zip(wanted, attention.shape[2:], strict=True)]
    queries, keys = (
        slice(first, min(size, first + MOST_SIDE)) for first, size in zip(starts, attention.shape[2:], strict=True)
    )
    return queries, keys


def run_recording(recorded: WatchedRun, attention: Attention, item: int, wanted: tuple[int, int] = (0, 0)) -> Run:
    """The attentions of a kind in one sequence of a recording.

    Args:
        recorded: the recording.
        attention: one of the kind, with weights.
        item: the sequence, or the last one.
        wanted: the first query and the first key to be drawn.
    """
    kind = recorded.kind_of(attention)
    item = min(item, n_items(attention) - 1)
    window = window_of(without_sinks(attention), wanted)
    return recorded.once(("run", kind[0].path, item, wanted), lambda: _run(recorded, kind, item, window))


def _run(recorded: WatchedRun, kind: tuple[Attention, ...], item: int, window: Window) -> Run:
    architecture, one = _architecture(kind), slice(item, item + 1)
    name = kind_of(kind[0], architecture)  # of all: later layers may read their own sequence beside another
    parts = (cut(without_sinks(attention), one, *window) for attention in kind)
    attentions = {in_layer(name, layer): part for layer, part in enumerate(parts)}
    batches, axes = _tokens(recorded, kind[0], item, window)
    *_, n_queries, n_keys = without_sinks(kind[0]).shape
    is_whole = max(n_queries, n_keys) <= MOST_SIDE and (n_queries == n_keys or kind[0].is_cross)
    pads = torch.tensor([batches["source"][0].is_padding])
    made = _made(attentions, own_masks(attentions, lambda _: pads), batches, axes, architecture)
    return made if is_whole else replace(made, repeat=None)


def _made(
    attentions: dict[str, Attention],
    masks: dict[str, CombinedMask],
    batches: dict[SequenceName, tuple[TokenSequence, ...]],
    axes: tuple[Axis, Axis],
    architecture: Architecture,
) -> Run:
    trace = Trace({stage.path: stage for stage in stages_of(attentions, masks)})
    has_scores = any(path.endswith(".scaled_scores") for path in trace)

    def repeat(settings: Settings) -> Run:
        changed = {path: _under(attention, settings) for path, attention in attentions.items()}
        others = {path: mask for path, (_, mask) in changed.items()}
        return _made({path: one for path, (one, _) in changed.items()}, others, batches, axes, architecture)

    return seen_run(
        *(Settings(weights=RECORDED, architecture=architecture), attentions, trace, masks, batches),
        axes_seen=axes,
        repeat=repeat if has_scores else None,
    )


def _architecture(kind: tuple[Attention, ...]) -> Architecture:
    if kind[0].is_cross:
        return "encoder-decoder"
    return "encoder" if any(map(sees_later, kind)) else "decoder"


def _tokens(
    recorded: WatchedRun, attention: Attention, item: int, window: Window
) -> tuple[dict[SequenceName, tuple[TokenSequence, ...]], tuple[Axis, Axis]]:
    """The tokens that are drawn, and the axes of the weights; of a pass with a cache the keys count."""
    queries, keys = (
        texts[part] or tuple(map(str, range(size)[part]))
        for texts, part, size in zip(recorded.labels(attention, item), window, attention.shape[2:], strict=True)
    )
    if attention.is_cross:
        batches: dict[SequenceName, tuple[TokenSequence, ...]] = {
            "source": (sequence_of(keys),),
            "target": (sequence_of(queries),),
        }
        names: tuple[SequenceName | None, SequenceName] = ("target", "source")
    else:
        batches = {"source": (sequence_of(keys),)}
        names = ("source" if queries == keys else None, "source")
    rows, columns = (tuple(map(visible, texts)) for texts in (queries, keys))
    return batches, (Axis("query", rows, names[0]), Axis("key", columns, names[1]))


def sequence_of(texts: tuple[str, ...]) -> TokenSequence:
    """The texts of some tokens as a sequence, of which nothing else is known."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    ids = tuple(numbers[text] for text in texts)
    return TokenSequence(texts, ids, (False,) * len(texts), tuple(map(visible, texts)), (False,) * len(texts))


def _under(attention: Attention, settings: Settings) -> tuple[Attention, CombinedMask]:
    """An attention with the weights that another mask gives its recorded queries and keys."""
    *_, n_queries, n_keys = attention.shape
    mask = masks_of_list(settings, n_queries, torch.zeros(1, n_keys, dtype=torch.bool))
    weights: Tensor = scores_of(attention, mask.allowed).softmax(-1).nan_to_num(0.0)
    return replace(attention, weights=weights, allowed=mask.allowed, context=None, difference=None), mask
