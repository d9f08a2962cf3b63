"""The tokens above the views of a model that was not built here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from visualizer.components.axis import SequenceName
from visualizer.components.token_strip.element import TokenSequence, parse_token
from visualizer.state.places import look_at_query, query_of
from visualizer.state.state import Choices


class OnTop(Protocol):
    """Draws the tokens above a view, with the menus beside them."""

    def __call__(
        self,
        rows: Sequence[TokenSequence],
        selected: tuple[SequenceName, int] | None,
        select: Callable[[object], None],
    ) -> None:
        """``selected`` has the query; ``select`` hears of a click."""


def draw_tokens(rows: Sequence[TokenSequence], choices: Choices, strip: OnTop) -> None:
    """Draw the tokens above a view, of which a click makes one the query; that of the last row is chosen."""

    def select(event: object) -> None:
        if found := parse_token(event, rows):
            look_at_query(found[1])

    query = min(query_of(choices), len(rows[-1].tokens) - 1)
    strip(rows, (rows[-1].name, query), select)
