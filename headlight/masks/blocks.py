"""A mask as FlexAttention's ``BlockMask`` sees it: which blocks of queries and keys are empty, partial or full.

An empty block is skipped, a full one is computed without asking the mask, and a partial one asks it for every cell.
The cells of an expression are worked out a row of blocks at a time, so that the dense mask is never in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.masks.language import TOKEN_FACTS, Expression, MaskContext

EMPTY, PARTIAL, FULL = range(3)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of one mask.

    Attributes:
        kinds: (ceil(Tq / size), ceil(Tk / size)) uint8, each ``EMPTY``, ``PARTIAL`` or ``FULL``. As in PyTorch, a
            block that reaches beyond the last query or key is never full.
        size: queries, and keys, of a block.
    """

    kinds: Tensor
    size: int

    def count(self, kind: int) -> int:
        """Count the blocks of one kind: ``EMPTY``, ``PARTIAL`` or ``FULL``."""
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
    return Blocks(kinds, size)


def blocks_of_expression(
    expression: Expression,
    context: MaskContext,
    size: int,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Blocks:
    """The blocks of a mask that is an expression.

    Args:
        expression: the mask.
        context: its tokens.
        size: queries, and keys, of a block.
        progress: called with the fraction done; an error that it raises ends the work.

    Raises:
        MaskExpressionError: as ``Expression.evaluate``.
    """
    rows = []
    for queries in torch.split(torch.arange(context.n_queries), size):
        rows.append(blocks_of_cells(expression.evaluate(context, queries), size).kinds)
        progress((int(queries[-1]) + 1) / context.n_queries)
    return Blocks(torch.cat(rows), size)


def stretched(context: MaskContext, n_tokens: int) -> MaskContext:
    """The facts of a text for a longer one, in which each token stands for as many as it takes.

    Queries and keys that differ in number are both brought to ``n_tokens``.
    """

    def of(facts: tuple) -> tuple:  # type: ignore[type-arg]
        last = len(facts) - 1
        return tuple(facts[min(place * len(facts) // n_tokens, last)] for place in range(n_tokens))

    of_tokens: dict[str, Any] = {name: of(getattr(context, name)) for name in TOKEN_FACTS.values()}
    return replace(context, **of_tokens)
