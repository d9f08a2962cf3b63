"""A pass of a checkpoint as a run: its attentions stand in it under the names of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from headlight.attention import Attention
from headlight.pretrained.checkpoint import SHELF, Checkpoint, devices
from headlight.pretrained.passes import Pass, Where, attentions_of, run, with_mask
from headlight.pretrained.sizes import in_words
from headlight.pretrained.tokens import Piece, Tokenized, Words, pieces_of_ids, tokenized
from headlight.stages import Stage as SeenOperation
from model import CombinedMask, Trace, TracedModule, tracing
from model.masks import causal, padding, sliding_window, with_leading_axes
from model.texts import texts_of
from model.tracing import Edit, Stage, TraceError
from visualizer.components.axis import SequenceName
from visualizer.masks import OWN
from visualizer.runs.interventions import edits_of
from visualizer.runs.masks_in_force import Masks, promised_masks
from visualizer.runs.paths import in_layer, layer_of, without_layer
from visualizer.runs.run import Run
from visualizer.runs.tokens import TokenSequence
from visualizer.safe_text import visible
from visualizer.settings.attentions import MaskedAttention, seen_by
from visualizer.settings.attentions import attentions_of as masked_attentions
from visualizer.settings.fitting import usual_mask
from visualizer.settings.interventions import read_interventions, write_interventions
from visualizer.settings.settings import Settings

say = texts_of(__name__)

MOST_TOKENS = 512
"""The longest text that is watched."""

MOST_BYTES = 1_500_000_000
"""The most memory that the numbers of one pass may take."""

SAME = 1e-4
"""The largest difference at which weights that are computed again count as those that were seen."""

_CLOSE = 1e-2
"""The same of a context, as a share of it, with what bfloat16 makes of it at most."""

_FOLDER = Path(tracing.__file__).parent


class Wanted(NamedTuple):
    """A checkpoint as it is asked for.

    Attributes:
        name: of the hub, a folder, a file, or a package.
        dtype: the number type of its weights.
        device: where it is computed.
    """

    name: str
    dtype: str
    device: str


def wanted_by(settings: Settings) -> Wanted:
    """The checkpoint as it is asked for, on the CPU where this machine does not have the device that is named."""
    return Wanted(settings.pretrained_model, settings.pretrained_dtype, device_of(settings))


def device_of(settings: Settings) -> str:
    """The device that is chosen, or the CPU where this machine does not have it."""
    return settings.pretrained_device if settings.pretrained_device in devices() else "cpu"


def opened(settings: Settings) -> Checkpoint | None:
    """The checkpoint that is chosen, where it is in memory."""
    return SHELF.get(wanted_by(settings)) if settings.pretrained_model else None


def checkpoint_of(settings: Settings) -> Checkpoint:
    """The same.

    Raises:
        ValueError: it is not in memory.
    """
    if (found := opened(settings)) is None:
        raise ValueError(say("not_open", name=settings.pretrained_model))
    return found


def words_of(settings: Settings) -> Words:
    """Everything that is written for the model."""
    return Words(settings.text, settings.target, settings.pretrained_chat, settings.pretrained_batch)


def input_of(settings: Settings) -> Tokenized:
    """The tokens that the checkpoint reads.

    Raises:
        ValueError: it is not in memory, or there is no token, or too many.
    """
    return tokenized(checkpoint_of(settings), words_of(settings), MOST_TOKENS)


def batches_of(given: Tokenized) -> dict[SequenceName, tuple[TokenSequence, ...]]:
    """The sequences that are read at once."""
    found: dict[SequenceName, tuple[TokenSequence, ...]] = {
        "source": tuple(map(_sequence, given.lines or (given.pieces,)))
    }
    return {**found, "target": (_sequence(given.target),)} if given.target else found


def _sequence(pieces: Sequence[Piece]) -> TokenSequence:
    return TokenSequence(
        tokens=tuple(piece.text for piece in pieces),
        ids=tuple(piece.id for piece in pieces),
        is_padding=tuple(piece.padding for piece in pieces),
        labels=tuple(visible(piece.text) for piece in pieces),
        is_special=tuple(piece.special for piece in pieces),
        parts=tuple(piece.part for piece in pieces),
    )


def n_bytes_of(checkpoint: Checkpoint, batches: Mapping[SequenceName, Sequence[TokenSequence]]) -> int:
    """The memory that weights, queries, keys and values take, as far as the checkpoint says its sizes.

    Raises:
        ValueError: it is more than there is room for; one sentence.
    """
    config = checkpoint.config
    layers, heads, width = (
        int(getattr(config, name, 0) or 0) for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    n_items, longest = len(batches["source"]), max(len(each[0]) for each in batches.values())
    n_stacks = 3 if "target" in batches else 1
    found = 4 * n_stacks * n_items * layers * (heads * longest**2 + 4 * longest * width)
    if found > MOST_BYTES:
        raise ValueError(say("too_large", size=in_words(found), most=in_words(MOST_BYTES)))
    return found


def run_checkpoint(settings: Settings, n_bytes: int = 0, complaints: tuple[str, ...] = ()) -> Run:
    """Run the checkpoint of some settings on their text, under its own masks or others, with or without edits.

    Args:
        settings: the checkpoint, its text, and the masks and edits.
        n_bytes: the memory that the run takes.
        complaints: one sentence for each part of the settings that was left out.

    Raises:
        ValueError: the checkpoint is not in memory, or what is asked for cannot be done with it; one sentence.
    """
    checkpoint, given = checkpoint_of(settings), input_of(settings)
    batches = batches_of(given)
    settings = replace(settings, **_shape(checkpoint, given))
    changed = _changed_masks(settings, batches)
    try:
        settings = _with_named_edits(settings, checkpoint, given)
        edits = _edits(settings, checkpoint, given)
        seen, contexts = _pass(checkpoint, _masked(checkpoint, given, changed), edits)
    except (ValueError, TraceError) as error:
        if not settings.edits:
            raise
        settings, complaints, edits = replace(settings, edits=""), (*complaints, str(error)), {}
        seen, contexts = _pass(checkpoint, _masked(checkpoint, given, changed), edits)
    attentions = _named(checkpoint, seen.trace)
    masks = {**_own_masks(attentions, batches), **_by_layer(changed, attentions)}
    operations = _operations(checkpoint, given) if contexts else {}
    edited = {path: contexts[op] for path in attentions if (op := operations.get(f"{path}.context")) in contexts}
    labels = _Labels(checkpoint, checkpoint.config.vocab_size)
    return Run(
        *(settings, cast(TracedModule, checkpoint.model), _trace(attentions, masks, seen, edited)),
        *(masks, masks, batches),
        vocabulary=labels,
        head_names=(),
        forward=_never,
        complaints=complaints,
        n_bytes=n_bytes,
        attentions=attentions,
        trace_of_item=lambda item: _trace(attentions, masks, seen, edited, slice(item, item + 1)),
    )


def _never(_run: Run) -> None:
    raise NotImplementedError  # a checkpoint's pass is repeated with `run_checkpoint`


# Its attentions.


_WHERE: Mapping[str, Where] = {
    "encoder.self_attention": "encoder",
    "decoder.self_attention": "decoder",
    "decoder.cross_attention": "cross",
}


def _named(checkpoint: Checkpoint, seen: Sequence[Attention]) -> dict[str, Attention]:
    """The attentions by their paths in the paper's names.

    Raises:
        ValueError: those of one kind have different sizes.
    """
    found = {}
    for kind in masked_attentions(checkpoint.part):
        where: Where = _WHERE[kind.path] if checkpoint.part == "encoder-decoder" else "self"
        alike = attentions_of(seen, where)
        if len({each.shape for each in alike}) != 1:
            raise ValueError(say("sizes_differ", name=checkpoint.name))
        found.update({in_layer(kind.path, layer): attention for layer, attention in enumerate(alike)})
    return found


def place_of(checkpoint: Checkpoint, seen: Sequence[Attention], path: str) -> tuple[str, int]:
    """The kind and the layer of an attention that the checkpoint calls by a path."""
    named = next(name for name, each in _named(checkpoint, seen).items() if each.path == path)
    return without_layer(named), layer_of(named)


def _shape(checkpoint: Checkpoint, given: Tokenized) -> Mapping[str, Any]:
    """The settings that a checkpoint fixes."""
    if checkpoint not in _SHAPES:
        named = _named(checkpoint, run(checkpoint, given, keep="shapes").trace)
        depths = [len(list(_layers(kind.path, named))) for kind in masked_attentions(checkpoint.part)]
        of_decoder = depths[1] if len(depths) > 1 and depths[1] != depths[0] else 0
        n_heads = next(iter(named.values())).n_heads
        found = {"architecture": checkpoint.part, "n_heads": n_heads, "n_layers": depths[0]}
        _SHAPES[checkpoint] = {**found, "n_decoder_layers": of_decoder}
    return _SHAPES[checkpoint]


_SHAPES: WeakKeyDictionary[Checkpoint, Mapping[str, Any]] = WeakKeyDictionary()


# Its masks.


def input_under_masks(settings: Settings) -> Tokenized:
    """The tokens that the checkpoint reads, with the masks that were chosen in place of its own.

    Raises:
        ValueError: as ``run_checkpoint``.
    """
    checkpoint, given = checkpoint_of(settings), input_of(settings)
    settings = replace(settings, **_shape(checkpoint, given))
    return _masked(checkpoint, given, _changed_masks(settings, batches_of(given)))


def has_own_masks(settings: Settings) -> bool:
    """True if each attention has the masks that the model has by itself."""
    return all(_is_own(kind, settings) for kind in masked_attentions(settings.architecture))


def _changed_masks(
    settings: Settings, batches: Mapping[SequenceName, tuple[TokenSequence, ...]]
) -> dict[str, CombinedMask]:
    """The masks that were chosen in place of the model's own, by the kind of attention.

    Raises:
        ValueError: a painted one is none, or differs between layers.
    """
    chosen: Masks = promised_masks(settings, batches)
    found = {}
    for kind in masked_attentions(settings.architecture):
        if _is_own(kind, settings):
            continue
        masks = chosen[kind.path]
        if any(mask is not masks[0] and not _same(mask.allowed, masks[0].allowed) for mask in masks):
            raise ValueError(say("one_for_all_layers"))
        found[kind.path] = masks[0]
    return found


def _is_own(kind: MaskedAttention, settings: Settings) -> bool:
    """True if the masks chosen of an attention are those that the model has by itself."""
    usual = replace(settings, mask=usual_mask(settings), encoder_padding=True, cross_padding=True)
    here, own = seen_by(kind, settings), seen_by(kind, usual)
    return "custom" not in here.mask and here.mask == own.mask


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other or (one is not None and other is not None and torch.equal(one, other))


def _masked(checkpoint: Checkpoint, given: Tokenized, changed: Mapping[str, CombinedMask]) -> Tokenized:
    """The input with the masks that were chosen; a cross-attention's goes first, for the encoder's beside it."""
    first = given.lines[0] if given.lines else given.pieces
    sizes = {"encoder": (len(first),) * 2, "decoder": (len(given.target or first),) * 2}
    sizes["cross"] = (sizes["decoder"][0], sizes["encoder"][1])
    for path in sorted(changed, reverse=True, key=lambda path: "cross" in path):
        where: Where = _WHERE[path] if checkpoint.part == "encoder-decoder" else "self"
        size = sizes[_WHERE[path]]
        allowed = changed[path].allowed
        whole = torch.ones(1, 1, *size, dtype=torch.bool) if allowed is None else allowed
        given = with_mask(checkpoint, given, whole.expand(*whole.shape[:2], *size), where)
    return given


def _by_layer(changed: Mapping[str, CombinedMask], attentions: Mapping[str, Attention]) -> dict[str, CombinedMask]:
    return {in_layer(kind, layer): mask for kind, mask in changed.items() for layer in _layers(kind, attentions)}


def _layers(kind: str, attentions: Mapping[str, Attention]) -> Iterator[int]:
    layer = 0
    while in_layer(kind, layer) in attentions:
        yield layer
        layer += 1


def _own_masks(
    attentions: Mapping[str, Attention], batches: Mapping[SequenceName, Sequence[TokenSequence]]
) -> dict[str, CombinedMask]:
    """The masks of the model itself, named where it is one of the masks of the list, or two of them."""
    found: dict[str, CombinedMask] = {}
    known: dict[int, CombinedMask] = {}
    nothing = CombinedMask({})
    for path, attention in attentions.items():
        allowed = attention.allowed
        if allowed is None:
            found[path] = nothing
            continue
        if id(allowed) not in known:
            n_tokens = attention.shape[-1] - attention.sinks
            keys = batches[
                "target"
                if "target" in batches and path.startswith("decoder.") and "cross" not in path
                else "source"
            ]
            pads = torch.tensor([sequence.is_padding for sequence in keys])
            known[id(allowed)] = _named_mask(with_leading_axes(allowed.cpu())[..., :n_tokens], pads, attention)
        found[path] = known[id(allowed)]
    return found


def _named_mask(allowed: Tensor, pads: Tensor, attention: Attention) -> CombinedMask:
    n_queries, n_keys = attention.shape[-2], allowed.shape[-1]
    if bool(allowed.all()):
        return CombinedMask({})
    whole = allowed.expand(*allowed.shape[:2], n_queries, n_keys)
    width = max(1, int(whole[0, 0, -1].sum()))
    parts: dict[str, Tensor] = {
        "causal": causal(n_queries, n_keys),
        "padding": padding(pads),
        "sliding_window": sliding_window(n_queries, n_keys, width),
    }
    for names in (("causal",), ("padding",), ("causal", "padding"), ("causal", "sliding_window")):
        mask = CombinedMask({name: parts[name] for name in names})
        if mask.allowed is not None and bool((mask.allowed == whole).all()):
            return mask
    return CombinedMask({OWN: whole})


# Its edits.


def _edits(settings: Settings, checkpoint: Checkpoint, given: Tokenized) -> Mapping[str, Edit]:
    """The edits by the paths of the operations that they are of.

    Raises:
        ValueError: what they are of is not there, or there is no other text that the model can read.
    """
    if not settings.edits:
        return {}
    operations = _operations(checkpoint, given)
    made = read_interventions(settings.edits)
    if unknown := [each.path for each in made if each.path not in operations]:
        raise ValueError(say("no_such_context", path=unknown[0]))

    def other() -> Mapping[str, SeenOperation]:
        if not settings.other_text.strip():
            raise ValueError(say("no_other_text"))
        return _stages_of(checkpoint, replace(words_of(settings), text=settings.other_text))

    return edits_of([replace(each, path=operations[each.path]) for each in made], other)


def _with_named_edits(settings: Settings, checkpoint: Checkpoint, given: Tokenized) -> Settings:
    """The settings with each edit by the name of the context: links of before say the checkpoint's operation."""
    if not settings.edits:
        return settings
    names = {operation: path for path, operation in _operations(checkpoint, given).items()}
    made = [replace(each, path=names.get(each.path, each.path)) for each in read_interventions(settings.edits)]
    return replace(settings, edits=write_interventions(made))


def _operations(checkpoint: Checkpoint, given: Tokenized) -> Mapping[str, str]:
    """The operation whose result is the context of an attention, by the path of the context."""
    if checkpoint not in _OPERATIONS:
        seen = run(checkpoint, given, keep="all").trace
        found = {f"{path}.context": _context(seen.stages, each) for path, each in _named(checkpoint, seen).items()}
        _OPERATIONS[checkpoint] = {path: operation for path, operation in found.items() if operation}
    return _OPERATIONS[checkpoint]


_OPERATIONS: WeakKeyDictionary[Checkpoint, Mapping[str, str]] = WeakKeyDictionary()


def _context(stages: Mapping[str, SeenOperation], attention: Attention) -> str:
    """The path of the operation that is an attention's context, (B, H, Tq, Dv); "" where none is."""
    context = attention.context
    if context is None:
        return ""
    far = {
        path: float((stage.value - context).abs().max())
        for path, stage in stages.items()
        if stage.module == attention.module and stage.value is not None and stage.value.shape == context.shape
    }
    nearest = min(far, key=far.__getitem__, default="")
    return nearest if nearest and far[nearest] <= _CLOSE * float(context.abs().max()) else ""


@lru_cache(maxsize=2)
def _stages_of(checkpoint: Checkpoint, words: Words) -> Mapping[str, SeenOperation]:
    """The operations that the checkpoint computes of another text."""
    return run(checkpoint, tokenized(checkpoint, words, MOST_TOKENS), keep="all").trace.stages


def _pass(checkpoint: Checkpoint, given: Tokenized, edits: Mapping[str, Edit]) -> tuple[Pass, dict[str, Tensor]]:
    """The pass, and what the contexts that were edited came to, by the path of the operation."""
    seen = run(checkpoint, given, keep="all" if edits else "attentions", edits=edits)
    values = {path: seen.trace.stages[path].value for path in edits}
    seen.trace.stages = {}  # nothing else is drawn of them here
    return seen, {path: value for path, value in values.items() if value is not None}


# Its stages.


class _Labels(Sequence[str]):
    """The text of every token of the vocabulary, read when it is asked for."""

    def __init__(self, checkpoint: Checkpoint, n_tokens: int) -> None:
        self._checkpoint, self._n_tokens = checkpoint, n_tokens

    def __len__(self) -> int:
        return self._n_tokens

    def __getitem__(self, token: Any) -> Any:  # noqa: ANN401 - a number, or a slice
        if isinstance(token, slice):
            return tuple(self[each] for each in range(*token.indices(self._n_tokens)))
        return visible(pieces_of_ids(self._checkpoint.tokenizer, [token])[0].text)


class SeenStage(Stage):
    """A stage whose tensor is made when it is first asked for: those of thirty layers are rarely all looked at."""

    make: Callable[[], Tensor]

    def __init__(self, path: str, make: Callable[[], Tensor], dims: tuple[tuple[str, int], ...], file: str) -> None:
        given = {"path": path, "make": make, "dims": dims, "location": (f"{_FOLDER}/{file}", 0), "edited": False}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @cached_property
    def value(self) -> Tensor:
        """The tensor, in single precision."""
        return self.make()


def _trace(
    attentions: Mapping[str, Attention],
    masks: Mapping[str, CombinedMask],
    seen: Pass,
    edited: Mapping[str, Tensor],
    items: slice = slice(None),
) -> Trace:
    """The stages of every attention, and what the model ends with, in some sequences of the batch."""
    first, attention = next(iter(attentions.items()))
    has_scores = _gives_the_weights(attention, masks[first].allowed)
    stages = [
        stage
        for path, attention in attentions.items()
        for stage in _stages_of_attention(path, attention, masks[path], items, edited.get(path, attention.context))
        if has_scores or "scores" not in stage.name
    ]
    if seen.has_logits:
        logits = seen.output[items]
        dims = tuple(zip(("B", "T", "V"), logits.shape, strict=True))
        stages += [
            SeenStage("logits", logits.float, dims, "transformer.py"),
            SeenStage("probabilities", lambda: logits.float().softmax(-1), dims, "transformer.py"),
        ]
    return Trace({stage.path: stage for stage in stages})


def _stages_of_attention(
    path: str, attention: Attention, mask: CombinedMask, items: slice, context: Tensor | None
) -> Iterator[Stage]:
    n_items, n_heads, n_queries, n_all = attention.shape
    n_keys = n_all - attention.sinks
    sizes = {"B": len(range(n_items)[items]), "H": n_heads, "Tq": n_queries, "Tk": n_keys}

    def stage(name: str, make: Callable[[], Tensor], symbols: str, width: int = 0) -> Stage:
        dims = tuple((symbol, sizes.get(symbol, width)) for symbol in symbols.split())
        return SeenStage(f"{path}.{name}", make, dims, "attention.py")

    vectors = (("q", attention.query, "Tq"), ("k", attention.key, "Tk"), ("v", attention.value, "Tk"))
    per_head = [(name, _per_head(tensor, attention), symbol) for name, tensor, symbol in vectors]
    for name, tensor, symbol in per_head:
        if tensor is not None:
            yield stage(name, partial(_repeated, tensor[items], n_heads), f"B H {symbol} Dh", tensor.shape[-1])
    if all(tensor is not None for _, tensor, _ in per_head[:2]):
        yield stage("scaled_scores", partial(_scores, attention, items), "B H Tq Tk")
        yield stage("masked_scores", partial(_scores, attention, items, mask.allowed), "B H Tq Tk")
    if (allowed := mask.allowed) is not None:
        shape = (sizes["B"], n_heads, n_queries, n_keys)
        yield stage("mask", lambda: _of_items(allowed, items).expand(shape), "B H Tq Tk")
    if (weights := attention.weights) is not None:
        yield stage("weights", lambda: weights[items, ..., :n_keys].float(), "B H Tq Tk")
    if context is not None and context.dim() == 4:
        yield stage("context", context[items].float, "B H Tq Dh", context.shape[-1])


def _scores(attention: Attention, items: slice, allowed: Tensor | None = None, rows: slice = slice(None)) -> Tensor:
    """(B, H, Tq, Tk), with the bias, and minus infinity where a mask blocks."""
    query, key = _per_head(attention.query, attention), _per_head(attention.key, attention)
    if query is None or key is None:
        raise ValueError(f"no queries and keys of {attention.path} were kept")
    scores = _repeated(query[items, :, rows], attention.n_heads) @ _repeated(key[items], attention.n_heads).mT
    scores = scores * attention.scale
    if attention.bias is not None:
        whole = attention.bias.expand(*attention.bias.shape[:-2], *attention.shape[2:])
        scores = scores + _of_items(whole, items)[..., rows, :].float()
    if allowed is not None:
        whole = allowed.expand(*allowed.shape[:-2], *attention.shape[2:])
        scores = scores.masked_fill(~_of_items(whole, items)[..., rows, :], -math.inf)
    return scores


def _gives_the_weights(attention: Attention, allowed: Tensor | None) -> bool:
    """True if the softmax of the scores gives the weights, in the last rows: some cap scores, or add a sink."""
    vectors = _per_head(attention.query, attention), _per_head(attention.key, attention)
    if attention.sinks or attention.weights is None or any(each is None for each in vectors):
        return False
    rows = slice(-_ROWS_CHECKED, None)
    again = _scores(attention, slice(0, 1), allowed, rows).softmax(-1).nan_to_num(0.0)
    return bool((again - attention.weights[:1, :, rows].float()).abs().max() <= SAME)


_ROWS_CHECKED = 16


def _per_head(tensor: Tensor | None, attention: Attention) -> Tensor | None:
    """(B, heads, T, D), out of four axes, or three that join sequences and heads; None where they are others."""
    if tensor is not None and tensor.dim() == 3 and len(tensor) % attention.shape[0] == 0:
        tensor = tensor.view(attention.shape[0], -1, *tensor.shape[1:])
    is_shared = tensor is not None and tensor.dim() == 4 and attention.n_heads % tensor.shape[1] == 0
    return tensor if is_shared else None


def _repeated(tensor: Tensor, n_heads: int) -> Tensor:
    """The same for each query head, where several share it."""
    return tensor.float().repeat_interleave(n_heads // tensor.shape[1], 1)


def _of_items(tensor: Tensor, items: slice) -> Tensor:
    whole = with_leading_axes(tensor)
    return whole[items] if len(whole) > 1 else whole
