"""The inputs of a model, and all that they say about its tokens: their number, padding and documents."""

from __future__ import annotations

import inspect
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

_TOKENS = ("input_ids", "inputs_embeds", "src", "x", "query", "input", "pixel_values", "input_features")
_ONE_IS_REAL = ("attention_mask", "decoder_attention_mask", "encoder_attention_mask")
_TRUE_IS_PADDING = ("src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask", "key_padding_mask")
_OF_OWN = ("attention_mask", "src_key_padding_mask", "key_padding_mask")
_OF_DECODER = ("decoder_attention_mask", "tgt_key_padding_mask")
_OF_SOURCE = ("encoder_attention_mask", "memory_key_padding_mask")


@dataclass(frozen=True, eq=False)
class Padding:
    """The padding of a batch, and the document of each of its tokens, as far as the inputs tell.

    Attributes:
        encoder: (B, T) bool, True = padding, of the only sequence or of the encoder's; None if unknown.
        decoder: the same of the decoder's; None if unknown.
        source: the same of what a cross-attention reads, where that is said apart from the encoder's.
        documents: (B, T), the number of each token's document, where positions that restart tell; None if unknown.
    """

    encoder: Tensor | None = None
    decoder: Tensor | None = None
    source: Tensor | None = None
    documents: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a model, as far as they concern masks.

    Attributes:
        model: the name of its class; "" if unknown.
        named: ids, masks and positions by the names of the arguments.
        tokens: the shape of the first input that can hold tokens, (B, T) or (B, T, D), with 1 for B where there
            is no axis for sequences; () if there is none.
        may_be_alone: whether they are numbers with two axes: (B, T), or (T, D) of one sequence.
    """

    model: str = ""
    named: Mapping[str, Tensor] = field(default_factory=dict)
    tokens: tuple[int, ...] = ()
    may_be_alone: bool = False

    def beside(self, lengths: Container[int]) -> Inputs:
        """The same once it is known over how many tokens the attentions go."""
        n_rows, n_columns = self.tokens[:2] if self.may_be_alone else (0, 0)
        is_alone = n_rows in lengths and n_columns not in lengths
        return replace(self, tokens=(1, *self.tokens), may_be_alone=False) if is_alone else self

    @property
    def padding(self) -> Padding:
        """The padding and the documents that they tell."""
        return padding_of(self.named)


def inputs_of(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Inputs:
    """The inputs of one call of a model."""
    named = arguments_of(model, args, kwargs)
    tokens = tokens_of(args, kwargs)
    arguments = {
        name: value.detach().clone()
        for name, value in named.items()
        if isinstance(value, Tensor) and 0 < value.dim() <= 4 and _is_about_tokens(name, value)
    }
    if tokens is None:
        return Inputs(type(model).__name__, arguments)
    shape = tuple(tokens.shape) if tokens.dim() > 1 else (1, *tokens.shape)
    return Inputs(type(model).__name__, arguments, shape, tokens.dim() == 2 and tokens.is_floating_point())


def _is_about_tokens(name: str, value: Tensor) -> bool:
    """True for ids, positions or a mask, and not for activations."""
    return not value.is_floating_point() or name in (*_ONE_IS_REAL, *_TRUE_IS_PADDING)


def unpacked(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments of a call; those of one mapping, as in ``model(batch)``, by their names."""
    is_batch = len(args) == 1 and not kwargs and isinstance(args[0], Mapping)
    return ((), args[0]) if is_batch else (args, kwargs)


def arguments_of(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name; those without one by their number."""
    args, kwargs = unpacked(args, kwargs)
    try:
        bound = inspect.signature(model.forward).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):
        return {**{str(i): value for i, value in enumerate(args)}, **kwargs}
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            found |= {str(i): part for i, part in enumerate(value)}
        else:
            found[name] = value
    return found


def tokens_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    """The first input that can hold tokens, (B, T) or (B, T, D); else ids of one sequence, (T,)."""
    args, kwargs = unpacked(args, kwargs)
    named = [kwargs[name] for name in _TOKENS if name in kwargs]
    tensors = [value for value in (*args, *named, *kwargs.values()) if isinstance(value, Tensor)]
    ids = (value for value in tensors if value.dim() == 1 and value.dtype in (torch.int32, torch.int64))
    return next((value for value in tensors if value.dim() >= 2), next(ids, None))


def padding_of(named: Mapping[str, Any], padding: Tensor | None = None) -> Padding:
    """The padding that the inputs name, in the conventions of their names.

    Args:
        named: what the model is called with by name.
        padding: (B, T) or (T,), True = padding; where given, it is believed in place of the inputs.

    Raises:
        ValueError: ``padding`` is not boolean with one or two axes.
    """
    if padding is not None:
        given = torch.as_tensor(padding)
        if given.dtype is not torch.bool or given.dim() not in (1, 2):
            raise ValueError(
                f"padding is {given.dtype} {tuple(given.shape)}: it must be boolean, (B, T), True = padding"
            )
        given = _of_sequences(given)
        return Padding(given, documents=_documents(named.get("position_ids"), given))
    found = {
        name: _is_padding(value, true_is_padding=name in _TRUE_IS_PADDING)
        for name in (*_ONE_IS_REAL, *_TRUE_IS_PADDING)
        if isinstance(value := named.get(name), Tensor) and value.dim() in (1, 2)
    }
    own, decoder, source = (
        next((found[name] for name in names if name in found), None) for names in (_OF_OWN, _OF_DECODER, _OF_SOURCE)
    )
    return Padding(own, decoder, source, _documents(named.get("position_ids"), own))


def _is_padding(mask: Tensor, *, true_is_padding: bool) -> Tensor:
    """(B, T), of one that is boolean, of ones and zeros, or added to scores: then no number of it is above zero."""
    mask = _of_sequences(mask)
    if mask.dtype is torch.bool:
        return mask if true_is_padding else ~mask
    is_added = true_is_padding or (mask.is_floating_point() and not bool((mask > 0).any()))
    return mask < 0 if is_added else mask == 0


def _documents(positions: object, is_padding: Tensor | None) -> Tensor | None:
    """(B, T), the number of each token's document: one begins where positions go back to the first one's."""
    if not isinstance(positions, Tensor) or positions.dim() not in (1, 2) or positions.is_floating_point():
        return None
    positions = _of_sequences(positions)
    is_real = torch.ones_like(positions, dtype=torch.bool)
    if is_padding is not None and is_padding.shape == positions.shape:
        is_real = ~is_padding.to(positions.device)
    documents = torch.zeros_like(positions)
    for item, row in enumerate(positions):
        places = is_real[item].nonzero().flatten()
        of_tokens = row[places]
        begins = (of_tokens[1:] < of_tokens[:-1]) & (of_tokens[1:] == of_tokens[:1])
        documents[item, places[1:]] = begins.cumsum(0)
    return documents if bool(documents.any()) else None


def _of_sequences(of_tokens: Tensor) -> Tensor:
    """(B, T), of that or of (T,)."""
    return of_tokens if of_tokens.dim() == 2 else of_tokens[None]
