"""The token strip, and reads which token a person chose on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeGuard

from visualizer.components.axis import SequenceName
from visualizer.components.packing import pack
from visualizer.components.picture import Picture


@dataclass(frozen=True)
class Token:
    """One token.

    index: its position in the sequence.
    label: its text, invisible characters made visible already.
    id: its number in the vocabulary; None for a vector of a worked example, which is of none.
    padding: whether it only fills the sequence up.
    special: whether it stands for something other than text.
    """

    index: int
    label: str
    id: int | None
    padding: bool = False
    special: bool = False


@dataclass(frozen=True)
class TokenSequence:
    """One row of the strip: the sequence's name as in ``Axis.sequence``, its title and its tokens."""

    name: SequenceName
    title: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class TokenChoice:
    """The token that a person made the query, and the number of their choices so far."""

    sequence: str
    index: int
    seq: int


def token_strip(
    sequences: Sequence[TokenSequence],
    *,
    selected_query: tuple[str, int] | None,
    seq: int,
    key: str,
) -> Picture:
    """The strip.

    Args:
        sequences: the rows, from top to bottom.
        selected_query: name of the sequence and index of the token that is the query, None for no query.
        seq: ``TokenChoice.seq`` of the last choice that ``selected_query`` takes account of, 0 before the first.
        key: identifies the element on the page.

    Its event `select` says which token a person has chosen: `parse_token` reads it.
    """
    header = {
        "key": key,
        "sequences": [asdict(sequence) for sequence in sequences],
        "selected": _describe_query(selected_query),
        "seq": seq,
    }
    return Picture("token_strip/element.js", pack(header, {}), key, ("select",))


def parse_token(value: object, sequences: Sequence[TokenSequence]) -> TokenChoice | None:
    """Read what the browser sent as ``select``; None unless it is one of these tokens with a sequence number."""
    if not isinstance(value, dict):
        return None
    name, index, seq = value.get("sequence"), value.get("index"), value.get("seq")
    if not _is_count(index) or not _is_count(seq):
        return None
    sequence = next((sequence for sequence in sequences if sequence.name == name), None)
    return None if sequence is None or index >= len(sequence.tokens) else TokenChoice(sequence.name, index, seq)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _describe_query(selected_query: tuple[str, int] | None) -> dict[str, Any] | None:
    if selected_query is None:
        return None
    sequence, index = selected_query
    return {"sequence": sequence, "index": index}
