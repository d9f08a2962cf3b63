"""The places in a run that a click in a picture leads to, whatever the model is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypedDict

from visualizer.components.events import whole_number_in
from visualizer.runs.paths import layer_of, number_in, without_layer
from visualizer.settings.fields import MOST_LAYERS
from visualizer.settings.settings import MOST_DRAWN
from visualizer.settings.watched_settings import MOST_SIDE
from visualizer.state import drafts, state
from visualizer.state.state import Choices

if TYPE_CHECKING:  # they bring torch, which the opening picture does without
    from visualizer.runs.run import Run
    from visualizer.runs.watched import WatchedRun

_VISIT = "visit_from_the_way"

STEP = 256
"""The queries, or keys, that the part that is drawn of a long recording is moved by."""


def go_to(run: Run, path: str) -> None:
    """Make the stage at ``path`` the current one."""
    if run.seen is None:
        state.select(stage=without_layer(path), layer=layer_of(path))
    elif (layer := number_in(path)) is None:
        state.select(stage=path)
    else:
        state.select(stage=path, layer=min(layer, MOST_LAYERS - 1))


def look_at(run: Run, row: int, column: int) -> None:
    """Look at one number of a stage; its row is the query of every view."""
    state.select_cell(row if run.seen is None else _among_drawn(row), column)


def query_of(choices: Choices) -> int:
    """The query that is looked at, counted from the first token: a link counts from the first one drawn."""
    return choices.watched.watched_first_query + choices.selection.query


def look_at_query(query: int) -> None:
    """Look at a query, counted from the first token, and have it among those that are drawn."""
    state.select(query=_among_drawn(query))


def _among_drawn(query: int) -> int:
    """The same counted from the first one drawn, which is another one where it would not be drawn."""
    first = state.chosen().watched.watched_first_query
    if not first <= query < first + MOST_SIDE:
        first = min(query, MOST_DRAWN - 1) // STEP * STEP
        state.watch(watched_first_query=first)
    return query - first


def show_heads(seen: WatchedRun, path: str, **places: int) -> None:
    """Show an attention in Heads: in a recording by its path, in a checkpoint by its layer."""
    from visualizer.runs.seen import kind_of  # brings torch

    attention = seen.trace[path]
    layer, chosen = seen.kind_of(attention).index(attention), state.chosen()
    is_recorded = chosen.selection.source == "recording"
    stage = path if is_recorded else f"{kind_of(attention, chosen.settings.architecture)}.weights"
    state.select(view="heads", stage=stage, layer=layer, **places)


class Listeners(TypedDict):
    """The listeners to the events of the picture of one token's way, by their names."""

    open: Callable[[object], None]
    shown: Callable[[object], None]


def listeners(paths: Collection[str], seen: WatchedRun | None = None) -> Listeners:
    """Return the listeners to the events of the picture, which may lead to the stages ``paths``.

    Of a pass that was watched, ``seen``, they are operations and attentions.
    """

    def show(event: object) -> None:
        look_at_query(state.index_in(event, "query"))
        if (layer := whole_number_in(event, "layer")) is not None:
            state.select(layer=min(layer, MOST_LAYERS - 1))

    def open_stage(event: object) -> None:
        path = event.get("path") if isinstance(event, Mapping) else None
        if not isinstance(path, str) or path not in paths:
            return
        show(event)
        chosen = whole_number_in(event, "head")
        head = {} if chosen is None else {"head": chosen}
        if seen is not None and head:
            show_heads(seen, path, **head)
        elif seen is not None:
            steps = (step.path for step in seen.trace.patterns.values() if step.stages[-1] == path)
            state.select(view="step", stage=next(steps, path))
        else:
            state.select(view="step", stage=without_layer(path), layer=layer_of(path), **head)
        drafts.put_by(_VISIT, True)

    return Listeners(open=open_stage, shown=show)


def is_visit() -> bool:
    """True if the stage in sight was opened by a click in the picture."""
    return drafts.put_by_before(_VISIT) is True


def forget_visit() -> None:
    """Another view is in sight."""
    drafts.put_by(_VISIT, False)
