"""The panels by which a model that was not built here is shown in the views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from visualizer.components.axis import SequenceName
from visualizer.components.token_strip import TokenSequence, parse_token
from visualizer.settings.sources import Panel, panel_in
from visualizer.state import state
from visualizer.state.state import Choices


class OnTop(Protocol):
    """Draws the tokens above a view, with the menus beside them."""

    def __call__(
        self,
        rows: Sequence[TokenSequence],
        selected: tuple[SequenceName, int] | None,
        select: Callable[[object], None],
        *,
        more: Callable[[], None] | None = None,
    ) -> None:
        """``selected`` has the query; ``select`` hears of a click; ``more`` stands beside the glossary."""


def draw_tokens(
    rows: Sequence[TokenSequence], choices: Choices, strip: OnTop, *, more: Callable[[], None] | None = None
) -> None:
    """Draw the tokens above a view, of which a click makes one the query; that of the last row is chosen."""

    def select(event: object) -> None:
        if found := parse_token(event, rows):
            state.watch(watched_query=found.index)

    query = min(choices.watched.watched_query, len(rows[-1].tokens) - 1)
    strip(rows, (rows[-1].name, query), select, more=more)


def panel_of(choices: Choices) -> Panel:
    """The panel that is shown in the view that is open."""
    selection = choices.selection
    return panel_in(selection.source, selection.view, choices.watched.watched_panel)
