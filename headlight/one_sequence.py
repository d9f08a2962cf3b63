"""One sequence of a batch without its padding, in every input of the model that has an axis for them."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from headlight.passes import Subject

OF_TARGET = ("decoder", "dec_", "tgt", "trg")
"""The names of inputs of a decoder beside which an encoder has its own begin so."""

_OF_SCORES = ("mask", "bias")
"""A part of the names of inputs that are added to scores; of others the last axis may be a width."""


def of_one_sequence(subject: Subject, item: int, real: Tensor) -> Subject:
    """A model with one sequence of its batch as the only one.

    Args:
        subject: the model with the batch.
        item: the sequence.
        real: which of its tokens are kept, by their places.
    """

    def cut(name: str, value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        batch = _batch_axis(subject, value)
        one = value
        if batch is not None:
            n_each = value.shape[batch] // subject.n_sequences
            one = value.narrow(batch, item * n_each, n_each)
        for axis in _token_axes(subject, name, value, batch):
            one = one.index_select(axis, real.to(value.device))
        return one

    args = tuple(cut(name, value) for name, value in zip(subject.arguments, subject.args, strict=False))
    return replace(subject, args=args, kwargs={name: cut(name, value) for name, value in subject.kwargs.items()})


def _batch_axis(subject: Subject, value: Tensor) -> int | None:
    """The axis of the sequences in an input; of a mask (B*H, Tq, Tk) the first one."""
    if subject.is_alone:
        return None
    axes = (1 - subject.token_axis, 0)[-value.dim() :] if value.dim() else ()
    found = next((axis for axis in axes if value.shape[axis] == subject.n_sequences), None)
    if found is None and value.dim() == 3 and subject.n_tokens in value.shape[1:]:
        return 0 if len(value) % subject.n_sequences == 0 else None
    return found


def _token_axes(subject: Subject, name: str, value: Tensor, batch: int | None) -> list[int]:
    """The axes of an input that run over the tokens: those that are as long."""
    axes = [axis for axis, size in enumerate(value.shape) if size == subject.n_tokens and axis != batch]
    last = value.dim() - 1
    if name.startswith("memory_mask"):  # (tokens that read, tokens of the memory)
        reads = "memory" in subject.arguments or subject.name.startswith(OF_TARGET)
        return [axis for axis in axes if (axis != last) is reads]
    if _side(subject, name) != _side(subject, subject.name):
        return []
    may_have_width = value.is_floating_point() and value.dim() == 3 - subject.is_alone
    has_width = may_have_width and not any(word in name for word in _OF_SCORES)
    return axes if not has_width else [axis for axis in axes if axis != last]


def _side(subject: Subject, name: str) -> str:
    """The side of an encoder-decoder that an input is of, by its name; a memory of its own is the source's."""
    if name.startswith(OF_TARGET):
        return "target"
    reads_memory = "memory" in subject.arguments and name.startswith("memory")
    return "memory" if reads_memory or name.startswith("encoder_") else "source"
