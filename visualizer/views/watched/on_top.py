"""The tokens above the views of a model that was not built here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from visualizer.components.axis import SequenceName
from visualizer.components.token_strip import TokenSequence, parse_token
from visualizer.runs.recordings import MOST_SIDE
from visualizer.state import state
from visualizer.state.state import Choices

STEP = 256
"""The queries, or keys, that the part that is drawn is moved by."""


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
            look_at(found.index)

    query = min(query_of(choices), len(rows[-1].tokens) - 1)
    strip(rows, (rows[-1].name, query), select)


def query_of(choices: Choices) -> int:
    """The query that is looked at, counted from the first token: a link counts from the first one drawn."""
    return choices.watched.watched_first_query + choices.selection.query


def look_at(query: int) -> None:
    """Look at a query, counted from the first token, and have it among those that are drawn."""
    first = state.chosen().watched.watched_first_query
    if not first <= query < first + MOST_SIDE:
        first = query // STEP * STEP
        state.watch(watched_first_query=first)
    state.select(query=query - first)
