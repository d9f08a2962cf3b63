"""A mask as FlexAttention's ``BlockMask`` sees it: which blocks of queries and keys are empty, partial or full.

An empty block is skipped, a full one is computed without asking the mask, and a partial one asks it for every cell.
The blocks of an expression are found without the dense mask: first every part of it is bounded over whole blocks,
which decides all blocks that lie clearly on one side; of the others a few cells are looked at, and then more,
which shows most partial ones; and what is left is worked out in full, a few blocks at a time. So 32,768 tokens need
no more memory than a few million cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from model.mask_tools.language import Expression, MaskContext
from model.mask_tools.language.bounds import bounds_over_blocks
from model.mask_tools.language.evaluation import evaluate_at

EMPTY, PARTIAL, FULL = range(3)
_MOST_CELLS = 2**20
"""Cells that are worked out at once."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of one mask.

    Attributes:
        kinds: (ceil(Tq / size), ceil(Tk / size)) uint8, each ``EMPTY``, ``PARTIAL`` or ``FULL``. As in PyTorch, a
            block that reaches beyond the last query or key is never full.
        size: queries, and keys, of a block.
        n_looked_into: of how many blocks cells had to be worked out.
    """

    kinds: Tensor
    size: int
    n_looked_into: int

    def count(self, kind: int) -> int:
        """How many blocks are ``EMPTY``, ``PARTIAL`` or ``FULL``."""
        return int((self.kinds == kind).sum())

    @property
    def share_skipped(self) -> float:
        """The share of the blocks that is not computed."""
        return self.count(EMPTY) / max(1, self.kinds.numel())


def blocks_of_cells(allowed: Tensor, size: int) -> Blocks:
    """The blocks of a dense mask, (Tq, Tk) bool, True = may attend."""
    padded = F.pad(allowed, (0, -allowed.shape[1] % size, 0, -allowed.shape[0] % size))
    rows, columns = (length // size for length in padded.shape)
    blocks = padded.view(rows, size, columns, size)
    kinds = blocks.any(3).any(1).to(torch.uint8) + blocks.all(3).all(1).to(torch.uint8)
    return Blocks(kinds, size, kinds.numel())


def most_cells(expression: Expression, context: MaskContext, size: int) -> int:
    """How many cells ``blocks_of_expression`` has to work out at most, known from the bounds alone."""
    never_blocked, ever_allowed = bounds_over_blocks(expression, context, size)
    return int((ever_allowed & ~never_blocked).sum()) * sum(len(look) ** 2 for look in _looks(size))


def blocks_of_expression(
    expression: Expression,
    context: MaskContext,
    size: int,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Blocks:
    """The blocks of a mask that is an expression, exactly, without the dense mask.

    Args:
        expression: the mask.
        context: its tokens.
        size: queries, and keys, of a block.
        progress: called with the fraction done of all cells that may still have to be worked out: blocks that turn
            out to be partial before the last look make it jump ahead. An error that it raises ends the work.

    Raises:
        MaskExpressionError: as ``Expression.evaluate``.
    """
    never_blocked, ever_allowed = bounds_over_blocks(expression, context, size)
    kinds = (never_blocked.to(torch.uint8) + ever_allowed).to(torch.uint8)
    undecided = (ever_allowed & ~never_blocked).nonzero()
    n_undecided, n_done = len(undecided), 0
    costs = [len(look) ** 2 for look in _looks(size)]
    for index, offsets in enumerate(_looks(size)):
        still = [undecided[:0]]
        n_unseen, n_later = len(undecided), sum(costs[index + 1 :])
        for places in _portions(undecided, costs[index]):
            any_allowed, all_allowed = _looked_into(expression, context, size, places, offsets)
            mixed = any_allowed & ~all_allowed
            kinds[tuple(places.T)] = torch.where(mixed, PARTIAL, torch.where(all_allowed, FULL, EMPTY)).to(
                torch.uint8
            )
            still.append(places[~mixed])
            n_unseen, n_done = n_unseen - len(places), n_done + len(places) * costs[index]
            n_left = n_unseen * (costs[index] + n_later) + sum(map(len, still)) * n_later
            progress(n_done / (n_done + n_left))
        undecided = torch.cat(still)
    rows, columns = (length // size for length in (context.n_queries, context.n_keys))
    for beyond in (kinds[rows:], kinds[:, columns:]):
        beyond.clamp_(max=PARTIAL)
    return Blocks(kinds, size, n_undecided)


def stretched(context: MaskContext, n_tokens: int) -> MaskContext:
    """The facts of a text for a longer one, in which each token stands for as many as it takes.

    Queries and keys that differ in number are both brought to ``n_tokens``.
    """

    def of(facts: tuple) -> tuple:  # type: ignore[type-arg]
        last = len(facts) - 1
        return tuple(facts[min(place * len(facts) // n_tokens, last)] for place in range(n_tokens))

    return MaskContext(
        *(of(context.query_tokens), of(context.key_tokens)),
        *(of(context.query_is_padding), of(context.key_is_padding)),
        *(of(context.query_segments), of(context.key_segments)),
        head=context.head,
        sequence=context.sequence,
    )


def _looks(size: int) -> tuple[Tensor, ...]:
    """Where in a block cells are looked at, closer and closer: its corners and middle, a quarter, everywhere."""
    middle = size // 2
    few = {0, 1, 2, 3, middle, middle + 1, size - 2, size - 1}
    corners = torch.tensor(sorted(offset for offset in few if 0 <= offset < size))
    return (*(look for look in (corners, torch.arange(size // 4)) if 0 < len(look) < size), torch.arange(size))


def _portions(places: Tensor, n_cells: int) -> Iterator[Tensor]:
    at_once = max(1, _MOST_CELLS // n_cells)
    return (places[start : start + at_once] for start in range(0, len(places), at_once))


def _looked_into(
    expression: Expression, context: MaskContext, size: int, places: Tensor, offsets: Tensor
) -> tuple[Tensor, Tensor]:
    """Whether any, and whether all, of some cells of each block are allowed; (n,) bool each."""
    lengths = (context.n_queries, context.n_keys)
    queries, keys = (
        (places[:, axis, None] * size + offsets).clamp(max=lengths[axis] - 1) for axis in range(len(lengths))
    )
    allowed = evaluate_at(expression.condition, expression.text, context, queries[:, :, None], keys[:, None, :])
    return allowed.flatten(1).any(1), allowed.flatten(1).all(1)
