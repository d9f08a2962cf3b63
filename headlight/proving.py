"""Assertions for a test suite: no token sees a later one, and padding changes nothing.

Both are measured in two ways. Derivatives: random directions of the outputs are pulled back to the embeddings of
the tokens. Where a mask blocks every way, the derivative is not about zero but exactly zero, because the weight of
a blocked key is; any other derivative gives zero for a random direction with probability zero. And changes: other
tokens are put in their place, which also finds what no derivative shows, such as a choice of the k largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headlight.influence import differentiated, first_stage, pulled_back, stage_in_words
from headlight.inputs import padding_of
from headlight.passes import Pass, StageOutput, Subject, run_pass

_MOST_PLACES = 256
"""Above so many tokens the places between them are sampled."""
_SAMPLED = 64
_MOST_CHANGES = 4
_TOKENS = ("input_ids", "inputs_embeds", "src", "x")


@dataclass(frozen=True)
class Proof:
    """What was shown.

    Attributes:
        sentence: what holds, and how it was measured.
        is_sampled: whether only some of the places between tokens were measured.
    """

    sentence: str
    is_sampled: bool

    def __str__(self) -> str:
        return self.sentence


def assert_causal(
    model: nn.Module,
    *args: Any,  # noqa: ANN401 - what any model is called with
    of: str | None = None,
    output: Callable[[Any], Tensor] | None = None,
    batch_first: bool = True,
    **kwargs: Any,  # noqa: ANN401
) -> Proof:
    """No row of a model's output depends on a later token.

    Measured at every place between two tokens, by the derivative of all rows before it by all tokens after it;
    above 256 tokens at 64 places, which the proof says. Rows of padding, which an ``attention_mask`` names, do not
    count.

    Args:
        model: any module.
        args: what it is called with; the first one holds the tokens, (B, T) ids or (B, T, D) vectors.
        of: the name of the argument that holds them where it is another one, such as ``decoder_input_ids``.
        output: takes the tensor to be judged from what the model returns, (B, T, ...); None takes the first of the
            right length.
        batch_first: whether tokens, modules and output have the batch first; False for (T, B, D).
        kwargs: what the model is called with by name.

    Returns:
        what was shown.

    Raises:
        AssertionError: some row depends on a later token; the message names the first stage that lets it in.
        ValueError: there are no tokens to be found, or fewer than two.
    """
    subject = _subject(model, args, kwargs, of, output, batch_first)
    if subject.n_tokens < 2:
        raise ValueError(f"there is {subject.n_tokens} token: there must be at least 2 for one to come later")
    counts = ~_padding(subject)
    places = _places(subject.n_tokens)
    by_derivative = differentiated(subject)
    changed_at = places if by_derivative is None else places[:: max(1, len(places) // _MOST_CHANGES)]
    if by_derivative is not None:
        for place in places:
            is_later = torch.arange(subject.n_tokens) > place
            _assert_nothing_pulled_back(
                subject, by_derivative, counts & ~is_later, is_later.expand_as(counts), _later
            )
    for place in changed_at:
        is_later = torch.arange(subject.n_tokens) > place
        _assert_nothing_changed(subject, counts & ~is_later, is_later.expand_as(counts), _later)
    is_sampled = len(places) < subject.n_tokens - 1
    how = _how(by_derivative, f"{len(places)} of {subject.n_tokens - 1}" if is_sampled else "all")
    return Proof(f"No row of the output depends on a later token: {how}.", is_sampled)


def assert_padding_ignored(
    model: nn.Module,
    *args: Any,  # noqa: ANN401
    padding: Tensor | None = None,
    alone: bool = False,
    of: str | None = None,
    output: Callable[[Any], Tensor] | None = None,
    **kwargs: Any,  # noqa: ANN401
) -> Proof:
    """What stands in the padding changes no output of a real token, on whichever side the padding is.

    Args:
        model: any module.
        args: what it is called with; the first one holds the tokens, (B, T) ids or (B, T, D) vectors.
        padding: (B, T) bool, True = padding, where no ``attention_mask`` or ``src_key_padding_mask`` among the
            inputs says it; it is not passed to the model.
        alone: whether each sequence must also give the same without its padding, to 1e-4 of the largest output: it
            does not where positions count the padding.
        of: the name of the argument that holds the tokens where it is another one.
        output: takes the tensor to be judged from what the model returns.
        kwargs: what the model is called with by name.

    Returns:
        what was shown.

    Raises:
        AssertionError: some output of a real token depends on padding; the message names the first stage that does.
        ValueError: nothing says where padding is, or there is none.
    """
    subject = _subject(model, args, kwargs, of, output, batch_first=True)
    is_padding = _padding(subject, padding)
    if not bool(is_padding.any()):
        raise ValueError("there is no padding: give an attention_mask with zeros, or padding= with True at padding")
    by_derivative = differentiated(subject)
    if by_derivative is not None:
        _assert_nothing_pulled_back(subject, by_derivative, ~is_padding, is_padding, _padded)
    _assert_nothing_changed(subject, ~is_padding, is_padding, _padded)
    if alone:
        _assert_the_same_alone(subject, is_padding)
    also = ", and each sequence gives the same without it" if alone else ""
    how = _how(by_derivative, "all")
    return Proof(f"No output of a real token depends on what stands in the padding{also}: {how}.", is_sampled=False)


def _subject(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    of: str | None,
    output: Callable[[Any], Tensor] | None,
    batch_first: bool,
) -> Subject:
    names = [of] if of is not None else [name for name in _TOKENS if name in kwargs]
    place: int | str | None = 0 if args and of is None else next((name for name in names if name in kwargs), None)
    if place is None:
        raise ValueError(f"there are no tokens: give them first, or name them by of=, one of: {', '.join(kwargs)}")
    subject = Subject(model, args, kwargs, place, 1 if batch_first else 0, output)
    if not isinstance(subject.tokens, Tensor) or subject.tokens.dim() < 2:
        raise ValueError("the tokens must be a tensor, (B, T) ids or (B, T, D) vectors")
    return subject


def _padding(subject: Subject, padding: Tensor | None = None) -> Tensor:
    """(B, T) bool, True = padding."""
    known = padding_of(subject.kwargs, padding)
    is_decoder = isinstance(subject.place, str) and subject.place.startswith("decoder")
    found = known.decoder if is_decoder else known.encoder
    shape = (subject.n_sequences, subject.n_tokens)
    return torch.zeros(shape, dtype=torch.bool) if found is None or found.shape != shape else found.cpu()


def _places(n_tokens: int) -> list[int]:
    """The tokens after which the sequence is cut in two."""
    if n_tokens - 1 <= _MOST_PLACES:
        return list(range(n_tokens - 1))
    return [round(place * (n_tokens - 2) / (_SAMPLED - 1)) for place in range(_SAMPLED)]


def _how(by_derivative: Pass | None, places: str) -> str:
    if by_derivative is None:
        return f"measured by changing tokens, at {places} places, as the output has no derivative by them"
    return f"every derivative is exactly zero, measured at {places} places, and changed tokens change nothing"


_Said = Callable[[int, int, str], str]
"""Row, token and sequence -> how the one depends on the other."""


def _later(row: int, token: int, sequence: str) -> str:
    return f"row {row} of the output{sequence} depends on token {token}, which comes later"


def _padded(row: int, token: int, sequence: str) -> str:
    return f"row {row} of the output{sequence} depends on token {token}, which is padding"


def _assert_nothing_pulled_back(
    subject: Subject, found: Pass, rows: Tensor, forbidden: Tensor, said: _Said
) -> None:
    influence = pulled_back(found.output_stage(subject), rows, found, subject)
    if bool(influence.isnan().any()):
        raise AssertionError(
            f"the derivative of the output is NaN{_first_nan(found)}: a query is left without a key"
        )
    leaks = forbidden & (influence != 0)
    if not bool(leaks.any()):
        return
    item, token = leaks.nonzero()[0].tolist()
    for row in rows[item].nonzero().flatten().tolist():
        only = torch.zeros_like(rows)
        only[item, row] = True
        if bool(pulled_back(found.output_stage(subject), only, found, subject)[item, token] != 0):
            break
    first = first_stage(found, rows, forbidden, subject)
    _fail(subject, said(row, token, _sequence(item, rows)), first)


def _first_nan(found: Pass) -> str:
    for stage in found.stages:
        if bool(stage.value.isnan().any()):
            return f", and so is what {stage.module or 'the model'} comes to"
    return ""


# By changes.


def _assert_nothing_changed(subject: Subject, rows: Tensor, forbidden: Tensor, said: _Said) -> None:
    before = run_pass(subject, subject.tokens, differentiable=False)
    after = run_pass(subject, _changed(subject, forbidden, before.n_ids), differentiable=False)
    differs = _rows_that_differ(before.output_stage(subject), after.output, rows)
    if not bool(differs.any()):
        return
    item, row = differs.nonzero()[0].tolist()
    first = None
    for old, new in zip(before.stages, after.stages, strict=False):
        if old.value.shape == new.value.shape and bool(_rows_that_differ(old, new.value, rows).any()):
            first = old
            break
    token = int(forbidden[item].int().argmax())
    _fail(subject, said(row, token, _sequence(item, rows)), first)


def _changed(subject: Subject, where: Tensor, n_ids: int | None) -> Tensor:
    """Other tokens at the marked places, (B, T) bool."""
    tokens = subject.tokens
    marked = (where if subject.token_axis == 1 else where.T).to(tokens.device)
    if tokens.is_floating_point():
        noise = torch.randn(tokens.shape, generator=torch.Generator().manual_seed(2)).to(tokens)
        return torch.where(marked.reshape(*marked.shape, *(1,) * (tokens.dim() - 2)), tokens + noise, tokens)
    size = int(tokens.max()) + 1 if n_ids is None else n_ids
    return torch.where(marked, (tokens + max(1, size // 2)) % max(2, size), tokens)


def _rows_that_differ(one: StageOutput, other: Tensor, rows: Tensor) -> Tensor:
    """Which of some rows, (B, T) bool, differ by more than rounding."""
    axis = one.axis % other.dim()
    of_batch = 1 if axis == 0 else 0
    value = one.value.detach()
    largest = float(value.abs().nan_to_num(0.0, 0.0, 0.0).amax()) if value.numel() else 0.0
    cells = (value - other.detach()).abs() > 256 * torch.finfo(value.dtype).eps * max(largest, 1e-6)
    differs = cells.movedim((of_batch, axis), (0, 1)).flatten(2).any(-1)
    return (differs if len(differs) == len(rows) else differs.any(0).expand(len(rows), -1)).cpu() & rows


def _assert_the_same_alone(subject: Subject, is_padding: Tensor) -> None:
    """Each sequence gives the same without its padding."""
    whole = run_pass(subject, subject.tokens, differentiable=False).output
    for item, of_item in enumerate(is_padding):
        real = (~of_item).nonzero().flatten()
        shorter = subject.part(item, real)
        alone = run_pass(shorter, shorter.tokens, differentiable=False).output[0]
        expected = whole[item, real.to(whole.device)]
        gap = (alone - expected).abs().flatten(1).amax(-1)
        differs = gap > 1e-4 * float(expected.abs().amax())
        if bool(differs.any()):
            row = int(real[int(differs.int().argmax())])
            raise AssertionError(
                f"row {row} of the output, sequence {item}, is another one without the {int(of_item.sum())} tokens "
                "of padding: positions count the padding, or something else looks at how much there is"
            )


# The sentence.


def _fail(subject: Subject, what: str, stage: StageOutput | None) -> None:
    """Raise the sentence that names the first stage."""
    raise AssertionError(f"{what}. {stage_in_words(stage, subject, causal=what.endswith('later'))}")


def _sequence(item: int, rows: Tensor) -> str:
    return f", sequence {item}," if len(rows) > 1 else ""
