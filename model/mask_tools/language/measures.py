"""The whole numbers that masks of the literature depend on, one per cell, and the words for a range of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from model.mask_tools.language.cells import Plane, lowest, ones, rows_of, without
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
    """A code from 0 to ``n_codes`` - 1 for each cell, and the measures that the codes decide.

    Attributes:
        n_codes: how many codes there are.
        measures: what is asked of them.
        counts: how many of some cells have each code, (n_codes,).
        cells: the cells whose code is among some, (n_codes,) bool.
    """

    n_codes: int
    measures: tuple[Measure, ...]
    counts: Callable[[Sums], Tensor]
    cells: Callable[[Tensor], int]

    def chosen(self, measure: Measure, *runs: Run) -> int:
        """The cells whose number is in one of some ranges."""
        is_chosen = torch.zeros(measure.size, dtype=torch.bool)
        for run in runs:
            numbers = measure.numbers(run)
            is_chosen[numbers.start : numbers.stop] = True
        return self.cells(is_chosen[measure.values])


class Sums:
    """Some cells, counted in all blocks of one size at a time.

    Attributes:
        cells: the cells, as bits.
    """

    def __init__(self, plane: Plane, cells: int) -> None:
        self.plane = plane
        self.cells = cells
        self._cells = plane.tensor(cells)
        margin = plane.largest_block
        padded = pad(self._cells, (1, margin, 1, margin))
        by_keys = padded.cumsum(1, dtype=torch.int32).T.contiguous()
        self._before = by_keys.cumsum(1, dtype=torch.int32)  # how many cells lie before a key and a query

    def in_rows(self) -> Tensor:
        """(Tq,) int32."""
        return self._before[-1].diff()[: self.plane.n_queries]

    def in_columns(self) -> Tensor:
        """(Tk,) int32."""
        return self._before[:, -1].diff()[: self.plane.n_keys]

    def on_diagonals(self, size: int) -> Tensor:
        """By q // size - k // size, from the lowest, int32."""
        if size == 1:
            return _diagonal_sums(self._cells.T)
        n_rows, n_columns = (-(-n // size) for n in (self.plane.n_keys, self.plane.n_queries))
        before = self._before[: n_rows * size + 1 : size, : n_columns * size + 1 : size]
        return _diagonal_sums(before.diff(dim=0).diff(dim=1))


class Grids:
    """All that is looked at to find a simple expression, in the order in which conditions are written.

    Attributes:
        plane: where the cells are.
        measures: each with its grid, and with the place of its lowest number among the numbers of all measures.
    """

    def __init__(self, context: MaskContext) -> None:
        longest = max(context.n_queries, context.n_keys)
        sizes = [size for size in _SIZES if size < longest]
        self.plane = Plane(context.n_queries, context.n_keys, largest_block=max([1, *sizes]))
        self._grids = _grids(context, self.plane, sizes)
        self.measures: list[tuple[Grid, Measure, int]] = []
        codes, numbers = [], []
        n_codes = self._n_numbers = 0
        for grid in self._grids:
            for measure in grid.measures:
                self.measures.append((grid, measure, self._n_numbers))
                codes.append(torch.arange(n_codes, n_codes + grid.n_codes))
                numbers.append(measure.values + self._n_numbers)
                self._n_numbers += measure.size
            n_codes += grid.n_codes
        self._codes, self._numbers = torch.cat(codes), torch.cat(numbers)
        self._counted: dict[int, Tensor] = {}

    def counts(self, cells: int) -> Tensor:
        """How many of some cells have each number of each measure, all after one another, (n_numbers,) int32."""
        if cells not in self._counted:
            sums = Sums(self.plane, cells)
            of_codes = torch.cat([grid.counts(sums) for grid in self._grids])
            nothing = torch.zeros(self._n_numbers, dtype=torch.int32)
            self._counted[cells] = nothing.index_add(0, self._numbers, of_codes[self._codes])
        return self._counted[cells]


def runs_of(needed: int, free: int, size: int) -> Iterator[Run]:
    """The fewest ranges that hold all positions needed and, besides, free ones alone; both are given as bits."""
    refused = ones(size) ^ (needed | free)
    while needed:
        first = lowest(needed)
        start = first if refused & ones(first) else None
        beyond = refused >> first
        if not beyond:
            yield start, None
            return
        end = first + lowest(beyond)
        yield start, (needed & ones(end)).bit_length() - 1
        needed = needed >> end << end


def position_measure(name: str, n_positions: int) -> Measure:
    """The position of the query, or of the key, itself."""
    return Measure(torch.arange(n_positions), 0, n_positions, partial(_range, name))


def _grids(context: MaskContext, plane: Plane, sizes: list[int]) -> list[Grid]:
    n_queries, n_keys = plane.n_queries, plane.n_keys
    strides = [size for size in _SIZES if 2 * size <= max(n_queries, n_keys)]
    return [
        _diagonals(plane, strides),
        *(_blocks(plane, size) for size in sizes),
        Grid(
            n_queries,
            _positions("q", n_queries, strides),
            Sums.in_rows,
            lambda chosen: plane.in_rows(ones(n_keys) if is_chosen else 0 for is_chosen in chosen.tolist()),
        ),
        Grid(
            n_keys,
            _positions("k", n_keys, strides),
            Sums.in_columns,
            lambda chosen: plane.in_columns(*rows_of(chosen[None])),
        ),
        *_facts(context, plane),
    ]


def _diagonals(plane: Plane, strides: list[int]) -> Grid:
    numbers = _differences(plane, 1)
    lowest, n_codes = int(numbers[0]), len(numbers)
    # People write k <= q and q - k < 4 rather than 0 <= q - k < 4.
    whole = Measure(numbers - lowest, lowest, n_codes, _diagonals_within, extra_of_chain=10)
    remainders = (_remainder("(q - k)", numbers, stride) for stride in strides)
    return _grid_of_blocks(plane, 1, (whole, _distance("abs(q - k)", numbers), *remainders))


def _blocks(plane: Plane, size: int) -> Grid:
    numbers = _differences(plane, size)
    lowest, n_codes = int(numbers[0]), len(numbers)
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

    whole = Measure(numbers - lowest, lowest, n_codes, within)
    return _grid_of_blocks(plane, size, (whole, _distance(f"abs({q} - {k})", numbers)))


def _differences(plane: Plane, size: int) -> Tensor:
    """All that q // size - k // size can be."""
    return torch.arange(-((plane.n_keys - 1) // size), (plane.n_queries - 1) // size + 1)


def _grid_of_blocks(plane: Plane, size: int, measures: tuple[Measure, ...]) -> Grid:
    def cells(chosen: Tensor) -> int:
        (differences,) = rows_of(chosen.flip(0).repeat_interleave(size)[None])
        return plane.on_diagonals(differences, size)

    return Grid(len(measures[0].values), measures, lambda sums: sums.on_diagonals(size), cells)


def _diagonal_sums(numbers: Tensor) -> Tensor:
    """By column - row from the lowest: once each row is moved on by one more, diagonals are columns."""
    n_rows, n_columns = numbers.shape
    width = n_rows + n_columns - 1
    slanted = numbers.new_zeros(n_rows * (width + 1))
    slanted[: n_rows * width].view(n_rows, width)[:, n_rows - 1 :] = numbers
    return slanted.view(n_rows, width + 1)[:, :width].sum(0, dtype=torch.int32)


def _positions(name: str, n_positions: int, strides: list[int]) -> tuple[Measure, ...]:
    whole = position_measure(name, n_positions)
    return whole, *(_remainder(name, whole.values, stride) for stride in strides)


def _facts(context: MaskContext, plane: Plane) -> Iterator[Grid]:
    # What is known of tokens says more than their positions do, however long the words for it are.
    yield _same(
        plane,
        context.query_segments,
        context.key_segments,
        "segment(q) == segment(k)",
        "segment(q) != segment(k)",
        -18,
    )
    yield _same(plane, context.query_tokens, context.key_tokens, "same_token", "not same_token", 0)
    query_padding = [ones(plane.n_keys) if is_padding else 0 for is_padding in context.query_is_padding]
    yield _fact(plane, plane.in_rows(query_padding), "is_pad(q)", "not is_pad(q)", -9)
    key_padding = plane.in_columns(*rows_of(torch.tensor([context.key_is_padding])))
    yield _fact(plane, key_padding, "is_pad(k)", "not is_pad(k)", -9)


def _same(plane: Plane, of_queries: Sequence[int], of_keys: Sequence[int], yes: str, no: str, extra: int) -> Grid:
    keys_of = dict.fromkeys(of_queries, 0)
    for key, value in enumerate(of_keys):
        keys_of[value] = keys_of.get(value, 0) | 1 << key
    return _fact(plane, plane.in_rows(keys_of[value] for value in of_queries), yes, no, extra)


def _fact(plane: Plane, true: int, yes: str, no: str, extra: int) -> Grid:
    fact = Measure(torch.arange(2), 0, 2, lambda first, _: yes if first == 1 else no, extra)

    def counts(sums: Sums) -> Tensor:
        n_true = (sums.cells & true).bit_count()
        return torch.tensor([sums.cells.bit_count() - n_true, n_true], dtype=torch.int32)

    return Grid(2, (fact,), counts, lambda chosen: true if chosen[1] else without(plane.everywhere, true))


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
