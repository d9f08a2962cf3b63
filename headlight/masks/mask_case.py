"""A mask to be checked, and what is said about it: the case, the finding, and the words for positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from model.texts import listed

Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Most severe first: an error makes the model compute something wrong, a warning may, a note is worth knowing."""

NUMBER_TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""The types that scores are computed in."""

Role = Literal["query", "key"]

_PLURALS: Mapping[Role, str] = {"query": "queries", "key": "keys"}
_MOST_NAMED = 3


@dataclass(frozen=True, eq=False)
class MaskCase:
    """One mask and what is known about its tokens and its use. Positions count from 0.

    Nobody reads the row of a padding query, so whatever it shows is no fault. Where queries and keys differ in
    number, a future key is one that comes later under both usual alignments of the two.

    Attributes:
        allowed: (Tq, Tk) bool, True = may attend.
        query_is_padding: (Tq,) bool.
        key_is_padding: (Tk,) bool.
        causal: whether the model must not see later tokens.
        fill: what stands in the scores for a blocked cell, or is added to them; None is -inf.
        dtype: number type of the scores, one of ``NUMBER_TYPES``; None is float32.
        largest_score: how far from zero a scaled score can be, on either side.

    Raises:
        ValueError: shapes or types do not fit, ``fill`` is NaN or +inf, ``largest_score`` is below 0 or infinite.
    """

    allowed: Tensor
    query_is_padding: Tensor
    key_is_padding: Tensor
    causal: bool
    fill: float | None = None
    dtype: torch.dtype | None = None
    largest_score: float = 100.0

    def __post_init__(self) -> None:
        shape = tuple(self.allowed.shape)
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"allowed has shape {shape}: it must be (Tq, Tk), both at least 1")
        check_flags("allowed", self.allowed, shape)
        check_flags("query_is_padding", self.query_is_padding, shape[:1])
        check_flags("key_is_padding", self.key_is_padding, shape[1:])
        if self.fill is not None and not self.fill < math.inf:
            raise ValueError(f"fill ({self.fill}) must be a number below infinity, such as -inf or -1e4")
        if self.number_type not in NUMBER_TYPES:
            raise ValueError(f"dtype ({self.dtype}) must be one of: {', '.join(map(str, NUMBER_TYPES))}")
        if not 0 <= self.largest_score < math.inf:
            raise ValueError(f"largest_score ({self.largest_score}) must be at least 0 and finite")

    @property
    def n_queries(self) -> int:
        """Tq."""
        return self.allowed.shape[0]

    @property
    def n_keys(self) -> int:
        """Tk."""
        return self.allowed.shape[1]

    @property
    def is_square(self) -> bool:
        """True if query i and key i can be taken for one token."""
        return self.n_queries == self.n_keys

    @property
    def number_type(self) -> torch.dtype:
        """Number type of the scores."""
        return torch.float32 if self.dtype is None else self.dtype

    @property
    def real(self) -> Tensor:
        """(Tq, 1), True in the rows that are read: those of queries that are not padding."""
        return ~self.query_is_padding[:, None]

    @property
    def offset(self) -> int:
        """The number of keys before query 0: as many as there are more keys than queries."""
        return max(0, self.n_keys - self.n_queries)

    @property
    def future(self) -> Tensor:
        """(Tq, Tk), True where the model must not see the key because it comes after the query."""
        return ~self.reaching(self.offset) if self.causal else torch.zeros_like(self.allowed)

    @property
    def tokens(self) -> Tensor:
        """(Tq, Tk), True where neither the query nor the key is padding."""
        return self.real & ~self.key_is_padding

    @property
    def must_block(self) -> Tensor:
        """(Tq, Tk), True where a row that is read would show padding or the future."""
        return self.real & (self.key_is_padding | self.future)

    @property
    def may_open(self) -> Tensor:
        """(Tq, Tk), True where a cell can be allowed without a fault."""
        return ~self.future & ~(self.key_is_padding & self.real)

    @property
    def own(self) -> Tensor:
        """(Tq, Tk), True where query and key are one token; nowhere if they differ in number."""
        return self.diagonal(0) if self.is_square else torch.zeros_like(self.allowed)

    def reaching(self, last: int) -> Tensor:
        """(Tq, Tk), True up to key q + ``last``, which is 0 for a causal mask from the top left corner."""
        return torch.ones_like(self.allowed).tril(last)

    def diagonal(self, ahead: int) -> Tensor:
        """(Tq, Tk), True at key q + ``ahead``."""
        return self.reaching(ahead) & ~self.reaching(ahead - 1)

    def with_allowed(self, allowed: Tensor) -> MaskCase:
        """The same tokens under another mask."""
        return replace(self, allowed=allowed)


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing to know about a mask.

    Attributes:
        rule: name of the rule that found it.
        title: what is the matter, in a few words.
        severity: how much it matters.
        cells: (Tq, Tk) bool, the cells that it is about.
        why: one sentence, why it matters.
        mend: one line, how to mend it.
        mended: (Tq, Tk) bool, a mask in which it is mended; None where no one mask does that.
    """

    rule: str
    title: str
    severity: Severity
    cells: Tensor
    why: str
    mend: str
    mended: Tensor | None = None


def check_flags(name: str, flags: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse flags of another shape or type.

    Raises:
        ValueError: they are.
    """
    if flags.shape != shape or flags.dtype is not torch.bool:
        found = f"{tuple(flags.shape)} of {flags.dtype}"
        raise ValueError(f"{name} is {found}: it must be {shape} of torch.bool to fit the mask")


def named(role: Role, marked: Tensor) -> str:
    """Name the positions that (T,) bool marks: ``query 3``, ``keys 0 and 2``, ``keys 0, 1, 2 and 4 more``."""
    positions = marked.nonzero().flatten().tolist()
    return f"{role if len(positions) == 1 else _PLURALS[role]} {listed(positions, _MOST_NAMED)}"


def counted(role: Role, count: int) -> str:
    """``1 query``, ``5 keys``."""
    return f"{count} {role if count == 1 else _PLURALS[role]}"
