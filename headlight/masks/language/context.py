"""The facts about tokens that an expression may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

TOKEN_FACTS: Mapping[str, str] = {
    "query_token": "query_tokens",
    "key_token": "key_tokens",
    "query_is_padding": "query_is_padding",
    "key_is_padding": "key_is_padding",
    "query_segment": "query_segments",
    "key_segment": "key_segments",
}
"""The facts that a mask can ask of the tokens, by the name in its code: the name in ``MaskContext``."""


@dataclass(frozen=True, eq=False)
class MaskContext:
    """The known facts about the Tq queries and the Tk keys.

    Attributes:
        query_tokens: the token id of each query.
        key_tokens: the token id of each key.
        query_is_padding: True = this query is padding.
        key_is_padding: True = this key is padding.
        query_segments: the number of the document that each query is of.
        key_segments: the number of the document that each key is of.
        head: the number of the head, from 0.
        sequence: the number of the sequence in the batch, from 0.

    Raises:
        ValueError: the facts of the queries, or those of the keys, differ in number.
    """

    query_tokens: tuple[int, ...]
    key_tokens: tuple[int, ...]
    query_is_padding: tuple[bool, ...]
    key_is_padding: tuple[bool, ...]
    query_segments: tuple[int, ...]
    key_segments: tuple[int, ...]
    head: int = 0
    sequence: int = 0

    def __post_init__(self) -> None:
        _check_lengths("query", self.query_tokens, self.query_is_padding, self.query_segments)
        _check_lengths("key", self.key_tokens, self.key_is_padding, self.key_segments)

    @property
    def n_queries(self) -> int:
        """Tq."""
        return len(self.query_tokens)

    @property
    def n_keys(self) -> int:
        """Tk."""
        return len(self.key_tokens)

    def facts(self) -> Mapping[str, Tensor]:
        """Everything that a mask may ask for, by name: (Tq, 1), (1, Tk) or a scalar, int64 or bool."""
        numbers = {"n_queries": self.n_queries, "n_keys": self.n_keys, "h": self.head, "b": self.sequence}
        vectors = {"q": torch.arange(self.n_queries), "k": torch.arange(self.n_keys)}
        for name, field in TOKEN_FACTS.items():
            dtype = torch.bool if name.endswith("padding") else torch.int64
            vectors[name] = torch.tensor(getattr(self, field), dtype=dtype)
        placed = {name: facts[:, None] if name[0] == "q" else facts[None, :] for name, facts in vectors.items()}
        return placed | {name: torch.tensor(number) for name, number in numbers.items()}


def _check_lengths(
    side: str, tokens: tuple[int, ...], is_padding: tuple[bool, ...], segments: tuple[int, ...]
) -> None:
    if not len(tokens) == len(is_padding) == len(segments):
        raise ValueError(
            f"{side}_tokens ({len(tokens)}), {side}_is_padding ({len(is_padding)}) and {side}_segments "
            f"({len(segments)}) must be of one length: one entry for each {side}"
        )
