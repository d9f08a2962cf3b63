"""A pass of a checkpoint as a run: its attentions stand in it under the names of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.contexts import Context, context_of
from headlight.pretrained.checkpoint import SHELF, Checkpoint, devices
from headlight.pretrained.memory_needed import in_words
from headlight.pretrained.tokenized import (
    Piece,
    Tokenized,
    TooLongError,
    Words,
    beginning,
    pieces_of_ids,
    tokenized,
)
from headlight.pretrained.watched_pass import Pass, Where, memory_of_run, run, with_mask
from headlight.stages import Stage as SeenOperation
from headlight.trace import Trace as SeenTrace
from model import CombinedMask, Trace
from model.texts import texts_of
from model.tracing import Edit, TraceError
from visualizer.components.axis import SequenceName
from visualizer.runs.cached_results import CachesResults
from visualizer.runs.interventions import edits_of
from visualizer.runs.limits import use_tokens
from visualizer.runs.masks_in_force import Masks, are_one, names_of, promised_masks
from visualizer.runs.paths import in_layer, of_every_layer, without_layer
from visualizer.runs.refusals import RefusedError
from visualizer.runs.run import Run, in_items
from visualizer.runs.seen import (
    ALL,
    SeenStage,
    cut,
    named,
    own_masks,
    seen_run,
    stages_of,
    without_sinks,
)
from visualizer.runs.tokens import TokenSequence
from visualizer.safe_text import visible
from visualizer.settings.attentions import MaskedAttention, seen_by
from visualizer.settings.attentions import attentions_of as masked_attentions
from visualizer.settings.fields import MAX_TOKENS
from visualizer.settings.fitting import usual_mask
from visualizer.settings.interventions import read_interventions, write_interventions
from visualizer.settings.settings import Settings

say = texts_of(__name__)

MOST_BYTES = 2_000_000_000
"""The most memory that the numbers of one pass may take."""

_FEW = 8


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


def of_line(settings: Settings, item: int) -> Settings:
    """The settings of one line of a batch by itself: own masks stay its own, without padding."""
    line = replace(settings, text=settings.lines[min(item, len(settings.lines) - 1)], pretrained_batch=False)
    return replace(line, mask=usual_mask(line)) if has_own_masks(settings) else line


def input_of(settings: Settings) -> Tokenized:
    """The tokens that the checkpoint reads.

    Raises:
        TooLongError: there are too many tokens.
        ValueError: it is not in memory, or there is no token.
    """
    return tokenized(checkpoint_of(settings), words_of(settings), MAX_TOKENS)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A pass as it is asked for.

    Attributes:
        settings: with what the checkpoint fixes.
        checkpoint: what computes it.
        encoding: the tokens that it reads, under its own masks.
        batches: the same as sequences.
        changed: the masks in place of its own, by the kind of attention.
    """

    settings: Settings
    checkpoint: Checkpoint
    encoding: Tokenized
    batches: Mapping[SequenceName, tuple[TokenSequence, ...]]
    changed: Mapping[str, CombinedMask]

    @cached_property
    def masked(self) -> Tokenized:
        """The tokens that it reads, under the masks that were chosen."""
        return _masked(self.checkpoint, self.encoding, self.changed)


def _asked(settings: Settings) -> _Asked:
    """Read the text and the masks.

    Raises:
        ValueError: the checkpoint is not in memory, or cannot be given the text or the masks.
    """
    checkpoint, encoding = checkpoint_of(settings), input_of(settings)
    settings = replace(settings, **_shape(checkpoint, encoding))
    plain = _Asked(settings, checkpoint, encoding, batches_of(encoding), {})
    return replace(plain, changed=_changed_masks(plain))


def input_under_masks(settings: Settings) -> Tokenized:
    """The tokens that the checkpoint reads, with the masks that were chosen in place of its own.

    Raises:
        ValueError: as ``run_checkpoint``.
    """
    return _asked(settings).masked


def batches_of(encoding: Tokenized) -> dict[SequenceName, tuple[TokenSequence, ...]]:
    """The sequences that are read at once."""
    found: dict[SequenceName, tuple[TokenSequence, ...]] = {
        "source": tuple(map(_sequence, encoding.lines or (encoding.pieces,)))
    }
    return {**found, "target": (_sequence(encoding.target),)} if encoding.target else found


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
    """The memory that the attentions and the logits take, as far as the checkpoint says its sizes.

    Raises:
        TooLongError: it is more than there is room for.
    """
    config = checkpoint.config
    layers, heads, width = (
        int(getattr(config, name, 0) or 0) for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    n_items, longest = len(batches["source"]), max(len(each[0]) for each in batches.values())
    n_stacks = 3 if "target" in batches else 1
    of_attention = heads * longest**2 + 4 * longest * width  # the weights; four vectors
    found = 4 * n_items * (n_stacks * layers * of_attention + longest * checkpoint.n_tokens)
    _check_size(found, longest)
    return found


def _check_size(n_bytes: int, n_tokens: int) -> None:
    """Refuse a pass that takes too much memory. Its share for each token grows with the text, so fewer fit surely.

    Raises:
        TooLongError: it does.
    """
    if n_bytes > MOST_BYTES:
        sentence = say("too_large", size=in_words(n_bytes), most=in_words(MOST_BYTES))
        raise TooLongError(sentence, n_tokens * MOST_BYTES // n_bytes)


def refused(settings: Settings, error: TooLongError) -> RefusedError:
    """The refusal of a text that is too long; the way out is the beginning of each line, where that is known."""
    checkpoint, words = checkpoint_of(settings), words_of(settings)
    chat, most = words.chat and checkpoint.chats, error.most
    lines = [beginning(checkpoint, line, most, chat=chat) for line in words.lines]
    second = beginning(checkpoint, words.second, most - 1) if words.second else ""
    texts = {"text": "\n".join(lines), "target": second}
    changes = {name: text for name, text in texts.items() if text != getattr(settings, name)}
    if not changes:
        return RefusedError(str(error))
    n_tokens = max(len(tokenized(checkpoint, Words(line), most).pieces) for line in lines) if chat else most
    return RefusedError(str(error), use_tokens(n_tokens, len(lines), changes))


def run_checkpoint(settings: Settings, n_bytes: int = 0, complaints: tuple[str, ...] = ()) -> Run:
    """Run the checkpoint of some settings on their text, under its own masks or others, with or without edits.

    Args:
        settings: the checkpoint, its text, and the masks and edits.
        n_bytes: the memory that the run takes.
        complaints: one sentence for each part of the settings that was left out.

    Raises:
        ValueError: the checkpoint is not in memory, or what is asked for cannot be done with it; one sentence.
    """
    asked = _asked(settings)
    settings, checkpoint, encoding, batches = asked.settings, asked.checkpoint, asked.encoding, asked.batches
    try:
        settings = _with_named_edits(settings, checkpoint, encoding)
        seen, changed = _pass(asked, _edits(settings, checkpoint, encoding))
    except (ValueError, TraceError) as error:
        if not settings.edits:
            raise
        settings, complaints = replace(settings, edits=""), (*complaints, say("edits_left_out", why=error))
        seen, changed = _pass(asked, {})
    attentions = _named(checkpoint, seen.trace)
    chosen = _by_layer(asked, attentions)
    if asked.changed and not chosen:
        raise ValueError(_takes_no_mask(asked))
    own = _own_masks(attentions, batches)
    if not asked.changed:
        _OWN_MASKS[checkpoint] = words_of(settings), own
    masks = {**own, **chosen}
    contexts = _contexts(checkpoint, encoding) if changed else {}
    for path, attention in attentions.items():
        if (context := contexts.get(f"{path}.context")) is not None and context.path in changed:
            attentions[path] = replace(attention, context=context.by_head(changed[context.path]))
    return seen_run(
        *(settings, attentions, _trace(attentions, masks, seen), masks, batches),
        vocabulary=answers_of(checkpoint),
        complaints=complaints,
        n_bytes=n_bytes,
        trace_of_item=lambda item: _trace(attentions, in_items(masks, item), seen, slice(item, item + 1)),
    )


def every_operation(settings: Settings) -> SeenTrace:
    """Watch every operation of the same pass, under the same masks and with the same edits.

    Raises:
        TooLongError: it takes more memory than there is room for.
        ValueError: as ``run_checkpoint``.
    """
    asked = _asked(settings)
    edits = _edits(asked.settings, asked.checkpoint, asked.encoding)
    trace = _whole_pass(asked.checkpoint, asked.masked, edits, _takes_no_mask(asked)).trace
    contexts = _contexts(asked.checkpoint, asked.encoding) if edits else {}
    went_on = {context.attention: context for context in contexts.values() if context.path in edits}
    return trace.replaced(
        replace(one, context=_context_after(went_on[one.path], one, trace)) if one.path in went_on else one
        for one in trace
    )


def _context_after(context: Context, attention: Attention, trace: SeenTrace) -> Tensor | None:
    """The context that the model went on with after an edit, in the shape that the attention has it in."""
    before, value = attention.context, trace.stages[context.path].value
    return before if before is None or value is None else context.by_head(value).reshape(before.shape)


def _whole_pass(
    checkpoint: Checkpoint, encoding: Tokenized, edits: Mapping[str, Edit] = MappingProxyType({}), refusal: str = ""
) -> Pass:
    _check_size(n_bytes_of_all(checkpoint, encoding), max(len(encoding.pieces), len(encoding.target)))
    return run(checkpoint, encoding, keep="all", edits=edits, refusal=refusal)


def n_bytes_of_all(checkpoint: Checkpoint, encoding: Tokenized) -> int:
    """The memory that all operations of a pass take. It takes a pass to know, and masks change nothing of it."""
    sizes = tuple(tuple(value.shape) for name, value in encoding.inputs.items() if name.endswith("ids"))
    return _known_of(checkpoint).once(("n_bytes", sizes), lambda: memory_of_run(checkpoint, encoding, "all"))


def _known_of(checkpoint: Checkpoint) -> CachesResults:
    """The results found of a checkpoint, kept as long as it is in memory."""
    return _KNOWN.setdefault(checkpoint, CachesResults())


_KNOWN: WeakKeyDictionary[Checkpoint, CachesResults] = WeakKeyDictionary()

Value = TypeVar("Value")
_OfTexts = WeakKeyDictionary[Checkpoint, tuple[Words, Value]]


def _of_last_text(kept: _OfTexts[Value], checkpoint: Checkpoint, words: Words, find: Callable[[], Value]) -> Value:
    """Return what is found of a text; kept until the checkpoint is asked about another."""
    if checkpoint not in kept or kept[checkpoint][0] != words:
        kept[checkpoint] = words, find()
    return kept[checkpoint][1]


def _takes_no_mask(asked: _Asked) -> str:
    """The sentence on a model whose own code fails under another mask; "" where it has its own."""
    return say("takes_no_mask", name=asked.checkpoint.name) if asked.changed else ""


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
    found = named(map(without_sinks, seen), checkpoint.part)
    sizes = {(without_layer(path), attention.shape) for path, attention in found.items()}
    if len(sizes) > len(masked_attentions(checkpoint.part)):
        raise ValueError(say("sizes_differ", name=checkpoint.name))
    return found


def _shape(checkpoint: Checkpoint, encoding: Tokenized) -> Mapping[str, Any]:
    """The settings that a checkpoint fixes.

    Raises:
        ValueError: no attention over all tokens was seen in it.
    """

    def find() -> Mapping[str, Any]:
        named = _named(checkpoint, run(checkpoint, _few(encoding), keep="shapes").trace)
        if not named:
            raise ValueError(say("no_attention", name=checkpoint.name))
        depths = [len(list(_layers(kind.path, named))) for kind in masked_attentions(checkpoint.part)]
        of_decoder = depths[1] if len(depths) > 1 and depths[1] != depths[0] else 0
        n_heads = next(iter(named.values())).n_heads
        found = {"architecture": checkpoint.part, "n_heads": n_heads, "n_layers": depths[0]}
        return {**found, "n_decoder_layers": of_decoder}

    return _known_of(checkpoint).once("shape", find)


def _few(encoding: Tokenized) -> Tokenized:
    """The beginning of its longest sequence, for a pass of which names and sizes alone are asked."""
    lines = encoding.lines or (encoding.pieces,)
    longest = min(range(len(lines)), key=lambda line: sum(piece.padding for piece in lines[line]))
    inputs = {name: value[longest : longest + 1, :_FEW] for name, value in encoding.inputs.items()}
    return Tokenized(lines[longest][:_FEW], encoding.target[:_FEW], encoding.text, inputs)


# Its masks.


def has_own_masks(settings: Settings, but: str = "") -> bool:
    """True if each attention has the masks that the model has by itself, a painting perhaps left aside."""
    return all(_is_own(kind, settings, but) for kind in masked_attentions(settings.architecture))


def own_mask_names(settings: Settings) -> tuple[str, ...]:
    """The names of the masks that the checkpoint has by itself, in any of its attentions.

    Raises:
        ValueError: as ``run_checkpoint``.
    """
    return names_of(_own_masks_over(_asked(settings)).values())


def _changed_masks(asked: _Asked) -> dict[str, CombinedMask]:
    """The masks in place of the model's own, by the kind of attention; a painting beside its own lies on those.

    Raises:
        ValueError: a painted one is none, or differs between layers.
    """
    settings = asked.settings
    chosen: Masks = promised_masks(settings, asked.batches)
    found = {}
    for kind in masked_attentions(settings.architecture):
        masks = chosen[kind.path]
        if _is_own(kind, settings) or not masks:  # one that attends in blocks has no masks here
            continue
        if not are_one(masks):
            raise ValueError(say("one_for_all_layers"))
        found[kind.path] = masks[0]
        if _is_own(kind, settings, but="custom"):
            own = of_every_layer(_own_masks_over(asked), kind.path)
            if own and are_one(own):
                found[kind.path] = CombinedMask({**own[0].parts, "custom": masks[0].parts["custom"]})
    return found


def _is_own(kind: MaskedAttention, settings: Settings, but: str = "") -> bool:
    usual = replace(settings, mask=usual_mask(settings), encoder_padding=True, cross_padding=True)
    here, own = (seen_by(kind, each).mask for each in (settings, usual))
    return tuple(name for name in here if name != but) == own


def _masked(checkpoint: Checkpoint, encoding: Tokenized, changed: Mapping[str, CombinedMask]) -> Tokenized:
    """The input with the masks that were chosen; a cross-attention's goes first, for the encoder's beside it."""
    first = encoding.lines[0] if encoding.lines else encoding.pieces
    sizes = {"encoder": (len(first),) * 2, "decoder": (len(encoding.target or first),) * 2}
    sizes["cross"] = (sizes["decoder"][0], sizes["encoder"][1])
    for path in sorted(changed, reverse=True, key=lambda path: "cross" in path):
        where: Where = _WHERE[path] if checkpoint.part == "encoder-decoder" else "self"
        size = sizes[_WHERE[path]]
        allowed = changed[path].allowed
        whole = torch.ones(1, 1, *size, dtype=torch.bool) if allowed is None else allowed
        encoding = with_mask(checkpoint, encoding, whole.expand(*whole.shape[:2], *size), where)
    return encoding


def _by_layer(asked: _Asked, attentions: Mapping[str, Attention]) -> dict[str, CombinedMask]:
    """The masks that were chosen, by attention: of those over the tokens alone, not block by block."""
    n_tokens = {name: len(batch[0]) for name, batch in asked.batches.items()}
    return {
        path: asked.changed[kind.path]
        for kind in masked_attentions(asked.settings.architecture)
        if kind.path in asked.changed
        for path in (in_layer(kind.path, layer) for layer in _layers(kind.path, attentions))
        if attentions[path].shape[2:] == (n_tokens[kind.queries], n_tokens[kind.keys])
    }


def _layers(kind: str, attentions: Mapping[str, Attention]) -> Iterator[int]:
    layer = 0
    while in_layer(kind, layer) in attentions:
        yield layer
        layer += 1


def _own_masks(
    attentions: Mapping[str, Attention], batches: Mapping[SequenceName, Sequence[TokenSequence]]
) -> dict[str, CombinedMask]:
    def pads(path: str) -> Tensor:
        of_target = "target" in batches and path.startswith("decoder.") and "cross" not in path
        return torch.tensor([sequence.is_padding for sequence in batches["target" if of_target else "source"]])

    return own_masks(attentions, pads)


def _own_masks_over(asked: _Asked) -> Mapping[str, CombinedMask]:
    """The masks that the model has by itself over a text, whichever are chosen."""

    def find() -> Mapping[str, CombinedMask]:
        seen, _ = _pass(replace(asked, changed={}), {})
        return _own_masks(_named(asked.checkpoint, seen.trace), asked.batches)

    return _of_last_text(_OWN_MASKS, asked.checkpoint, words_of(asked.settings), find)


_OWN_MASKS: _OfTexts[Mapping[str, CombinedMask]] = WeakKeyDictionary()


# Its edits.


def _edits(settings: Settings, checkpoint: Checkpoint, encoding: Tokenized) -> Mapping[str, Edit]:
    """The edits by the paths of the operations that they are of.

    Raises:
        ValueError: what they are of is not there, or there is no other text that the model can read.
    """
    if not settings.edits:
        return {}
    contexts = _contexts(checkpoint, encoding)
    made = read_interventions(settings.edits)
    if unknown := [each.path for each in made if each.path not in contexts]:
        raise ValueError(say("no_such_context", path=unknown[0]))

    def other() -> Mapping[str, SeenOperation]:
        if not settings.other_text.strip():
            raise ValueError(say("no_other_text"))
        stages = _stages_of(checkpoint, replace(words_of(settings), text=settings.other_text))
        return {
            path: replace(stages[context.path], value=context.by_head(value))
            for path, context in contexts.items()
            if context.path in stages and (value := stages[context.path].value) is not None
        }

    return {contexts[path].path: contexts[path].edit(edit) for path, edit in edits_of(made, other).items()}


def _with_named_edits(settings: Settings, checkpoint: Checkpoint, encoding: Tokenized) -> Settings:
    """The settings with each edit by the name of the context: links of before say the checkpoint's operation."""
    if not settings.edits:
        return settings
    names = {context.path: path for path, context in _contexts(checkpoint, encoding).items()}
    made = [replace(each, path=names.get(each.path, each.path)) for each in read_interventions(settings.edits)]
    return replace(settings, edits=write_interventions(made))


def _contexts(checkpoint: Checkpoint, encoding: Tokenized) -> Mapping[str, Context]:
    """The operations that are the context of an attention, by the path of the context."""

    def find() -> Mapping[str, Context]:
        seen = _whole_pass(checkpoint, _few(encoding)).trace
        attentions = _named(checkpoint, seen).items()
        found = {f"{path}.context": context_of(attention, seen.stages) for path, attention in attentions}
        return {path: context for path, context in found.items() if context is not None}

    return _known_of(checkpoint).once("contexts", find)


def _stages_of(checkpoint: Checkpoint, words: Words) -> Mapping[str, SeenOperation]:
    """The operations that the checkpoint computes of another text."""

    def find() -> Mapping[str, SeenOperation]:
        return _whole_pass(checkpoint, tokenized(checkpoint, words, MAX_TOKENS)).trace.stages

    return _of_last_text(_OTHER_TEXT, checkpoint, words, find)


_OTHER_TEXT: _OfTexts[Mapping[str, SeenOperation]] = WeakKeyDictionary()


def _pass(asked: _Asked, edits: Mapping[str, Edit]) -> tuple[Pass, dict[str, Tensor]]:
    """The pass, and what the contexts that were edited came to, by the path of the operation.

    Raises:
        ValueError: the model cannot be given the masks, or an edit does not fit.
    """
    checkpoint, masked = asked.checkpoint, asked.masked
    seen = run(checkpoint, masked, keep="attentions", edits=edits, refusal=_takes_no_mask(asked))
    values = {path: seen.trace.stages[path].value for path in edits}
    seen.trace.stages, seen.trace.parameters = {}, {}  # nothing else is drawn of them here
    return seen, {path: value for path, value in values.items() if value is not None}


# Its stages.


def labels_of(checkpoint: Checkpoint) -> Sequence[str]:
    """The text of every token id of a checkpoint, each read when it is asked for."""
    return _Labels(checkpoint.tokenizer, checkpoint.n_tokens)


def answers_of(checkpoint: Checkpoint) -> Sequence[str]:
    """The label of all that a checkpoint gives a probability to: its tokens, or the classes that it sorts into."""
    return tuple(map(visible, checkpoint.classes)) or labels_of(checkpoint)


class _Labels(Sequence[str]):
    """The text of every token of the vocabulary, read when it is asked for."""

    def __init__(self, tokenizer: Any, n_tokens: int) -> None:  # noqa: ANN401 - of transformers
        self._tokenizer, self._n_tokens = tokenizer, n_tokens

    def __len__(self) -> int:
        return self._n_tokens

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Labels) and self._tokenizer is other._tokenizer

    def __hash__(self) -> int:
        return id(self._tokenizer)

    def __getitem__(self, token: Any) -> Any:  # noqa: ANN401 - a number, or a slice
        if isinstance(token, slice):
            return tuple(self[each] for each in range(*token.indices(self._n_tokens)))
        return visible(pieces_of_ids(self._tokenizer, [token])[0].text)


def _trace(
    attentions: Mapping[str, Attention], masks: Mapping[str, CombinedMask], seen: Pass, items: slice = ALL
) -> Trace:
    """The stages of every attention, and what the model ends with, in some sequences of the batch."""
    stages = stages_of({path: cut(attention, items) for path, attention in attentions.items()}, masks)
    if seen.has_logits:
        logits = seen.output[items]
        dims = tuple(zip(("B", "T", "V"), logits.shape, strict=True))
        stages += [
            SeenStage("logits", logits.float, dims, "transformer.py"),
            SeenStage("probabilities", lambda: logits.float().softmax(-1), dims, "transformer.py"),
        ]
    return Trace({stage.path: stage for stage in stages})
