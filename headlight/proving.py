"""Assertions for a test suite: no token sees a later one, padding changes nothing, sequences do not mix.

Both are measured in two ways. Derivatives: random directions of the outputs are pulled back to the embeddings of
the tokens. Where a mask blocks every way, the derivative is not about zero but exactly zero, because the weight of
a blocked key is; any other derivative gives zero for a random direction with probability zero. And changes: other
tokens are put in their place, which also finds what no derivative shows, such as a choice of the k largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from headlight.influence import (
    all_rows,
    differentiated,
    first_nan,
    first_stage,
    pulled_back,
    sampled,
    stage_in_words,
)
from headlight.inputs import arguments_of, padding_of, unpacked
from headlight.one_sequence import OF_TARGET, of_one_sequence
from headlight.passes import Pass, StageOutput, Subject, run_pass, tensors_in
from headlight.trace import Trace
from headlight.watching import watch

_MOST_PLACES = 256
"""Above so many tokens the places between them are sampled."""
_SAMPLED = 64
_MOST_CHANGES = 4
_TOKENS = ("input_ids", "inputs_embeds", "src", "x", "inputs", "hidden_states", "decoder_input_ids")
_DECODERS = ("decoder_i", "decoder_tok", "dec_", "tgt", "trg")
_MOST_SEQUENCES = 8
_TINY = 1e-6
"""A derivative that is smaller beside the largest may be what rounding leaves of terms that cancel."""

_MOST_ROUNDING = 0.02
"""In types of few digits, such as bfloat16, no more than this counts as rounding: all would else be."""


@dataclass(frozen=True)
class Proof:
    """The result of a proof.

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
        args: what it is called with; the tokens are the first one, (B, T) ids or (B, T, D) vectors, or (T,) or
            (T, D) without an axis for sequences; or those of a decoder, such as ``tgt`` or ``decoder_input_ids``.
        of: the name of the argument that holds them where it is another one.
        output: takes the tensor to be judged from what the model returns, (B, T, ...); None takes the first of the
            right length.
        batch_first: whether tokens, modules and output have the batch first; False for (T, B, D).
        kwargs: what the model is called with by name.

    Returns:
        what was shown.

    Raises:
        AssertionError: some row depends on a later token; the message names the first stage that lets it in.
        ValueError: there are no tokens to be found, or fewer than two, or the model attends along the sequences.
    """
    of = _of_decoder(arguments_of(model, args, kwargs)) if of is None else of
    subject = _subject(model, args, kwargs, of, output, batch_first)
    if subject.n_tokens < 2:
        raise ValueError(f"there is {subject.n_tokens} token: there must be at least 2 for one to come later")
    _refuse_other_axis(subject)
    counts = ~_padding(subject)
    places = _places(subject.n_tokens)
    by_derivative = differentiated(subject)
    changed_at = places if by_derivative is None else places[:: max(1, len(places) // _MOST_CHANGES)]
    before = run_pass(subject, subject.tokens, differentiable=False)
    for place in places:
        is_later = torch.arange(subject.n_tokens) > place
        claim = _Claim(subject, counts & ~is_later, counts & ~is_later, is_later.expand_as(counts), _later)
        if by_derivative is not None:
            _assert_nothing_pulled_back(claim, by_derivative)
        if place in changed_at:
            _assert_nothing_changed(claim, before, [place])
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
    batch_first: bool = True,
    **kwargs: Any,  # noqa: ANN401
) -> Proof:
    """Assert that the content of the padding changes no output of a real token, on whichever side the padding is.

    Args:
        model: any module.
        args: what it is called with; the first one holds the tokens, (B, T) ids or (B, T, D) vectors.
        padding: (B, T) bool, True = padding, where no ``attention_mask`` or ``src_key_padding_mask`` among the
            inputs says it; it is not passed to the model.
        alone: whether each sequence must also give the same without its padding, to 1e-4 of the largest output: it
            does not where positions count the padding.
        of: the name of the argument that holds the tokens where it is another one.
        output: takes the tensor to be judged from what the model returns.
        batch_first: whether tokens, modules and output have the batch first; False for (T, B, D).
        kwargs: what the model is called with by name.

    Returns:
        what was shown.

    Raises:
        AssertionError: some output of a real token depends on padding; the message names the first stage that does.
        ValueError: nothing says where padding is, or there is none.
    """
    subject = replace(_subject(model, args, kwargs, of, output, batch_first), needs_rows=False)
    is_padding = _padding(subject, padding)
    if not bool(is_padding.any()):
        raise ValueError("there is no padding: give an attention_mask with zeros, or padding= with True at padding")
    by_derivative = differentiated(subject)
    before = run_pass(subject, subject.tokens, differentiable=False)
    rows = all_rows(subject, before.output)
    if rows.shape == is_padding.shape and not _is_source(subject):
        rows &= ~is_padding
    claim = _Claim(subject, rows, ~is_padding, is_padding, _padded)
    if by_derivative is not None:
        _assert_nothing_pulled_back(claim, by_derivative)
    _assert_nothing_changed(claim, before)
    if alone:
        _assert_the_same_alone(subject, is_padding)
    also = ", and each sequence gives the same without it" if alone else ""
    how = _how(by_derivative, "all")
    return Proof(f"No output of a real token depends on what stands in the padding{also}: {how}.", is_sampled=False)


def assert_sequences_do_not_mix(
    model: nn.Module,
    *args: Any,  # noqa: ANN401
    of: str | None = None,
    output: Callable[[Any], Tensor] | None = None,
    batch_first: bool = True,
    **kwargs: Any,  # noqa: ANN401
) -> Proof:
    """No output of a sequence depends on another sequence of its batch.

    Args:
        model: any module.
        args: what it is called with; the first one holds the tokens, (B, T) ids or (B, T, D) vectors.
        of: the name of the argument that holds the tokens where it is another one.
        output: takes the tensor to be judged from what the model returns.
        batch_first: whether tokens, modules and output have the batch first; False for (T, B, D).
        kwargs: what the model is called with by name.

    Returns:
        what was shown; of more than 8 sequences, 8 are measured against the others.

    Raises:
        AssertionError: some output depends on another sequence; the message names the first stage that does.
        ValueError: there are no tokens to be found, or there is one sequence.
    """
    subject = replace(_subject(model, args, kwargs, of, output, batch_first), needs_rows=False)
    n_sequences = subject.n_sequences
    if n_sequences < 2:
        raise ValueError(f"there is {n_sequences} sequence: there must be at least 2 to mix")
    by_derivative = differentiated(subject)
    before = run_pass(subject, subject.tokens, differentiable=False)
    measured = range(n_sequences)[:_MOST_SEQUENCES]
    for item in measured:
        is_own = (torch.arange(n_sequences) == item)[:, None]
        of_tokens = is_own.expand(-1, subject.n_tokens)
        claim = _Claim(subject, is_own & all_rows(subject, before.output), of_tokens, ~of_tokens, _mixed)
        if by_derivative is not None:
            _assert_nothing_pulled_back(claim, by_derivative)
        _assert_nothing_changed(claim, before)
    is_sampled = len(measured) < n_sequences
    how = _how(by_derivative, f"{len(measured)} of {n_sequences}" if is_sampled else "all", "sequences")
    return Proof(f"No output of a sequence depends on another sequence of the batch: {how}.", is_sampled)


def _subject(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    of: str | None,
    output: Callable[[Any], Tensor] | None,
    batch_first: bool,
) -> Subject:
    names = list(arguments_of(model, args, kwargs))
    inputs, by_name = unpacked(args, kwargs)
    place: int | str | None = 0 if inputs else next((name for name in _TOKENS if name in by_name), None)
    if of is not None:
        place = of if of in by_name else names.index(of) if of in names else None
    if place is None:
        raise ValueError(f"there are no tokens: give them first, or name them by of=, one of: {', '.join(names)}")
    batch = None if by_name is kwargs else args[0]
    subject = Subject(model, tuple(inputs), by_name, place, 1 if batch_first else 0, output, batch)
    tokens = subject.tokens
    if not isinstance(tokens, Tensor) or not tokens.dim() or not tokens.numel():
        raise ValueError("the tokens must be a tensor that is not empty, (B, T) ids or (B, T, D) vectors")
    return replace(subject, is_alone=True, token_axis=1) if _is_alone(subject) else subject


def _is_alone(subject: Subject) -> bool:
    """True for (T,) ids, and for (T, D) vectors: the attentions of the model go along their first axis alone.

    Raises:
        ValueError: the two axes of vectors, or of a batch of numbers, are equally long.
    """
    tokens = subject.tokens
    if tokens.dim() != 2 or not tokens.is_floating_point():
        return tokens.dim() == 1
    if len(tokens) == tokens.shape[1]:
        raise ValueError(
            f"the tokens are {len(tokens)} by {len(tokens)} numbers: (T, D) and (B, T) cannot be told apart"
        )
    return len(_shapes(subject, tokens).inputs.tokens) == 3


def _shapes(subject: Subject, tokens: Tensor) -> Trace:
    """The attentions of a pass, without their numbers."""
    with torch.random.fork_rng(), torch.no_grad(), watch(subject.model, keep="shapes") as trace:
        subject.call(tokens.clone())
    return trace


def _refuse_other_axis(subject: Subject) -> None:
    """Refuse tokens that are the wrong way round: what is later would be judged along the sequences.

    Raises:
        ValueError: attentions go along the axis of the sequences, and none along that of the tokens.
    """
    n_sequences, n_tokens, tokens = subject.n_sequences, subject.n_tokens, subject.tokens
    if n_sequences == n_tokens and len(tensors_in((subject.args, subject.kwargs))) == 1:
        tokens = tokens.narrow(1 - subject.token_axis, 0, n_sequences - 1)  # so that the axes can be told apart
    n_items = tokens.shape[1 - subject.token_axis]
    shapes = [attention.shape for attention in _shapes(subject, tokens)]
    is_across = any(shape[0] == n_tokens and n_items in shape[2:] for shape in shapes)
    if is_across and not any(n_tokens in shape[2:] for shape in shapes):
        own, other = ("second", "first") if subject.token_axis else ("first", "second")
        layout = "T, B" if subject.token_axis else "B, T"
        raise ValueError(
            f"the model attends along the {other} axis of its input, {n_sequences} long, and not along the {own}, "
            f"{n_tokens} long: pass batch_first={not subject.token_axis} if it is ({layout}, ...), else turn it"
        )


def _of_decoder(arguments: Mapping[str, Any]) -> str | None:
    """The name of the argument that holds a decoder's tokens; None where none is called so."""
    named = (
        name
        for name, value in arguments.items()
        if name.startswith(_DECODERS) and "mask" not in name and isinstance(value, Tensor) and value.dim() > 1
    )
    return next(named, None)


def _padding(subject: Subject, padding: Tensor | None = None) -> Tensor:
    """(B, T) bool, True = padding.

    Raises:
        ValueError: ``padding`` has other sizes than the tokens.
    """
    known = padding_of(subject.arguments, padding)
    name, shape = subject.name, (subject.n_sequences, subject.n_tokens)
    if padding is not None and known.encoder is not None:
        if known.encoder.shape != shape:
            raise ValueError(f"padding is {tuple(known.encoder.shape)}: it must be {shape}, as the tokens are")
        return known.encoder.cpu()
    order = [known.decoder] if name.startswith(OF_TARGET) else [known.encoder, known.source]
    if name.startswith(("encoder", "memory")):
        order = [known.source, known.encoder]
    fitting = [each.cpu() for each in order if each is not None and each.shape == shape]
    return fitting[0] if fitting else torch.zeros(shape, dtype=torch.bool)


def _is_source(subject: Subject) -> bool:
    """True where the tokens are those of an encoder, and the output is that of a decoder."""
    has_target = any(name.startswith(_DECODERS) for name in subject.arguments)
    name = subject.name
    return name.startswith(("encoder", "memory")) or (has_target and not name.startswith(OF_TARGET))


def _places(n_tokens: int) -> list[int]:
    """The tokens after which the sequence is cut in two."""
    return sampled(n_tokens - 1, _MOST_PLACES, _SAMPLED)


def _how(by_derivative: Pass | None, number: str, of: str = "places") -> str:
    if by_derivative is None:
        return f"measured by changing tokens, at {number} {of}, as the output has no derivative by them"
    exactly = f"every derivative is exactly zero, measured at {number} {of}"
    return f"{exactly}, and changed tokens change nothing beyond rounding"


@dataclass(frozen=True, eq=False)
class _Claim:
    """Some rows of the output depend on none of some tokens.

    Attributes:
        subject: the model.
        rows: (B, T) bool, those rows; (B, 1) where the output has one for each sequence.
        of_stages: (B, T) bool, the rows of earlier stages that must not either.
        forbidden: (B, T) bool, those tokens.
        said: the row and the token in words, and the token's sequence -> how the one depends on the other; without
            a token on several together.
    """

    subject: Subject
    rows: Tensor
    of_stages: Tensor
    forbidden: Tensor
    said: Callable[[str, str, int], str]

    def denied(self, item: int, row: int, token: tuple[int, int] | None) -> str:
        """That a row depends on a token, by its sequence and place, or on several together."""
        place = "" if self.rows.shape[1] == 1 else f"row {row} of "
        sequence = f", sequence {item}," if len(self.rows) > 1 else ""
        source, at = token or (item, 0)
        of_sequence = "" if source == item else f" of sequence {source}"
        return self.said(f"{place}the output{sequence}", f"token {at}{of_sequence}" if token else "", source)


def _later(row: str, token: str, _: int) -> str:
    return f"{row} depends on {token}, which comes later" if token else f"{row} depends on later tokens together"


def _padded(row: str, token: str, _: int) -> str:
    return f"{row} depends on {token}, which is padding" if token else f"{row} depends on the padding as a whole"


def _mixed(row: str, token: str, sequence: int) -> str:
    return f"{row} depends on sequence {sequence}" if token else f"{row} depends on other sequences together"


def _assert_nothing_pulled_back(claim: _Claim, found: Pass) -> None:
    subject, rows, forbidden = claim.subject, claim.rows, claim.forbidden
    output = found.output_stage(subject)
    influence = pulled_back(output, rows, found, subject)
    if bool(influence.isnan().any()):
        raise AssertionError(f"the derivative of the output is NaN{first_nan(found)}")
    leaks = forbidden & (influence != 0)
    if not bool(leaks.any()):
        return
    source, token = leaks.nonzero()[0].tolist()
    item, row = source, 0
    for item, row in rows.nonzero().tolist():
        only = torch.zeros_like(rows)
        only[item, row] = True
        if bool(pulled_back(output, only, found, subject)[source, token] != 0):
            break
    first = first_stage(found, claim.of_stages, forbidden, subject)
    leak, largest = float(influence[leaks].max()), float(influence.max())
    tiny = f", by a derivative of {leak:.2g} beside {largest:.2g}, which may be rounding alone"
    _fail(claim, f"{claim.denied(item, row, (source, token))}{tiny if leak < _TINY * largest else ''}", first)


# By changes.


def _assert_nothing_changed(claim: _Claim, before: Pass, turns: Iterable[int] = range(_MOST_CHANGES)) -> None:
    """Put other tokens in the place of those forbidden, others at each turn: one change alone can miss a choice."""
    for turn in turns:
        after, differs = _with_other_tokens(claim, before, claim.forbidden, turn)
        if bool(differs.any()):
            _fail_of_change(claim, before, after, differs, turn)


def _fail_of_change(claim: _Claim, before: Pass, after: Pass, differs: Tensor, turn: int) -> None:
    item, row = differs.nonzero()[0].tolist()
    first = None
    for old, new in zip(before.stages, after.stages, strict=False):
        if old.value.shape == new.value.shape and bool(_rows_that_differ(old, new.value, claim.of_stages).any()):
            first = old
            break
    _fail(claim, claim.denied(item, row, _culprit(claim, before, item, row, turn)), first)


def _with_other_tokens(claim: _Claim, before: Pass, where: Tensor, turn: int) -> tuple[Pass, Tensor]:
    """A pass with other tokens at the marked places, (B, T) bool, and which of the claim's rows differ in it."""
    after = run_pass(claim.subject, _changed(claim.subject, where, before.n_ids, turn), differentiable=False)
    return after, _rows_that_differ(before.output_stage(claim.subject), after.output, claim.rows)


def _culprit(claim: _Claim, before: Pass, item: int, row: int, turn: int) -> tuple[int, int] | None:
    """A token whose change alone changes a row, found by halving; None where several do it together."""
    places = sorted(claim.forbidden.nonzero().tolist(), key=lambda place: place[0] != item)
    while len(places) > 1:
        for part in (places[: len(places) // 2], places[len(places) // 2 :]):
            where = torch.zeros_like(claim.forbidden)
            where[tuple(zip(*part, strict=True))] = True
            if bool(_with_other_tokens(claim, before, where, turn)[1][item, row]):
                places = part
                break
        else:
            return None
    return places[0][0], places[0][1]


def _changed(subject: Subject, where: Tensor, n_ids: int | None, turn: int) -> Tensor:
    """Other tokens at the marked places, (B, T) bool: others at each turn, and vectors further off."""
    tokens, generator = subject.tokens, torch.Generator().manual_seed(2 + turn)
    marked = (where if subject.token_axis == 1 else where.T).to(tokens.device)
    if tokens.is_floating_point():
        noise = (1 + turn % _MOST_CHANGES) * torch.randn(tokens.shape, generator=generator).to(tokens)
        return torch.where(marked.reshape(*marked.shape, *(1,) * (tokens.dim() - 2)), tokens + noise, tokens)
    size = max(2, int(tokens.max()) + 1 if n_ids is None else n_ids)
    steps = torch.randint(1, size, tokens.shape, generator=generator).to(tokens)
    return torch.where(marked, (tokens + steps) % size, tokens)


def _rows_that_differ(one: StageOutput, other: Tensor, rows: Tensor) -> Tensor:
    """Keep those of the rows, (B, T) bool or (B, 1) for one of each sequence, that differ by more than rounding."""
    value = one.value.detach()
    largest = float(value.abs().nan_to_num(0.0, 0.0, 0.0).amax()) if value.numel() else 0.0
    cells = (value - other.detach()).abs() > _rounding(value) * max(largest, 1e-6)
    if one.axis is None:
        differs = cells.movedim(one.batch_axis, 0).flatten(1).any(-1, keepdim=True)
    else:
        differs = cells.movedim((one.batch_axis, one.axis % value.dim()), (0, 1)).flatten(2).any(-1)
    return (differs if len(differs) == len(rows) else differs.any(0).expand(len(rows), -1)).cpu() & rows


def _rounding(value: Tensor) -> float:
    """Up to this, relative to the largest number, two outputs of its type count as the same."""
    return min(256 * torch.finfo(value.dtype).eps, _MOST_ROUNDING)


def _assert_the_same_alone(subject: Subject, is_padding: Tensor) -> None:
    """Each sequence gives the same without its padding."""
    whole = run_pass(subject, subject.tokens, differentiable=False).output
    has_rows = subject.has_rows(whole) and not _is_source(subject)
    for item, of_item in enumerate(is_padding):
        real = (~of_item).nonzero().flatten()
        if not len(real):
            continue
        shorter = of_one_sequence(subject, item, real)
        alone = shorter.of_item(run_pass(shorter, shorter.tokens, differentiable=False).output, 0)
        expected = subject.of_item(whole, item)
        expected = expected[real.to(whole.device)] if has_rows else expected
        gap = (alone - expected).abs().reshape(len(real) if has_rows else 1, -1).amax(-1)
        differs = gap > max(1e-4, _rounding(expected)) * float(expected.abs().amax())
        if bool(differs.any()):
            row = f"row {int(real[int(differs.int().argmax())])} of the output" if has_rows else "the output"
            raise AssertionError(
                f"{row}, sequence {item}, is another one without the {int(of_item.sum())} tokens "
                "of padding: positions count the padding, or something else looks at how much there is"
            )


# The sentence.


def _fail(claim: _Claim, what: str, stage: StageOutput | None) -> None:
    """Raise the sentence that names the first stage."""
    raise AssertionError(f"{what}. {stage_in_words(stage, claim.subject, causal=claim.said is _later)}")
