"""A model that writes: what it starts from, what it sees, and where it stops."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from model import CombinedMask, Transformer
from model.decoding import Read, Reader, Tokens
from model.key_value_cache import CachedReader
from model.learning.tasks import EOS, NEVER_WRITTEN, TASKS, prompt
from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.runs.checkpoint_writer import ROUNDING as ROUNDING_OF_LIBRARIES
from visualizer.runs.checkpoint_writer import end_token, longest_of, prompt_of, reader_of
from visualizer.runs.checkpoints import has_own_masks
from visualizer.runs.masks_in_force import are_one, masks_of_list
from visualizer.runs.paths import of_every_layer
from visualizer.runs.run import Run
from visualizer.runs.tokens import PADDING_ID, START_ID, TokenSequence
from visualizer.runs.trained import LONGEST_ANSWER
from visualizer.settings.fields import FAULTS_OF_MASKS, TRAINED, WORKED_EXAMPLES
from visualizer.settings.settings import FIELDS, Settings

say = texts_of(__name__)

ROUNDING = 1e-6
"""Up to this, numbers computed with and without a key/value cache count as the same."""

USUAL_LIMIT = 12
"""The most tokens that a model without an end token writes, unless told otherwise."""

LIMIT_OF_LARGE = 4
"""The same for a model of which one pass takes most of a second."""

LARGE_RUN = 64 * 2**20
"""Bytes from which on a run is that of a large model."""

MOST_TOKENS = int(FIELDS["limit"].most)
"""The most tokens that a person can ask for."""

Readers = Callable[[bool], Read]
"""Gives a reader of the tokens so far, with a key/value cache or without."""


@dataclass(frozen=True, eq=False)
class Writer:
    """A model with a decoder, ready to write.

    Attributes:
        readers: of the model.
        source: what its encoder reads; empty without one.
        prompt: the tokens before the first choice.
        never: the tokens that are in the vocabulary for other ends than to be written.
        end: the token that ends what it writes; None where there is none.
        longest: the most tokens that it can write.
        usual_limit: how many it writes at most, unless told otherwise.
        masks: of the decoder's self-attention, over as many tokens as it reads at most.
        memory_masks: of the cross-attention, one per layer, for any number of queries: without what is painted.
        answer: the right tokens where it learned a task; None for a model that did not.
        remarks: one sentence for each setting that does not hold here.
        rounding: up to this, relative to the largest, logits with and without a cache count as the same.
        exact_readers: makes the readers of the model in float64; None for a checkpoint.
    """

    readers: Readers
    source: Tokens
    prompt: Tokens
    never: Tokens
    end: int | None
    longest: int
    usual_limit: int
    masks: CombinedMask
    memory_masks: tuple[Tensor | None, ...]
    answer: Tokens | None
    remarks: tuple[str, ...]
    rounding: float = ROUNDING
    exact_readers: Callable[[], Readers] | None = None

    @property
    def has_encoder(self) -> bool:
        """True if what it writes answers a source."""
        return bool(self.source)

    def reader(self, *, cached: bool) -> Read:
        """Return a reader of the tokens so far, with or without a key/value cache."""
        return self.readers(cached)


def writer_of(run: Run) -> Writer:
    """The model of a run of one sequence as a writer.

    Raises:
        ValueError: it cannot write; the message is one sentence.
    """
    if run.settings.weights in WORKED_EXAMPLES:
        raise ValueError(say("worked_example"))
    if run.attentions:
        return _of_checkpoint(run)
    if not isinstance(run.model, Transformer):
        raise ValueError(say("attention"))
    if run.model.config.architecture == "encoder":
        raise ValueError(say("encoder"))
    has_encoder = run.model.config.architecture == "encoder-decoder"
    start = _prompt(run)
    source = run.tokens["source"].ids if has_encoder else ()
    longest = min(MOST_TOKENS, run.model.config.max_len - len(start) + 1)
    masks = _masks(run, len(start) + longest)
    memory_masks = tuple(_for_any_query(mask) for mask in _of_layers(run, "decoder.cross_attention"))
    size = len(start) + longest
    model = _evaluated(run.model)
    read_with: dict[str, Any] = {
        "source": source,
        "source_mask": tuple(mask.allowed for mask in _of_layers(run, "encoder.self_attention")),
        "target_mask": _open_cells(masks, size),
        "memory_mask": memory_masks,
        "source_positions": run.positions.get("source") if has_encoder else None,
    }

    def readers_with(model: Transformer) -> Readers:
        return lambda cached: (CachedReader if cached else Reader)(model, **read_with)

    return Writer(
        readers=readers_with(model),
        source=source,
        prompt=start,
        never=NEVER_WRITTEN if run.settings.weights == TRAINED else (PADDING_ID, START_ID),
        end=EOS if run.settings.weights == TRAINED else None,
        longest=longest,
        usual_limit=min(longest, _usual_limit(run)),
        masks=masks,
        memory_masks=memory_masks,
        answer=_answer(run),
        remarks=_remarks(run),
        exact_readers=lambda: readers_with(copy.deepcopy(model).double()),
    )


def _of_checkpoint(run: Run) -> Writer:
    """A checkpoint as a writer; the mask of its cross-attention is its own.

    Raises:
        ValueError: it writes nothing.
    """
    if run.settings.architecture == "encoder":
        raise ValueError(say("encoder"))
    if "logits" not in run.trace:
        raise ValueError(say("headless"))
    start, room = prompt_of(run), longest_of(run)
    longest = min(MOST_TOKENS, room)
    size = len(start) + longest
    masks = _masks(run, size)
    return Writer(
        readers=lambda cached: reader_of(run, _open_cells(masks, size), cached=cached),
        source=run.tokens["source"].ids if "target" in run.tokens else (),
        prompt=start,
        never=(),
        end=end_token(run),
        longest=longest,
        usual_limit=min(longest, USUAL_LIMIT),
        masks=masks,
        memory_masks=(),
        answer=None,
        remarks=tuple(
            sentence
            for sentence, holds in (
                (say("painting"), bool(run.settings.custom) and "custom" in run.settings.mask),
                (say("source_of_checkpoint"), "target" in run.tokens and not has_own_masks(run.settings)),
                (say("edits"), bool(run.interventions)),
            )
            if holds
        ),
        rounding=ROUNDING_OF_LIBRARIES[run.settings.pretrained_dtype],
    )


def prompt_tokens(run: Run) -> Mapping[SequenceName, TokenSequence]:
    """Return the tokens given before a model writes: without the target, which it writes itself, or a continuation.

    All tokens of a run that cannot write.
    """
    if run.attentions or not _writes(run):
        return run.tokens
    if "target" in run.tokens:
        return {"source": run.tokens["source"]}
    source = run.tokens["source"]
    places = [place for place, pads in enumerate(source.is_padding) if not pads]
    return {"source": source.only(places[: len(_prompt(run))])}


def _writes(run: Run) -> bool:
    return isinstance(run.model, Transformer) and run.model.config.architecture != "encoder"


def _usual_limit(run: Run) -> int:
    if run.settings.weights == TRAINED:
        return LONGEST_ANSWER
    return LIMIT_OF_LARGE if run.n_bytes > LARGE_RUN else USUAL_LIMIT


def _prompt(run: Run) -> Tokens:
    """The start token beside an encoder; else the tokens that are continued, without their padding."""
    if run.settings.weights == TRAINED:
        task = TASKS[run.settings.task]
        return prompt(task, task.read(run.text))
    if run.settings.architecture == "encoder-decoder":
        return (START_ID,)
    return run.tokens["source"].ids_without_padding


def _answer(run: Run) -> Tokens | None:
    if run.settings.weights != TRAINED:
        return None
    task = TASKS[run.settings.task]
    return None if task.answer is None else task.encode(task.answer(task.read(run.text)))


def _evaluated(model: Transformer) -> Transformer:
    """The model without dropout; a copy, since runs are shared."""
    return copy.deepcopy(model).eval() if model.training else model


def _masks(run: Run, n_tokens: int) -> CombinedMask:
    """The masks in force that are rules for any number of tokens; a window may be the own one of a checkpoint."""
    settings = run.settings
    if run.attentions and has_own_masks(settings, but="custom"):
        own = of_every_layer(run.promised, "decoder.self_attention")
        window = own[0].parts.get("sliding_window") if own and are_one(own) else None
        if window is not None:
            settings = replace(settings, mask=own[0].names, window=int(window[..., -1, :].sum()))
    return masks_of_list(settings, n_tokens, torch.zeros(1, n_tokens, dtype=torch.bool)).without("padding")


def _open_cells(masks: CombinedMask, size: int) -> Tensor:
    """The cells open to the self-attention of the tokens that are written, (1, 1, T, T)."""
    return torch.ones(1, 1, size, size, dtype=torch.bool) if masks.allowed is None else masks.allowed


def _of_layers(run: Run, path: str) -> list[CombinedMask]:
    """The masks of an attention beside a decoder, one per layer; none where it is not beside one."""
    return of_every_layer(run.masks, path) if "target" in run.batches else []


def _for_any_query(mask: CombinedMask) -> Tensor | None:
    """A mask of the cross-attention without its painting, which is for the target's tokens: its padding mask."""
    allowed = mask.without("custom").allowed
    return None if allowed is None else allowed[..., :1, :]


def _leaves_out_painting(settings: Settings) -> bool:
    """True if anything is painted over the tokens that are written."""
    return "custom" in settings.mask and (
        settings.architecture != "encoder-decoder" or bool(settings.custom or settings.custom_cross)
    )


def _remarks(run: Run) -> tuple[str, ...]:
    settings = run.settings
    has_encoder = settings.architecture == "encoder-decoder"  # whose own painting stays
    said = {
        say("painting_of_decoder") if has_encoder else say("painting"): _leaves_out_painting(settings),
        say("target"): has_encoder and settings.weights != TRAINED,
        say("dropout"): run.model.training,
        say("edits"): bool(run.interventions),
        say("mask_bug"): settings.fault in FAULTS_OF_MASKS and bool(settings.mask),
        say("padding"): settings.fault == "padding_counted" and settings.architecture == "decoder",
    }
    return tuple(sentence for sentence, holds in said.items() if holds)
