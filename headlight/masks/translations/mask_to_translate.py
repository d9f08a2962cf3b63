"""The mask to translate, and what is known of its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from headlight.masks.language import TOKEN_FACTS, MaskContext
from headlight.masks.mask_case import check_flags
from model.texts import texts_of

say = texts_of(__name__)


@dataclass(frozen=True, eq=False)
class MaskToTranslate:
    """A mask, and what is known of its tokens. Positions count from 0.

    Attributes:
        allowed: (H or 1, Tq, Tk) bool, True = may attend.
        query_is_padding: (Tq,) bool.
        key_is_padding: (Tk,) bool.
        n_heads: H.
        condition: the mask of all heads as one line of PyTorch (``Expression.torch_code()``), which gives the same
            cells as ``allowed``; None has the cells written out.
        facts: what ``condition`` asks of the tokens; None where it asks nothing.
        crosses: whether queries and keys are different tokens, as in cross-attention.

    Raises:
        ValueError: shapes or types do not fit, or ``condition`` asks for facts that are not given.
    """

    allowed: Tensor
    query_is_padding: Tensor
    key_is_padding: Tensor
    n_heads: int
    condition: str | None = None
    facts: MaskContext | None = None
    crosses: bool = False

    def __post_init__(self) -> None:
        shape = tuple(self.allowed.shape)
        if len(shape) != 3 or 0 in shape or shape[0] not in (1, self.n_heads):
            raise ValueError(f"allowed has shape {shape}: it must be (1, Tq, Tk) or ({self.n_heads}, Tq, Tk)")
        check_flags("allowed", self.allowed, shape)
        check_flags("query_is_padding", self.query_is_padding, shape[1:2])
        check_flags("key_is_padding", self.key_is_padding, shape[2:])
        asked = names_in(self.condition or "", TOKEN_FACTS)
        if asked and self.facts is None:
            raise ValueError(f"the condition asks for {', '.join(asked)}: facts must be given")

    @property
    def n_queries(self) -> int:
        """Tq."""
        return self.allowed.shape[1]

    @property
    def n_keys(self) -> int:
        """Tk."""
        return self.allowed.shape[2]

    @property
    def is_per_head(self) -> bool:
        """True if heads differ."""
        return bool((self.allowed != self.allowed[:1]).any())

    @property
    def shared_condition(self) -> str | None:
        """The condition where it serves all heads."""
        return None if self.is_per_head else self.condition

    @property
    def causal(self) -> Tensor:
        """The causal mask of this size, (Tq, Tk) bool."""
        return torch.ones(self.n_queries, self.n_keys, dtype=torch.bool).tril()

    @property
    def is_seen(self) -> Tensor:
        """The keys that a query of some head may attend to, (Tk,) bool."""
        return self.allowed.any(1).any(0)

    @property
    def hidden_padding(self) -> Tensor:
        """The padding keys that no query of any head may attend to, (Tk,) bool."""
        return self.key_is_padding & ~self.is_seen


def names_in(code: str, names: Iterable[str]) -> list[str]:
    """Those of the names that are used in a piece of code."""
    return [name for name in names if re.search(rf"\b{name}\b", code)]


def check_is_over_one_sequence(mask: MaskToTranslate, taker: str) -> None:
    """Refuse a mask of cross-attention, and one whose queries and keys differ in number.

    Raises:
        ValueError: it is one.
    """
    if mask.crosses:
        raise ValueError(say("crosses", taker=taker))
    if mask.n_queries != mask.n_keys:
        raise ValueError(say("other_numbers", taker=taker, n_queries=mask.n_queries, n_keys=mask.n_keys))
