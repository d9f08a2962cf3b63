"""Passes of a checkpoint, watched: over a text, or writing on token by token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from headlight.attention import Attention, Keep
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.tokens import Piece, Tokenized, pieces_of_ids
from headlight.recording import Texts
from headlight.trace import Trace
from headlight.watching import memory, watch
from model.masks import with_leading_axes

N_LIKELY = 10
"""How many of the likeliest tokens are kept of each step."""


@dataclass(frozen=True, eq=False)
class Pass:
    """One watched pass.

    Attributes:
        trace: every attention, with the tokens.
        output: what the model gave: the logits (1, T, V) of a language model, else its last hidden state (1, T, D).
        has_logits: which of the two.
    """

    trace: Trace
    output: Tensor
    has_logits: bool


def run(checkpoint: Checkpoint, given: Tokenized, *, keep: Keep = "weights") -> Pass:
    """One pass over a text, watched.

    Args:
        checkpoint: the model.
        given: what it is given.
        keep: as in ``watch``.
    """
    model = checkpoint.model
    with checkpoint.lock, torch.no_grad(), watch(model, keep=keep, to="cpu") as trace:
        output = model(**given.inputs, **plain(checkpoint))
    tokens = tuple(piece.text for piece in given.pieces)
    if given.target:
        trace.texts = Texts((tokens,), (tuple(piece.text for piece in given.target),))
    else:
        trace.tokens = tokens
    has_logits = "logits" in output and output["logits"].dim() == 3
    return Pass(trace, (output["logits"] if has_logits else output[0]).detach().cpu(), has_logits)


def with_mask(checkpoint: Checkpoint, given: Tokenized, allowed: Tensor) -> Tokenized:
    """The same input with a mask for every attention, in place of the model's own.

    ``transformers`` adds it to the scores, so it is given as numbers: a boolean mask would add 0 and 1.

    Args:
        checkpoint: an encoder or a decoder.
        given: the input.
        allowed: (1 or H, T, T) bool, True = may attend.

    Raises:
        ValueError: it is an encoder-decoder, which has three kinds of attention.
    """
    if checkpoint.part == "encoder-decoder":
        raise ValueError(f"{checkpoint.name} is an encoder-decoder: only a single stack takes one mask for all.")
    dtype = next(checkpoint.model.parameters()).dtype
    added = torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min)
    return replace(given, inputs={**given.inputs, "attention_mask": added[None].to(checkpoint.device)})


def holds(trace: Trace, allowed: Tensor) -> bool:
    """Whether no attention gives weight to a cell that a mask blocks, where a query has any key left."""
    blocked = ~allowed & allowed.any(-1, keepdim=True)
    return all(
        not bool((attention.weights[0] * blocked).any()) for attention in trace if attention.weights is not None
    )


def memory_of_run(checkpoint: Checkpoint, given: Tokenized, keep: Keep) -> int:
    """The bytes that the trace of a pass takes, known from one plain pass."""
    with checkpoint.lock:
        return memory(checkpoint.model, keep=keep, **given.inputs, **plain(checkpoint))


def plain(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing is kept for a next pass."""
    return {"use_cache": False} if checkpoint.part != "encoder" else {}


@dataclass(frozen=True, eq=False)
class Step:
    """One token written.

    Attributes:
        token: the one that was chosen, the likeliest.
        likely: the likeliest tokens, the first one first.
        probabilities: theirs.
        rest: the probability of all others together.
        n_rest: how many those are.
        weights: (L, H, Tk), the row of each attention over the tokens so far that the choice rests on.
        allowed: (Tq, Tk) bool, True = may attend: the mask of the first attention, for the tokens read now.
        n_computed: how many rows of keys and values were computed in this step; the others were kept.
    """

    token: Piece
    likely: tuple[Piece, ...]
    probabilities: tuple[float, ...]
    rest: float
    n_rest: int
    weights: Tensor
    allowed: Tensor
    n_computed: int


def write_on(checkpoint: Checkpoint, given: Tokenized, n_steps: int) -> Iterator[Step]:
    """Write on, always the likeliest token, with the key/value cache of ``transformers``; ends with the end token.

    Args:
        checkpoint: a decoder.
        given: the tokens to begin with.
        n_steps: the most tokens to write.

    Raises:
        ValueError: the model is no decoder.
    """
    if checkpoint.part != "decoder":
        raise ValueError(f"{checkpoint.name} is an {checkpoint.part}: only decoders write on here.")
    new, cache = given.inputs["input_ids"], None
    ends = _ends(checkpoint)
    for _ in range(n_steps):
        with checkpoint.lock, torch.no_grad(), watch(checkpoint.model, to="cpu") as trace:
            output = checkpoint.model(input_ids=new, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        step = _step(checkpoint, output.logits[0, -1].float().cpu(), trace, new.shape[1])
        yield step
        if step.token.id in ends:
            return
        new = torch.tensor([[step.token.id]], device=checkpoint.device)


def _step(checkpoint: Checkpoint, logits: Tensor, trace: Trace, n_computed: int) -> Step:
    probabilities = logits.double().softmax(0)
    shares, likely = probabilities.topk(min(N_LIKELY, len(logits)))
    pieces = pieces_of_ids(checkpoint.tokenizer, likely.tolist())
    return Step(
        token=pieces[0],
        likely=pieces,
        probabilities=tuple(shares.tolist()),
        rest=max(0.0, 1.0 - float(shares.sum())),
        n_rest=len(logits) - len(pieces),
        weights=torch.stack([attention.weights[0, :, -1] for attention in trace if attention.weights is not None]),
        allowed=_mask_of(trace[0]),
        n_computed=n_computed,
    )


def _mask_of(attention: Attention) -> Tensor:
    """(Tq, Tk) of the first sequence and head, all True where nothing is blocked."""
    _, _, n_queries, n_keys = attention.shape
    allowed = torch.ones(1, 1, dtype=torch.bool) if attention.allowed is None else attention.allowed
    return with_leading_axes(allowed)[0, 0].expand(n_queries, n_keys)


def _ends(checkpoint: Checkpoint) -> set[int]:
    """The ids that end what a model writes."""
    found: set[int] = set()
    generation = getattr(checkpoint.model, "generation_config", None)
    for source in (checkpoint.config, generation, checkpoint.tokenizer):
        end = getattr(source, "eos_token_id", None)
        found |= set(end) if isinstance(end, list) else set() if end is None else {int(end)}
    return found
