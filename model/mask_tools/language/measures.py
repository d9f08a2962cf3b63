"""The whole numbers that masks of the literature depend on, one per cell, and the words for a range of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from model.mask_tools.language.context import MaskContext

Run = tuple[int | None, int | None]
"""The first and the last of a range; None = however far it goes."""

Words = Callable[[int | None, int | None], str]
"""How a range of numbers is said."""

_SIZES = (*range(2, 17), 20, 24, 32, 48, 64)
"""The sizes of blocks that are looked for, and the strides, which have to come back."""


@dataclass(frozen=True, eq=False)
class Measure:
    """A number that the code of a cell decides, such as its remainder.

    Attributes:
        values: (n_codes,) int64, the number of each code, counted from ``lowest``.
        lowest: the number that is counted as 0.
        size: how many numbers there are.
        words: the words for the numbers from a first to a last one; for a single one they have ``==``.
        extra: how many characters longer than it is a condition on it counts as, or fewer.
        extra_of_chain: the same of one with two bounds, besides.
    """

    values: Tensor
    lowest: int
    size: int
    words: Words
    extra: int = 0
    extra_of_chain: int = 2

    def numbers(self, run: Run) -> range:
        """What a range holds, counted from ``lowest``."""
        first, last = run
        return range(first or 0, self.size if last is None else last + 1)

    def said(self, run: Run) -> str:
        """The words for a range, counted from ``lowest``; one that holds a single number is said as that number."""
        first, last = run
        if first is None and last == 0:
            first = 0
        if last is None and first == self.size - 1:
            last = first
        return self.words(_plus(first, self.lowest), _plus(last, self.lowest))

    def denied(self, run: Run) -> str:
        """The words for all that lies outside a range, which is open at one end at most."""
        first, last = run
        if first is None:
            return self.said((_plus(last, 1), None))
        if last is None:
            return self.said((None, first - 1))
        return self.said(run).replace("==", "!=") if first == last else f"not ({self.said(run)})"


@dataclass(frozen=True, eq=False)
class Grid:
    """Codes of the cells, (Tq * Tk,) int64 from 0 to ``n_codes`` - 1, and the measures that they decide."""

    codes: Tensor
    n_codes: int
    measures: tuple[Measure, ...]

    def counts(self, within: Tensor, wanted: Tensor) -> Tensor:
        """(n_codes, 2) int64: how many cells of each code, of those within some, are not wanted, and are."""
        kinds = within.long() + (within & wanted)
        return torch.bincount(3 * self.codes + kinds, minlength=3 * self.n_codes).view(self.n_codes, 3)[:, 1:]

    def chosen(self, measure: Measure, *runs: Run) -> Tensor:
        """The cells, (Tq * Tk,) bool, whose number is in one of some ranges."""
        is_chosen = torch.zeros(measure.size, dtype=torch.bool)
        is_chosen[[number for run in runs for number in measure.numbers(run)]] = True
        return is_chosen[measure.values][self.codes]


def runs_of(needed: Sequence[bool], free: Sequence[bool]) -> Iterator[Run]:
    """The fewest ranges of positions that hold all the needed ones and, besides, free ones alone."""
    first: int | None = None
    last: int | None = None
    from_start = True
    for position, (is_needed, is_free) in enumerate(zip(needed, free, strict=True)):
        if is_needed:
            first = position if first is None else first
            last = position
        elif not is_free:
            if first is not None:
                yield None if from_start else first, last
            first, from_start = None, False
    if first is not None:
        yield None if from_start else first, None


def position_measure(name: str, n_positions: int) -> Measure:
    """The position of the query, or of the key, itself."""
    return Measure(torch.arange(n_positions), 0, n_positions, partial(_range, name))


def grids_of(context: MaskContext) -> tuple[Grid, ...]:
    """All that is looked at to find a simple expression, in the order in which conditions are written."""
    n_queries, n_keys = context.n_queries, context.n_keys
    query, key = torch.arange(n_queries)[:, None], torch.arange(n_keys)[None, :]
    longest = max(n_queries, n_keys)
    sizes = [size for size in _SIZES if size < longest]
    strides = [size for size in _SIZES if 2 * size <= longest]
    return (
        _diagonals(query - key, strides),
        *(_blocks(query // size - key // size, size) for size in sizes),
        _positions("q", query.expand(-1, n_keys), n_queries, strides),
        _positions("k", key.expand(n_queries, -1), n_keys, strides),
        *_facts(context),
    )


def _diagonals(difference: Tensor, strides: list[int]) -> Grid:
    codes, lowest, n_codes = _counted(difference)
    numbers = torch.arange(n_codes) + lowest
    # People write k <= q and q - k < 4 rather than 0 <= q - k < 4.
    whole = Measure(numbers - lowest, lowest, n_codes, _diagonals_within, extra_of_chain=10)
    remainders = (_remainder("(q - k)", numbers, stride) for stride in strides)
    return Grid(codes, n_codes, (whole, _distance("abs(q - k)", numbers), *remainders))


def _blocks(difference: Tensor, size: int) -> Grid:
    codes, lowest, n_codes = _counted(difference)
    numbers = torch.arange(n_codes) + lowest
    q, k = f"q // {size}", f"k // {size}"

    def within(first: int | None, last: int | None) -> str:
        match first, last:
            case 0, 0:
                return f"{q} == {k}"
            case 0, None:
                return f"{k} <= {q}"
            case None, 0:
                return f"{q} <= {k}"
        return _range(f"{q} - {k}", first, last)

    measures = (Measure(numbers - lowest, lowest, n_codes, within), _distance(f"abs({q} - {k})", numbers))
    return Grid(codes, n_codes, measures)


def _positions(name: str, positions: Tensor, n_positions: int, strides: list[int]) -> Grid:
    whole = position_measure(name, n_positions)
    remainders = (_remainder(name, whole.values, stride) for stride in strides)
    return Grid(positions.flatten(), n_positions, (whole, *remainders))


def _facts(context: MaskContext) -> Iterator[Grid]:
    same_segment = _column(context.query_segments) == torch.tensor(context.key_segments)
    same_token = _column(context.query_tokens) == torch.tensor(context.key_tokens)
    query_padding = _column(context.query_is_padding).expand_as(same_token)
    key_padding = torch.tensor(context.key_is_padding).expand_as(same_token)
    # What is known of tokens says more than their positions do, however long the words for it are.
    yield _fact(same_segment, "segment(q) == segment(k)", "segment(q) != segment(k)", extra=-18)
    yield _fact(same_token, "same_token", "not same_token", extra=0)
    yield _fact(query_padding, "is_pad(q)", "not is_pad(q)", extra=-9)
    yield _fact(key_padding, "is_pad(k)", "not is_pad(k)", extra=-9)


def _column(values: Sequence[int]) -> Tensor:
    return torch.tensor(values)[:, None]


def _fact(cells: Tensor, yes: str, no: str, extra: int) -> Grid:
    fact = Measure(torch.arange(2), 0, 2, lambda first, _: yes if first == 1 else no, extra)
    return Grid(cells.flatten().long(), 2, (fact,))


def _counted(numbers: Tensor) -> tuple[Tensor, int, int]:
    """Numbers counted from their lowest one, that one, and how many there can be."""
    lowest, highest = int(numbers.min()), int(numbers.max())
    return (numbers - lowest).flatten(), lowest, highest - lowest + 1


def _distance(name: str, numbers: Tensor) -> Measure:
    distances = numbers.abs()
    return Measure(distances, 0, int(distances.max()) + 1, partial(_range, name))


def _remainder(name: str, numbers: Tensor, size: int) -> Measure:
    return Measure(numbers % size, 0, size, partial(_range, f"{name} % {size}"), extra=4)


def _range(name: str, first: int | None, last: int | None) -> str:
    if first is None:
        return f"{name} < {_plus(last, 1)}"
    if last is None:
        return f"{name} >= {first}"
    return f"{name} == {first}" if first == last else f"{first} <= {name} <= {last}"


def _diagonals_within(first: int | None, last: int | None) -> str:
    """Words for a range of q - k: causal conditions as people write them."""
    if first is None and last is not None:
        return f"q - k < {last + 1}" if last > 0 else _one_sided(">", last)
    if last is None and first is not None:
        return _one_sided("<", first)
    return f"k == {_shifted(first or 0)}" if first == last else f"{first} <= q - k < {_plus(last, 1)}"


def _one_sided(sign: str, difference: int) -> str:
    nearest_refused = difference - 1 if sign == "<" else difference + 1
    return f"k {sign} q" if nearest_refused == 0 else f"k {sign}= {_shifted(difference)}"


def _shifted(difference: int) -> str:
    """The key that is so far before the query."""
    if difference == 0:
        return "q"
    return f"q - {difference}" if difference > 0 else f"q + {-difference}"


def _plus(number: int | None, amount: int) -> int | None:
    return None if number is None else number + amount
