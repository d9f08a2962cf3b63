"""The token strip, and reads which token a person chose on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from visualizer.components.axis import SequenceName
from visualizer.components.events import whole_number_in
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
        seq: the number of the last choice that ``selected_query`` takes account of, 0 before the first.
        key: identifies the element on the page.

    Its event `select` says which token a person has chosen: `parse_token` reads it.
    """
    selected = selected_query and dict(zip(("sequence", "index"), selected_query, strict=True))
    header = {"key": key, "sequences": list(sequences), "selected": selected, "seq": seq}
    return Picture("token_strip/element.js", pack(header, {}), key, ("select",))


def parse_token(value: object, sequences: Sequence[TokenSequence]) -> tuple[SequenceName, int] | None:
    """Read what the browser sent as ``select``: a sequence and an index; None unless it is one, with a number."""
    if not isinstance(value, Mapping) or whole_number_in(value, "seq") is None:
        return None
    for sequence in sequences:
        index = whole_number_in(value, "index", len(sequence.tokens))
        if value.get("sequence") == sequence.name and index is not None:
            return sequence.name, index
    return None
