"""A mask and a bias in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headlight.masks.intents import Intent, recognise
from headlight.masks.language import MaskContext, express
from headlight.masks.mask_case import counted, named
from model.masks import with_leading_axes
from model.texts import listed

_LONGEST_EXPRESSION = 60
_LARGEST_EXPRESSED = 48 * 48


@dataclass(frozen=True, eq=False)
class Tokens:
    """The known facts about the queries and keys of one sequence.

    Attributes:
        query_is_padding: (Tq,) bool.
        key_is_padding: (Tk,) bool.
        documents: the number of each token's document, where queries and keys are the same tokens; () if unknown.
    """

    query_is_padding: Tensor
    key_is_padding: Tensor
    documents: tuple[int, ...] = ()

    @staticmethod
    def without_padding(n_queries: int, n_keys: int) -> Tokens:
        """Tokens of which none is padding."""
        return Tokens(torch.zeros(n_queries, dtype=torch.bool), torch.zeros(n_keys, dtype=torch.bool))

    def context(self, segments: Sequence[int] | None = None) -> MaskContext:
        """The facts that an expression may ask for."""
        n_queries, n_keys = len(self.query_is_padding), len(self.key_is_padding)
        of_keys = tuple(segments or self.documents or (0,) * n_keys)
        return MaskContext(
            query_tokens=(0,) * n_queries,
            key_tokens=(0,) * n_keys,
            query_is_padding=tuple(self.query_is_padding.tolist()),
            key_is_padding=tuple(self.key_is_padding.tolist()),
            query_segments=of_keys[:n_queries] if n_queries <= n_keys else (0,) * n_queries,
            key_segments=of_keys,
        )


@dataclass(frozen=True, eq=False)
class Description:
    """A mask in words.

    Attributes:
        words: ``causal, padding ignored on the right``.
        intent: what it is, to the cell; None where it is none of those that have a name.
        tokens: which of them are padding, read from the mask itself if that was not known.
    """

    words: str
    intent: Intent | None
    tokens: Tokens


def describe(allowed: Tensor, tokens: Tokens) -> Description:
    """A mask, (Tq, Tk) bool, in words: padding and documents are named only where they are known."""
    if bool(allowed.all()):
        return Description("every query sees every key", Intent("bidirectional"), tokens)
    for known in (tokens, _with_edges_as_padding(allowed, tokens)):
        for segments in (None, _segments(allowed)):
            context = known.context(segments)
            intent = recognise(allowed, context)
            if intent is not None and not (intent.follows_position and _is_same_for_queries(allowed, known)):
                return Description(_named(intent.standing(context), tokens, known, segments), intent, known)
    return Description(_irregular(allowed, tokens), None, tokens)


def _is_same_for_queries(allowed: Tensor, tokens: Tokens) -> bool:
    """True for a mask that looks at the keys alone, as one of padding does."""
    rows = allowed[~tokens.query_is_padding]
    return len(rows) > 0 and bool((rows == rows[:1]).all())


def _named(intent: Intent, tokens: Tokens, read: Tokens, segments: Sequence[int] | None) -> str:
    """An intention in words.

    Args:
        intent: the intention.
        tokens: what is known of the tokens.
        read: the same with the keys that no query sees taken for padding.
        segments: the parts that the mask itself has, where it has some.
    """
    parts = [replace(intent, padding=False, documents=False, cache=None).words]
    if intent.kind == "cached":
        keys = counted("key", intent.number)
        parts = [
            f"earlier keys, its own, and {keys} after it" if _is_square(tokens) else f"k <= q + {intent.number}"
        ]
    elif intent.cache is not None:
        parts.append(f"{counted('key', intent.cache)} before query 0" if intent.cache else "from the first key on")
    if intent.documents:
        parts.append("documents isolated" if segments is None else _within(segments))
    if intent.padding and bool(tokens.key_is_padding.any()):
        parts.append(f"padding ignored {_side(tokens.key_is_padding)}")
    elif read is not tokens and bool(read.key_is_padding.any()):
        parts.append(f"{named('key', read.key_is_padding)} hidden from every query")
    return ", ".join(parts)


def _is_square(tokens: Tokens) -> bool:
    return len(tokens.query_is_padding) == len(tokens.key_is_padding)


def _within(segments: Sequence[int]) -> str:
    """The parts of a sequence that do not see each other, of which nobody said what they are."""
    sizes = [segments.count(number) for number in sorted(set(segments))]
    if len(set(sizes[:-1])) == 1 and sizes[-1] <= sizes[0]:
        return f"within blocks of {sizes[0]}"
    more = [f"{len(sizes) - 3} more"] if len(sizes) > 4 else [str(size) for size in sizes[3:]]
    return f"within parts of {listed([*map(str, sizes[:3]), *more])} tokens"


def _side(is_padding: Tensor) -> str:
    """Say where padding stands among the keys."""
    places = is_padding.nonzero().flatten().tolist()
    left = places == list(range(len(places)))
    right = places == list(range(len(is_padding) - len(places), len(is_padding)))
    if left or right:
        return "on the left" if left else "on the right"
    n_left = int((~is_padding).int().argmax())
    n_right = int((~is_padding).flip(0).int().argmax())
    return "on both sides" if n_left + n_right == len(places) else "in between"


def _with_edges_as_padding(allowed: Tensor, tokens: Tokens) -> Tokens:
    """The keys at either end that no query sees taken for padding, if that of the tokens was not known."""
    if bool(tokens.key_is_padding.any()) or bool(allowed.all()) or not bool(allowed.any()):
        return tokens
    seen = allowed.any(0)
    first, last = int(seen.int().argmax()), len(seen) - int(seen.flip(0).int().argmax())
    keys = torch.ones_like(seen)
    keys[first:last] = False
    is_square = allowed.shape[0] == allowed.shape[1]
    return Tokens(keys if is_square else tokens.query_is_padding, keys)


def _segments(allowed: Tensor) -> list[int] | None:
    """The number of each token's document, where each query sees nothing before the start of its own."""
    if allowed.shape[0] != allowed.shape[1] or not bool(allowed.diagonal().all()):
        return None
    starts = allowed.int().argmax(-1)
    is_first = starts == torch.arange(len(starts))
    return (is_first.cumsum(0) - 1).tolist() if bool((starts.diff() >= 0).all()) else None


def _irregular(allowed: Tensor, tokens: Tokens) -> str:
    if not bool(allowed.any()):
        return "no query sees any key"
    if nearly := _nearly_causal(allowed, tokens):
        return nearly
    expression = express(allowed, tokens.context()) if allowed.numel() <= _LARGEST_EXPRESSED else ""
    if expression and len(expression) <= _LONGEST_EXPRESSION:
        return f"keys where {expression}"
    return f"irregular: {int(allowed.sum()):,} of {allowed.numel():,} cells open"


def _nearly_causal(allowed: Tensor, tokens: Tokens) -> str:
    """Name the cells that keep a mask from being causal; "" where they are more than a few."""
    n_queries, n_keys = allowed.shape
    if n_queries > n_keys or n_queries < 3:
        return ""
    causal = torch.ones_like(allowed).tril(n_keys - n_queries) & ~tokens.key_is_padding
    differs = (allowed != causal) & ~tokens.query_is_padding[:, None]
    count = int(differs.sum())
    if not 0 < count <= max(1, n_queries // 4):
        return ""
    query, key = differs.nonzero()[0].tolist()
    sees = "sees" if bool(allowed[query, key]) else "does not see"
    first = "" if count == 1 else "the first is: "
    cells = "1 cell" if count == 1 else f"{count} cells"
    return f"causal but for {cells}: {first}query {query} {sees} key {key}"


def bias_in_words(bias: Tensor | None, allowed: Tensor | None) -> str:
    """A bias, broadcastable to (B, H, Tq, Tk), in words; "" where there is none."""
    if bias is None:
        return ""
    if not bool(bias.isfinite().all()):
        return "a bias that is not finite"
    shape = (bias if allowed is None else bias + allowed.to(bias)).shape
    cells = with_leading_axes(bias.expand(shape))[:1]
    is_open = torch.ones_like(cells, dtype=torch.bool)
    if allowed is not None:
        is_open = with_leading_axes(allowed.expand(shape))[:1]
    numbers = bias if allowed is None else bias.expand(shape)[allowed.expand(shape)]
    if not numbers.numel():
        return ""
    spread = f"from {float(numbers.min()) + 0.0:.3g} to {float(numbers.max()) + 0.0:.3g}"  # and never -0
    if _is_linear(cells, is_open):
        return f"a bias linear in the key's position, {spread}"
    return f"a bias by distance alone, {spread}" if _is_relative(cells, is_open) else f"a bias {spread}"


def _is_linear(cells: Tensor, is_open: Tensor) -> bool:
    """True if each step from one key to the next changes the bias of a query by the same number, as in ALiBi."""
    steps, both = cells.diff(dim=-1), is_open[..., 1:] & is_open[..., :-1]
    change, compared = steps.diff(dim=-1), both[..., 1:] & both[..., :-1]
    near = change.abs() <= 1e-4 * cells.abs().amax()
    return bool(compared.any()) and bool(near[compared].all())


def _is_relative(cells: Tensor, is_open: Tensor) -> bool:
    """True if the bias of a cell is that of the next query and the next key, as T5's."""
    compared = is_open[..., 1:, 1:] & is_open[..., :-1, :-1]
    near = torch.isclose(cells[..., 1:, 1:], cells[..., :-1, :-1], atol=1e-6)
    return bool(compared.any()) and bool(near[compared].all())
