"""The acts of a person in the picture of one token's way, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypedDict

from visualizer.runs.paths import layer_of, without_layer
from visualizer.state import drafts, state

_VISIT = "visit_from_the_way"


class Listeners(TypedDict):
    """The listeners to the events of the picture, by their names."""

    open: Callable[[object], None]
    shown: Callable[[object], None]


def listeners(paths: Collection[str]) -> Listeners:
    """Return the listeners to the events of the picture, which may lead to the stages ``paths``."""

    def show(event: object) -> None:
        state.select(query=state.index_in(event, "query"))

    def open_stage(event: object) -> None:
        path = event.get("path") if isinstance(event, Mapping) else None
        if not isinstance(path, str) or path not in paths:
            return
        state.select(
            view="step", stage=without_layer(path), layer=layer_of(path), query=state.index_in(event, "query")
        )
        drafts.put_by(_VISIT, True)
        if state.has_index(event, "head"):
            state.select(head=state.index_in(event, "head"))

    return Listeners(open=open_stage, shown=show)


def is_visit() -> bool:
    """True if the stage in sight was opened by a click in the picture."""
    return drafts.put_by_before(_VISIT) is True


def forget_visit() -> None:
    """Another view is in sight."""
    drafts.put_by(_VISIT, False)
