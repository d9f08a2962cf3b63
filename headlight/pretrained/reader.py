"""A checkpoint that reads on, token by token: anew each time, or with the key/value cache of ``transformers``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.tokenized import Tokenized
from headlight.pretrained.watched_pass import added_mask, in_place_of_errors
from headlight.trace import Trace
from headlight.watching import watch


@dataclass(frozen=True, eq=False)
class Reading:
    """One pass over the tokens so far.

    Attributes:
        trace: its attentions, with queries, keys and values.
        logits: (V,), of the token that comes next.
        n_new: how many tokens it read; the keys and values of the others were kept.
        n_all: how many there are.
    """

    trace: Trace
    logits: Tensor
    n_new: int
    n_all: int


class Reader:
    """Reads the tokens so far.

    Args:
        checkpoint: a decoder, or an encoder-decoder, which reads at its target.
        encoding: its input; the source counts, where it has an encoder.
        cached: whether keys and values are kept from one reading to the next.
        allowed: (..., L, L) bool, True = may attend, with L at least the most tokens read: a mask in place of the
            model's own for the self-attention that reads them.

    Raises:
        ValueError: the checkpoint writes nothing.
    """

    def __init__(
        self, checkpoint: Checkpoint, encoding: Tokenized, *, cached: bool = False, allowed: Tensor | None = None
    ) -> None:
        if not checkpoint.model.can_generate():  # type: ignore[operator]
            raise ValueError(f"{checkpoint.name} has no layer that gives a probability to a next token.")
        self._checkpoint, self._encoding, self._cached, self._allowed = checkpoint, encoding, cached, allowed
        self._kept: tuple[tuple[int, ...], Any] = ((), None)  # the tokens read, and the cache that holds them

    @property
    def _has_source(self) -> bool:
        return self._checkpoint.part == "encoder-decoder"

    @cached_property
    def _encoded(self) -> Mapping[str, Any]:
        """The encoder's output, computed once."""
        if not self._has_source:
            return {}
        inputs = self._encoding.inputs
        source = {name: inputs[name] for name in ("input_ids", "attention_mask") if name in inputs}
        encoded = self._checkpoint.model.get_encoder()(**source)  # type: ignore[operator]
        return {"encoder_outputs": encoded, "attention_mask": source.get("attention_mask")}

    @property
    def _takes_no_mask(self) -> str:
        """The sentence on a model whose own code fails under another mask; "" where it has its own."""
        beside = " beside its cache" if self._cached else ""
        return "" if self._allowed is None else f"The code of {self._checkpoint.name} takes no other mask{beside}."

    def __call__(self, tokens: Sequence[int]) -> Reading:
        """Read the tokens: all of them, or with a cache those that it does not hold.

        Raises:
            ValueError: the code of the model cannot be given the mask, or keeps no cache.
        """
        model, (read, cache) = self._checkpoint.model, self._kept
        if read != tuple(tokens[: len(read)]) or len(read) == len(tokens):
            read, cache = (), None
        ids, of_cache = ("decoder_input_ids" if self._has_source else "input_ids"), _name_of_cache(model)
        inputs: dict[str, Any] = {ids: torch.tensor([tokens[len(read) :]], device=self._checkpoint.device)}
        if self._allowed is not None:
            rows = self._allowed[..., len(read) : len(tokens), : len(tokens)]
            name = "decoder_attention_mask" if self._has_source else "attention_mask"
            inputs[name] = added_mask(self._checkpoint, rows)
        cached = {of_cache: cache} if self._cached else {}
        no_cache = f"The code of {self._checkpoint.name} keeps no key/value cache to read on with."
        said = in_place_of_errors(self._checkpoint, self._takes_no_mask or (no_cache if read else ""))
        with self._checkpoint.lock, torch.no_grad():
            encoded = self._encoded
            with said, watch(model, keep="attentions", to="cpu") as trace:
                output = model(**inputs, **cached, **encoded, use_cache=self._cached)
        if self._allowed is not None and any(_sees_blocked(attention, rows) for attention in trace):
            raise ValueError(self._takes_no_mask)
        if self._cached:
            if getattr(output, of_cache, None) is None or not output.logits.shape[1]:
                raise ValueError(no_cache)
            self._kept = tuple(tokens), getattr(output, of_cache)
        return Reading(trace, output.logits[0, -1].float().cpu(), len(tokens) - len(read), len(tokens))


def _sees_blocked(attention: Attention, allowed: Tensor) -> bool:
    """True if an attention over the tokens read gives weight where a mask, (..., Tq, Tk), blocks."""
    weights = attention.weights
    if weights is None or attention.is_cross or weights.shape[-2:] != allowed.shape[-2:]:
        return False
    return bool((weights * ~allowed).any())


def _name_of_cache(model: torch.nn.Module) -> str:
    """The name by which a model takes and gives its cache: ``transformers`` 5.24 has another than before."""
    return "cache" if "cache" in signature(model.forward).parameters else "past_key_values"


def end_of(checkpoint: Checkpoint) -> int | None:
    """The id that ends what a model writes; None where it has none."""
    generation = getattr(checkpoint.model, "generation_config", None)
    for source in (checkpoint.tokenizer, generation, checkpoint.config):
        end = getattr(source, "eos_token_id", None)
        if end is not None:
            return int(end[0] if isinstance(end, list) else end)
    return None
