"""A checkpoint that writes: what it starts from, what it reads with, and where it stops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from headlight.pretrained.reader import Reader, Reading, end_of
from model import Trace
from model.config import Architecture
from model.decoding import Read, Tokens
from model.tracing import Stage
from visualizer.runs.checkpoints import checkpoint_of, has_own_masks, input_of, of_line
from visualizer.runs.run import Run
from visualizer.runs.seen import named, without_sinks
from visualizer.settings.fields import MAX_TOKENS
from visualizer.settings.settings import NumberType

ROUNDING: Mapping[NumberType, float] = {"float32": 1e-4, "bfloat16": 2e-2}
"""Up to this share of the largest logit, numbers with and without a cache count as the same."""


def prompt_of(run: Run) -> Tokens:
    """The tokens that are continued, without their padding: of an encoder-decoder those of its target."""
    return run.tokens["target" if "target" in run.tokens else "source"].ids_without_padding


def longest_of(run: Run) -> int:
    """The number of tokens that there are positions for after the prompt."""
    return (checkpoint_of(run.settings).most_tokens or 2 * MAX_TOKENS) - len(prompt_of(run)) + 1


def end_token(run: Run) -> int | None:
    """The token that ends what the checkpoint writes."""
    return end_of(checkpoint_of(run.settings))


def reader_of(run: Run, allowed: Tensor, *, cached: bool) -> Read:
    """Return what reads the tokens so far, with or without the cache of ``transformers``.

    Args:
        run: the checkpoint's, of which the sequence looked at is continued.
        allowed: (..., L, L) bool, the masks in force, which count where they are not its own.
        cached: whether keys and values are kept.
    """
    settings = replace(of_line(run.settings, run.item), edits="")
    own = has_own_masks(settings, but="custom")  # the tokens that are written have no painting
    encoding = input_of(settings)
    reader = Reader(checkpoint_of(settings), encoding, cached=cached, allowed=None if own else allowed)

    def read(tokens: Tokens, _before: Trace | None = None) -> Trace:
        return Trace({stage.path: stage for stage in _stages(reader(tokens), settings.architecture)})

    return read


def _stages(reading: Reading, architecture: Architecture) -> Iterator[Stage]:
    """The weights of every attention, the rows of keys that were computed, and the logits of the next token."""
    for path, attention in named(map(without_sinks, reading.trace), architecture).items():
        if attention.weights is not None:
            yield _stage(f"{path}.weights", attention.weights.float(), "B H Tq Tk")
        if ".layers.0." in path:
            n_keys, is_first = attention.shape[3], reading.n_new == reading.n_all
            n_new = n_keys if is_first else reading.n_new if path.endswith("self_attention") else 0
            yield _stage(f"{path}.k", torch.empty(1, 1, n_keys, 0), "B H Tk Dh")  # as many rows, of no width
            yield _stage(f"{path}.k_proj", torch.empty(1, n_new, 0), "B Tn D")
    yield _stage("logits", reading.logits[None, None], "B T V")


def _stage(path: str, value: Tensor, symbols: str) -> Stage:
    return Stage(path, value, tuple(zip(symbols.split(), value.shape, strict=True)), (__file__, 0))
