"""Sets of cells as the bits of one integer, which Python joins, compares and counts many at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Plane:
    """Where the cells of Tq queries and Tk keys are: bit ``query * width + key`` of an integer.

    A row is so wide that a pattern can be moved by as many cells as there are queries, and a block, without
    coming to the cells of the next row.

    Attributes:
        n_queries: Tq.
        n_keys: Tk.
        largest_block: the size of the largest blocks that are asked for.
    """

    n_queries: int
    n_keys: int
    largest_block: int = 1

    @cached_property
    def width(self) -> int:
        """The bits of a row, whole bytes."""
        return (self.n_queries + self.n_keys + self.largest_block + 7) // 8 * 8

    @cached_property
    def everywhere(self) -> int:
        """All cells."""
        return self.in_columns(ones(self.n_keys))

    def in_columns(self, keys: int) -> int:
        """The cells of some keys, given as bits."""
        return _repeated(keys, self.width, self.n_queries)

    def in_rows(self, rows: Iterable[int]) -> int:
        """The cells of each row, given as bits."""
        return int.from_bytes(b"".join(row.to_bytes(self.width // 8, "little") for row in rows), "little")

    def on_diagonals(self, differences: int, size: int) -> int:
        """The cells in blocks of ``size`` whose q // size - k // size is among some.

        Args:
            differences: each as ``size`` bits, the highest one first.
            size: queries, and keys, of a block.
        """
        n_blocks = -(-self.n_queries // size)
        blocks = _repeated(_repeated(differences, self.width, size), size * (self.width + 1), n_blocks)
        return (blocks >> (n_blocks - 1) * size) & self.everywhere

    def rows(self, cells: int) -> list[int]:
        """The keys of each query as bits."""
        n_bytes = self.width // 8
        data = cells.to_bytes(self.n_queries * n_bytes, "little")
        return [int.from_bytes(data[start : start + n_bytes], "little") for start in range(0, len(data), n_bytes)]

    def columns(self, cells: int) -> list[int]:
        """The queries of each key as bits."""
        return rows_of(self.tensor(cells).T)

    def tensor(self, cells: int) -> Tensor:
        """The cells, (Tq, Tk) uint8, 1 = in the set."""
        data = bytearray(cells.to_bytes(self.n_queries * self.width // 8, "little"))
        packed = torch.frombuffer(data, dtype=torch.uint8).view(self.n_queries, -1, 1)[:, : -(-self.n_keys // 8)]
        return ((packed >> torch.arange(8, dtype=torch.uint8)) & 1).flatten(1)[:, : self.n_keys]


def rows_of(cells: Tensor) -> list[int]:
    """Each row of (n, m) bool or of 0 and 1 as an integer whose lowest bit is its first cell."""
    digits = pad(cells.to(torch.uint8), (0, -cells.shape[1] % 8))
    packed = digits[:, ::8].clone(memory_format=torch.contiguous_format)
    for place in range(1, 8):
        packed |= digits[:, place::8] << place
    n_bytes = packed.shape[1]
    data = ctypes.string_at(packed.data_ptr(), packed.numel())
    return [int.from_bytes(data[start : start + n_bytes], "little") for start in range(0, len(data), n_bytes)]


def ones(count: int) -> int:
    """That many bits, from the lowest."""
    return (1 << count) - 1


def lowest(bits: int) -> int:
    """The place of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def without(cells: int, others: int) -> int:
    """The cells that are not among the others (several times as fast as ``cells & ~others``)."""
    return cells ^ (cells & others)


def _repeated(bits: int, period: int, times: int) -> int:
    have = 1
    while 2 * have <= times:
        bits |= bits << period * have
        have *= 2
    return bits | (bits << period * (times - have))
