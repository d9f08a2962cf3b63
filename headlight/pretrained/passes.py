"""Passes of a checkpoint, watched: over a text, or writing on token by token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headlight.attention import Attention, Keep
from headlight.findings import is_cross
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.tokens import Piece, Tokenized, pieces_of_ids
from headlight.recording import Texts
from headlight.trace import Trace
from headlight.watching import memory, watch
from model.decoding import GREEDY, Choice, Sampling, chosen
from model.masks import with_leading_axes
from model.tracing import Edit

Where = Literal["self", "encoder", "decoder", "cross"]
"""A choice of a model's attentions: all of a single stack, or one of the three kinds of an encoder-decoder."""

_OF_ENCODER = "encoder_mask"
"""Our own name: what the encoder alone is given, where that is not what the cross-attention is."""

_ARGUMENTS: Mapping[Where, str] = {
    "encoder": _OF_ENCODER,
    "decoder": "decoder_attention_mask",
    "cross": "attention_mask",
}
"""The argument that the mask of each kind is passed as."""

N_LIKELY = 10
"""The number of likeliest tokens that are kept of each step."""


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


def run(
    checkpoint: Checkpoint, given: Tokenized, *, keep: Keep = "weights", edits: Mapping[str, Edit] | None = None
) -> Pass:
    """One pass over a text, watched.

    Args:
        checkpoint: the model.
        given: what it is given.
        keep: as in ``watch``.
        edits: the same, of any stage.
    """
    model = checkpoint.model
    with checkpoint.lock, torch.no_grad(), watch(model, keep=keep, to="cpu", edits=edits) as trace:
        output = _output(checkpoint, given.inputs)
    tokens = tuple(piece.text for piece in given.pieces)
    if given.lines:
        trace.texts = Texts(tuple(tuple(piece.text for piece in line) for line in given.lines))
    elif given.target:
        trace.texts = Texts((tokens,), (tuple(piece.text for piece in given.target),))
    else:
        trace.tokens = tokens
    has_logits = "logits" in output and output["logits"].dim() == 3
    return Pass(trace, (output["logits"] if has_logits else output[0]).detach().cpu(), has_logits)


def _output(checkpoint: Checkpoint, given: Mapping[str, Tensor]) -> Any:  # noqa: ANN401 - of transformers
    """Compute the output; the encoder is run first where it is given a mask that the cross-attention is not."""
    inputs: dict[str, Any] = dict(given)
    if _OF_ENCODER in inputs:
        mask, ids = inputs.pop(_OF_ENCODER), inputs.pop("input_ids")
        inputs["encoder_outputs"] = checkpoint.model.get_encoder()(input_ids=ids, attention_mask=mask)  # type: ignore[operator]
    return checkpoint.model(**inputs, **plain(checkpoint))


def with_mask(checkpoint: Checkpoint, given: Tokenized, allowed: Tensor, where: Where = "self") -> Tokenized:
    """The same input with a mask for every attention of a kind, in place of the model's own.

    ``transformers`` adds it to the scores, so it is given as numbers: a boolean mask would add 0 and 1.

    Args:
        checkpoint: the model.
        given: the input.
        allowed: (1 or H, Tq, Tk), or (B, 1 or H, Tq, Tk), bool, True = may attend.
        where: of an encoder-decoder, which of its attentions; any other model has self-attention alone.
    """
    dtype = next(checkpoint.model.parameters()).dtype
    blocked = torch.finfo(dtype).min
    whole = with_leading_axes(allowed)
    added = torch.zeros(whole.shape, dtype=dtype).masked_fill(~whole, blocked).to(checkpoint.device)
    if checkpoint.part != "encoder-decoder":
        return replace(given, inputs={**given.inputs, "attention_mask": added})
    is_new = where == "cross" and _OF_ENCODER not in given.inputs
    of_encoder = {_OF_ENCODER: given.inputs["attention_mask"]} if is_new else {}
    return replace(given, inputs={**given.inputs, **of_encoder, _ARGUMENTS[where]: added})


def memory_of_run(checkpoint: Checkpoint, given: Tokenized, keep: Keep) -> int:
    """The bytes that the trace of a pass takes, known from one plain pass."""
    with checkpoint.lock:
        return memory(checkpoint.model, keep=keep, **{**given.inputs, **plain(checkpoint)})


def plain(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing is kept for a next pass."""
    return {"use_cache": False} if checkpoint.part != "encoder" else {}


@dataclass(frozen=True, eq=False)
class Likely:
    """One token that could come next.

    Attributes:
        piece: the token.
        rank: 1 for the most likely.
        probability: by the model's own softmax.
        share: what it is drawn with, after temperature, top-k and top-p.
    """

    piece: Piece
    rank: int
    probability: float
    share: float


@dataclass(frozen=True, eq=False)
class Step:
    """One token written.

    Attributes:
        token: the one that was chosen.
        likely: the likeliest tokens, the first one first; the one that was chosen is among them.
        n_others: how many others there are.
        n_possible: how many tokens could be drawn.
        draw: the number from [0, 1) that decided.
        ended: whether it is a token that ends the text.
        weights: (L, H, Tk), the row of each attention that the choice rests on: over the tokens so far, or, of an
            encoder-decoder, over the source.
        allowed: (Tq, Tk) bool, True = may attend: the mask of the first self-attention, for the tokens read now.
        n_computed: how many rows of keys and values of the tokens written so far were computed in this step; the
            others were kept.
        n_source_computed: the same of the source.
    """

    token: Piece
    likely: tuple[Likely, ...]
    n_others: int
    n_possible: int
    draw: float
    ended: bool
    weights: Tensor
    allowed: Tensor
    n_computed: int
    n_source_computed: int


def write_on(checkpoint: Checkpoint, given: Tokenized, n_steps: int, sampling: Sampling = GREEDY) -> Iterator[Step]:
    """Write on with the key/value cache of ``transformers``; ends with an end token.

    Args:
        checkpoint: a decoder, or an encoder-decoder, which writes on at its target.
        given: the tokens to begin with.
        n_steps: the most tokens to write.
        sampling: how each token is chosen.

    Raises:
        ValueError: the model is an encoder; at a step, what ``distribution`` raises.
    """
    if checkpoint.part == "encoder":
        raise ValueError(f"{checkpoint.name} is an encoder: it writes nothing.")
    model, cache, n_before = checkpoint.model, None, 0
    has_source = checkpoint.part == "encoder-decoder"
    fixed: dict[str, Any] = {}
    if has_source:
        source = {name: given.inputs[name] for name in ("input_ids", "attention_mask") if name in given.inputs}
        with checkpoint.lock, torch.no_grad():
            encoded = model.get_encoder()(**source)  # type: ignore[operator]
        fixed = {"encoder_outputs": encoded, "attention_mask": source.get("attention_mask")}
    name = "decoder_input_ids" if has_source else "input_ids"
    new, of_cache = given.inputs[name], _name_of_cache(model)
    for _ in range(n_steps):
        with checkpoint.lock, torch.no_grad(), watch(model, to="cpu") as trace:
            output = model(**{name: new, of_cache: cache}, **fixed, use_cache=True)
        n_source = len(given.pieces) if has_source and cache is None else 0
        cache, n_before = getattr(output, of_cache), n_before + new.shape[1]
        choice = chosen(output.logits[0, -1].float().cpu(), n_before, sampling)
        yield (step := _step(checkpoint, output.logits[0, -1].float().cpu(), choice, trace, new.shape[1], n_source))
        if step.ended:
            return
        new = torch.tensor([[choice.token]], device=checkpoint.device)


def _name_of_cache(model: nn.Module) -> str:
    """The name by which a model takes and gives its cache: ``transformers`` 5.24 has another than before."""
    return "cache" if "cache" in signature(model.forward).parameters else "past_key_values"


def _step(
    checkpoint: Checkpoint, logits: Tensor, choice: Choice, trace: Trace, n_computed: int, n_source_computed: int
) -> Step:
    probabilities = logits.double().softmax(0)
    ids = probabilities.topk(min(N_LIKELY, len(logits))).indices.tolist()
    if choice.token not in ids:
        ids[-1] = choice.token
    pieces = pieces_of_ids(checkpoint.tokenizer, ids)
    likely = tuple(
        Likely(
            piece,
            1 + int((probabilities > probabilities[token]).sum()),
            float(probabilities[token]),
            float(choice.probabilities[token]),
        )
        for token, piece in zip(ids, pieces, strict=True)
    )
    own = [attention for attention in trace if not is_cross(attention)]
    read = own if checkpoint.part == "decoder" else [attention for attention in trace if is_cross(attention)]
    return Step(
        token=pieces[ids.index(choice.token)],
        likely=likely,
        n_others=len(logits) - len(pieces),
        n_possible=int((choice.probabilities > 0).sum()),
        draw=choice.draw,
        ended=choice.token in end_ids(checkpoint),
        weights=torch.stack([attention.weights[0, :, -1] for attention in read if attention.weights is not None]),
        allowed=_mask_of(own[0]),
        n_computed=n_computed,
        n_source_computed=n_source_computed,
    )


def _mask_of(attention: Attention) -> Tensor:
    """(Tq, Tk) of the first sequence and head, all True where nothing is blocked."""
    _, _, n_queries, n_keys = attention.shape
    allowed = torch.ones(1, 1, dtype=torch.bool) if attention.allowed is None else attention.allowed
    return with_leading_axes(allowed)[0, 0].expand(n_queries, n_keys)


def end_ids(checkpoint: Checkpoint) -> set[int]:
    """The ids that end what a model writes."""
    found: set[int] = set()
    generation = getattr(checkpoint.model, "generation_config", None)
    for source in (checkpoint.config, generation, checkpoint.tokenizer):
        end = getattr(source, "eos_token_id", None)
        found |= set(end) if isinstance(end, list) else set() if end is None else {int(end)}
    return found
