"""Which conventions an array can be in that somebody calls a mask, and the mask that it then is.

Libraries disagree on what True means and on whether a mask is added to the scores, and nothing in an array says
whose it is. Its entries leave few conventions to choose from. Between these, what masks have in common decides: a
token sees itself, every query has a key, and if half of the cells are blocked, it is the future.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

HIGHEST_FILL = -100.0
"""What a number that blocks is at most: nothing of it is left by a float32 softmax among usual scores."""

_MOST_NAMED = 3
_ROUNDING = 0.02


@dataclass(frozen=True, eq=False)
class Reading:
    """One convention that an array can be in.

    Attributes:
        name: a short name without blanks.
        title: the convention, and who uses it.
        reason: one sentence on what the mask is like if read so.
        allowed: (Tq, Tk) bool, True = may attend; (1, Tk) for one row that serves all queries.
        fill: the number that is added to blocked scores; None where none is. Of several, the weakest.
    """

    name: str
    title: str
    reason: str
    allowed: Tensor
    fill: float | None = None


@dataclass(frozen=True, eq=False)
class _Convention:
    """A reading before it is judged."""

    name: str
    title: str
    allowed: Tensor
    fill: float | None = None

    def transposed(self) -> _Convention:
        title = f"{self.title}, transposed: rows are keys"
        return _Convention(f"{self.name}_transposed", title, self.allowed.mT, self.fill)


def read_as(array: Tensor) -> tuple[Reading, ...]:
    """The conventions that an array can be in, the likeliest first.

    Args:
        array: booleans, integers or floats, (Tq, Tk), or (Tk,) for one row that serves all queries; axes of size 1
            before these are dropped. It is read transposed as well where this makes for a likelier mask.

    Raises:
        ValueError: it is no mask: another number of axes, no entries, NaN, attention weights, or numbers that no
            convention has.
    """
    cells = _as_matrix(array)
    conventions = _conventions(cells)
    if not conventions:
        raise ValueError(_why_no_mask(cells))
    if len(cells) > 1:
        likeliest = max(_likelihood(convention.allowed) for convention in conventions)
        turned = [convention.transposed() for convention in conventions]
        conventions += [convention for convention in turned if _likelihood(convention.allowed) > likeliest]
    best_first = sorted(conventions, key=lambda convention: _likelihood(convention.allowed), reverse=True)
    return tuple(
        Reading(given.name, given.title, _reason(given.allowed), given.allowed, given.fill) for given in best_first
    )


def _as_matrix(array: Tensor) -> Tensor:
    """The array as (Tq, Tk) or (1, Tk), in its own type if boolean, else in float64."""
    if array.is_complex():
        raise ValueError("the array has complex numbers: a mask has True and False, 0 and 1, or 0 and -inf")
    if array.dim() == 0:
        raise ValueError("this is a single number: a mask has one entry for each query and key")
    if array.numel() == 0:
        raise ValueError(f"the array is empty: its shape is {tuple(array.shape)}")
    for axis, size in enumerate(array.shape[:-2]):
        if size > 1:
            raise ValueError(
                f"the array has {array.dim()} axes, and axis {axis} has {size} entries (heads or sequences): "
                f"give one of the {size} masks"
            )
    matrix = array.reshape(-1, array.shape[-1])
    return matrix if matrix.dtype is torch.bool else matrix.double()


def _conventions(cells: Tensor) -> list[_Convention]:
    """Those that the entries allow, the most usual first."""
    if cells.dtype is torch.bool:
        return [
            _Convention("true_attends", "True = may attend (F.scaled_dot_product_attention, Headlight)", cells),
            _Convention("true_blocked", "True = blocked (nn.MultiheadAttention, nn.Transformer)", ~cells),
        ]
    conventions = []
    blocked = cells <= HIGHEST_FILL
    if bool((blocked | (cells == 0)).all()):
        fill = cells[blocked].max().item() if blocked.any() else None
        number = "-inf or a large negative number" if fill is None else f"{fill:g}"
        title = f"Added to the scores: 0 = may attend, {number} = blocked"
        conventions.append(_Convention("added", title, ~blocked, fill))
    if bool(((cells == 0) | (cells == 1)).all()):
        conventions += [
            _Convention("one_attends", "1 = may attend (Hugging Face)", cells == 1),
            _Convention("one_blocked", "1 = blocked", cells == 0),
        ]
    return conventions


def _likelihood(allowed: Tensor) -> float:
    """How much a mask looks like one: more for queries with a key, tokens that see themselves, and no future."""
    if len(allowed) == 1:
        return _share(allowed)
    return _share(allowed.any(-1)) + max(_likelihood_if(allowed, shift) for shift in _alignments(allowed))


def _likelihood_if(allowed: Tensor, shift: int) -> float:
    """The part that depends on where the queries stand: query q beside key q + shift."""
    sees_no_later, sees_no_earlier = _directions(allowed, shift)
    return _share(allowed.diagonal(shift)) + sees_no_later - sees_no_earlier


def _alignments(allowed: Tensor) -> tuple[int, int]:
    """The first query beside the first key, or the last one beside the last; the same if they are as many."""
    n_queries, n_keys = allowed.shape
    return 0, n_keys - n_queries


def _directions(allowed: Tensor, shift: int) -> tuple[bool, bool]:
    """Whether no query sees a later key, and whether none sees an earlier one."""
    return not allowed.triu(shift + 1).any(), not allowed.tril(shift - 1).any()


def _share(flags: Tensor) -> float:
    return flags.double().mean().item()


def _reason(allowed: Tensor) -> str:
    """What the mask is like, in one sentence."""
    if len(allowed) == 1:
        n_keys, n_seen = allowed.numel(), int(allowed.sum())
        return f"Then every query may attend to {_of(n_seen, n_keys)} keys{_place_of_hidden(allowed[0])}."
    clauses = [_about_keyless(allowed)]
    if allowed.shape[0] == allowed.shape[1]:
        clauses.append(f"{_of(int(allowed.diagonal().sum()), len(allowed))} tokens see themselves")
    shift = max(_alignments(allowed), key=lambda shift: _likelihood_if(allowed, shift))
    sees_no_later, sees_no_earlier = _directions(allowed, shift)
    if sees_no_later != sees_no_earlier:
        clauses.append(f"no query sees {'a later' if sees_no_later else 'an earlier'} key")
    *first, last = clauses
    return f"Then {', '.join(first)}, and {last}." if first else f"Then {last}."


def _about_keyless(allowed: Tensor) -> str:
    keyless = (~allowed.any(-1)).nonzero().flatten().tolist()
    if not keyless:
        return "every query has a key"
    if len(keyless) == len(allowed):
        return "no query has a key"
    named = [str(query) for query in keyless[:_MOST_NAMED]]
    more = len(keyless) - len(named)
    listed = f"{', '.join(named)} and {more} more" if more else " and ".join(named)
    return f"no key is left for {'query' if len(keyless) == 1 else 'queries'} {listed}"


def _of(count: int, total: int) -> str:
    return "all" if count == total else "no" if count == 0 else f"{count} of {total}"


def _place_of_hidden(seen: Tensor) -> str:
    """Where the blocked keys are, if they are where padding is."""
    if seen.all() or not seen.any():
        return ""
    changes = seen.int().diff().abs().sum().item()
    if changes > 1:
        return ", and the others are not at one end"
    return f", and the others are at the {'end' if seen[0] else 'start'}, like padding"


def _why_no_mask(cells: Tensor) -> str:
    """One sentence on entries that no convention has; cells (Tq, Tk) float64."""
    if cells.isnan().any():
        query, key = cells.isnan().nonzero()[0].tolist()
        return f"the array has NaN at query {query}, key {key}: a mask has none"
    if are_weights(cells):
        return "these look like attention weights, not like a mask: no entry is negative and the rows sum to one"
    values = sorted(set(cells.flatten().tolist()))
    lowest, highest = f"{values[0]:g}", f"{values[-1]:g}"
    if len(values) == 1:
        return f"every entry is {lowest}: a mask has True and False, 0 and 1, or 0 and -inf"
    if values[-1] == 0:
        return (
            f"the entries are 0 and numbers such as {values[-2]:g}, which block nothing when added to the "
            f"scores: that takes -inf, or {HIGHEST_FILL:g} and lower"
        )
    if values[0] == -math.inf:
        return (
            f"these look like scores with a mask already in them: -inf stands beside numbers up to {highest}, "
            "and in a mask it stands beside 0 alone"
        )
    if len(values) == 2:
        return f"the entries are {lowest} and {highest}: a mask has True and False, 0 and 1, or 0 and -inf"
    return (
        f"the array has {len(values)} different numbers from {lowest} to {highest}: a mask has True and False, 0 "
        "and 1, or 0 and -inf"
    )


def are_weights(cells: Tensor) -> bool:
    """Whether every row, (..., Tk), sums to one as far as printed digits tell, or to zero without a key."""
    sums = cells.sum(-1)
    near = ((sums - 1).abs() < _ROUNDING) | (cells == 0).all(-1)
    return bool((cells >= 0).all() and near.all())
