"""Passes of a checkpoint over a text, watched."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headlight.attentions import Keep
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.tokenized import Tokenized
from headlight.recording import Texts
from headlight.trace import Trace
from headlight.watching import memory, watch
from model.masks import with_leading_axes
from model.tracing import Edit, TraceError

_logger = logging.getLogger(__name__)

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
    checkpoint: Checkpoint,
    encoding: Tokenized,
    *,
    keep: Keep = "weights",
    edits: Mapping[str, Edit] | None = None,
    refusal: str = "",
) -> Pass:
    """One pass over a text, watched.

    Args:
        checkpoint: the model.
        encoding: what it is given.
        keep: as in ``watch``.
        edits: the same, of any stage.
        refusal: as in ``in_place_of_errors``.

    Raises:
        ValueError: as ``in_place_of_errors``.
    """
    model, said = checkpoint.model, in_place_of_errors(checkpoint, refusal)
    with said, checkpoint.lock, torch.no_grad(), watch(model, keep=keep, to="cpu", edits=edits) as trace:
        output = _output(checkpoint, encoding.inputs)
    tokens = tuple(piece.text for piece in encoding.pieces)
    if encoding.lines:
        trace.texts = Texts(tuple(tuple(piece.text for piece in line) for line in encoding.lines))
    elif encoding.target:
        trace.texts = Texts((tokens,), (tuple(piece.text for piece in encoding.target),))
    else:
        trace.tokens = tokens
    has_logits = "logits" in output and output["logits"].dim() == 3
    return Pass(trace, (output["logits"] if has_logits else output[0]).detach().cpu(), has_logits)


def _output(checkpoint: Checkpoint, encoded: Mapping[str, Tensor]) -> Any:  # noqa: ANN401 - of transformers
    """Compute the output; the encoder is run first where it is given a mask that the cross-attention is not."""
    inputs: dict[str, Any] = dict(encoded)
    if _OF_ENCODER in inputs:
        encoder, of_encoder = encoder_of(checkpoint, inputs)
        inputs = {name: value for name, value in inputs.items() if name not in ("input_ids", _OF_ENCODER)}
        inputs["encoder_outputs"] = encoder(**of_encoder)
    return checkpoint.model(**inputs, **plain(checkpoint))


def encoder_of(checkpoint: Checkpoint, inputs: Mapping[str, Tensor]) -> tuple[nn.Module, dict[str, Tensor]]:
    """The encoder of an encoder-decoder, and what it is called with out of the inputs of the whole."""
    mask = inputs.get(_OF_ENCODER, inputs["attention_mask"])
    encoder: nn.Module = checkpoint.model.get_encoder()  # type: ignore[operator]
    return encoder, {"input_ids": inputs["input_ids"], "attention_mask": mask}


def with_mask(checkpoint: Checkpoint, encoding: Tokenized, allowed: Tensor, where: Where = "self") -> Tokenized:
    """The same input with a mask for every attention of a kind, in place of the model's own.

    ``transformers`` adds it to the scores, so it is given as numbers: a boolean mask would add 0 and 1.

    Args:
        checkpoint: the model.
        encoding: the input.
        allowed: (1 or H, Tq, Tk), or (B, 1 or H, Tq, Tk), bool, True = may attend.
        where: of an encoder-decoder, which of its attentions; any other model has self-attention alone.
    """
    added = added_mask(checkpoint, allowed)
    if checkpoint.part != "encoder-decoder":
        return replace(encoding, inputs={**encoding.inputs, "attention_mask": added})
    is_new = where == "cross" and _OF_ENCODER not in encoding.inputs
    of_encoder = {_OF_ENCODER: encoding.inputs["attention_mask"]} if is_new else {}
    return replace(encoding, inputs={**encoding.inputs, **of_encoder, _ARGUMENTS[where]: added})


def added_mask(checkpoint: Checkpoint, allowed: Tensor) -> Tensor:
    """A mask as numbers that are added to the scores, with all four axes."""
    dtype = next(checkpoint.model.parameters()).dtype
    whole = with_leading_axes(allowed)
    added = torch.zeros(whole.shape, dtype=dtype).masked_fill(~whole, torch.finfo(dtype).min)
    return added.to(checkpoint.device)


@contextmanager
def in_place_of_errors(checkpoint: Checkpoint, refusal: str) -> Iterator[None]:
    """Say one sentence in place of whatever a model's own code raises.

    Args:
        checkpoint: the model.
        refusal: the sentence, such as that it takes no mask; "" says what else it reads, or what PyTorch says.

    Raises:
        ValueError: with the sentence.
        TraceError: an edit does not fit, which is no matter of the model's code.
    """
    try:
        yield
    except (RuntimeError, LookupError, AssertionError, AttributeError, TypeError, ValueError) as error:
        if isinstance(error, TraceError):
            raise
        if refusal:
            raise ValueError(refusal) from error
        if isinstance(error, ValueError):
            raise
        name = checkpoint.name
        if others := _reads_beside_text(checkpoint.model):
            said = f"{name} reads {' and '.join(others)} beside text: text alone is not enough."
            raise ValueError(said) from error
        _logger.exception("the code of %s failed", name)
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"The code of {name} fails on this text: {reason}") from error


def _reads_beside_text(model: nn.Module) -> list[str]:
    """Everything that a model reads beside text, such as images."""
    read = getattr(model, "input_modalities", "text")
    kinds = [read] if isinstance(read, str) else read
    return ["images" if kind == "image" else kind for kind in kinds if kind != "text"]


def memory_of_run(checkpoint: Checkpoint, encoding: Tokenized, keep: Keep) -> int:
    """The bytes that the trace of a pass takes, known from one plain pass, of the encoder without its mask."""
    inputs = dict(encoding.inputs)
    if inputs.pop(_OF_ENCODER, None) is not None:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    with checkpoint.lock:
        return memory(checkpoint.model, keep=keep, **{**inputs, **plain(checkpoint)})


def plain(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing is kept for a next pass."""
    return {"use_cache": False} if checkpoint.part != "encoder" else {}
