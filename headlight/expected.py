"""A mask that was expected, as an expression, an array or a function, beside the one that an attention has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from headlight.attentions import Attention
from headlight.inputs import Padding
from headlight.mask_words import Tokens
from headlight.masks.language import Expression, parse
from headlight.masks.lint import Finding
from headlight.passed_masks import without_repeats
from model.masks import with_leading_axes

Mask = str | Tensor | Callable[..., Tensor]
Expected = Mask | Mapping[str, Mask]
"""A mask that is meant, or several by the paths of attentions or patterns of them."""

_WORDS = {
    "causal": "(k <= q + n_keys - n_queries)",
    "same_document": "(segment(q) == segment(k))",
    "padding": "is_pad(k)",
}
"""Short words for what is often expected."""

_OF_TOKENS = frozenset(("query_token", "key_token"))
_OF_DOCUMENTS = frozenset(("query_segment", "key_segment"))
_OF_PADDING = frozenset(("query_is_padding", "key_is_padding"))

_MOST_NAMED = 3


def expected_of(attention: Attention, expected: Expected) -> Mask | None:
    """The mask that is expected of one attention; None if none is."""
    if isinstance(expected, Mapping):
        found = (mask for name, mask in expected.items() if fnmatchcase(attention.path, name))
        return next(found, None)
    return expected


def cells_of(mask: Mask, attention: Attention, tokens: Sequence[Tokens]) -> Tensor:
    """The cells that should be open, broadcastable to (B, H, Tq, Tk).

    Args:
        mask: what is expected: an expression such as ``causal and same_document``, in the language of the Mask lab,
            a boolean array that broadcasts to (B, H, Tq, Tk), a ``mask_mod(b, h, q, k)`` or a ``BlockMask`` of one.
        attention: the attention.
        tokens: what is known of the tokens of each sequence.

    Raises:
        ValueError: the expression is none, or the array does not fit.
    """
    _, n_heads, n_queries, n_keys = attention.shape
    size = (len(tokens), n_heads, n_queries, n_keys - attention.sinks)
    if isinstance(mask, str):
        expression = _read(mask)
        if not _OF_TOKENS.isdisjoint(expression.names):
            raise ValueError("it asks which token stands where, which is not known here")
        heads = range(n_heads) if "h" in expression.names else range(1)
        planes = [
            torch.stack([expression.evaluate(replace(known.context(), head=h, sequence=b)) for h in heads])
            for b, known in enumerate(tokens)
        ]
        return without_repeats(torch.stack(planes))
    mask = getattr(mask, "mask_mod", mask)
    if callable(mask):
        b, h, q, k = (
            torch.arange(n).view([-1 if i == axis else 1 for i in range(4)]) for axis, n in enumerate(size)
        )
        mask = mask(b, h, q, k)
    cells = torch.as_tensor(mask).detach().cpu()
    if cells.dtype is not torch.bool:
        raise ValueError(f"expected is {cells.dtype}: it must be boolean, True = may attend")
    try:
        cells.expand(size)
    except RuntimeError:
        raise ValueError(f"expected is {tuple(cells.shape)}: it must broadcast to {size}") from None
    return cells


def _read(mask: str) -> Expression:
    return parse(re.sub(r"\b(" + "|".join(_WORDS) + r")\b", lambda word: _WORDS[word[0]], mask))


def unknown_facts(expected: Expected | None, padding: Padding) -> Iterator[str]:
    """A sentence on each fact that an expression asks for and nothing says: it was taken to be true of no token."""
    masks = expected.values() if isinstance(expected, Mapping) else (expected,)
    names: set[str] = set()
    for mask in masks:
        with suppress(ValueError):
            names |= _read(mask).names if isinstance(mask, str) else set()
    if padding.documents is None and not _OF_DOCUMENTS.isdisjoint(names):
        yield "The expected mask asks for documents, and no position_ids restart: all tokens counted as one."
    said = (padding.encoder, padding.decoder, padding.source)
    if all(each is None for each in said) and not _OF_PADDING.isdisjoint(names):
        yield "The expected mask asks for padding, and nothing says which tokens it is: none counted as padding."


def difference(allowed: Tensor | None, expected: Tensor, tokens: Sequence[Tokens], n_heads: int) -> Finding | None:
    """Every cell that is not as it should be, counted and the first ones named; None where there is none.

    Rows of padding queries, which nobody reads, do not count.
    """
    n_queries, n_keys = len(tokens[0].query_is_padding), len(tokens[0].key_is_padding)
    size = (len(tokens), n_heads, n_queries, n_keys)
    is_read = without_repeats(torch.stack([~known.query_is_padding for known in tokens])[:, None, :, None])
    cells = torch.ones(1, 1, 1, 1, dtype=torch.bool) if allowed is None else with_leading_axes(allowed.cpu())
    wanted = with_leading_axes(expected)
    more, less = ((one & ~other & is_read) for one, other in ((cells, wanted), (wanted, cells)))
    if not bool(more.any() or less.any()):
        return None
    said = [
        f"{_counted(int(cells.expand(size).sum()))} {what}: {_named(cells, verb, size)}"
        for cells, what, verb in (
            (more, "open that should be blocked", "sees"),
            (less, "blocked that should be open", "does not see"),
        )
        if cells.any()
    ]
    return Finding(
        rule="not_as_expected",
        title="The mask is not the expected one",
        severity="error",
        cells=(more | less).expand(size).flatten(0, 1).any(0),
        why=f"{'; '.join(said)}.",
        mend="Compare the mask that is passed with what was expected, cell by cell.",
    )


def _counted(count: int) -> str:
    return f"{count:,} {'cell is' if count == 1 else 'cells are'}"


def _named(cells: Tensor, verb: str, size: tuple[int, ...]) -> str:
    """``query 0 sees key 1 and 14 more``, with the sequence and the head where not all of them have it."""
    items, heads = (len(cells) > 1, cells.shape[1] > 1)
    places = cells.expand(len(cells), cells.shape[1], *size[2:]).nonzero().tolist()
    named = []
    for item, head, query, key in places[:_MOST_NAMED]:
        where = ", ".join([f"sequence {item}"] * items + [f"head {head}"] * heads)
        named.append(f"{f'in {where}, ' if where else ''}query {query} {verb} key {key}")
    more = len(places) - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")
