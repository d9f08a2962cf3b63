"""The parts around the picture, and whether a change touches them.

Sidebar and header are two thirds of what a change of the page sends, and most changes leave them as they are: then
the picture alone is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Event
from typing import Any

import streamlit as st

from visualizer.page import header, sidebar
from visualizer.page.warming import is_warm
from visualizer.server.garbage import freeze_imports
from visualizer.server.turns import Turns
from visualizer.settings.settings import Selection, Settings
from visualizer.state import drafts, state
from visualizer.state.part import draw_all, draw_alone, part
from visualizer.state.state import Choices

_PICTURE = "picture"
_DRAWN = "surroundings_drawn"
_TURNS = Turns()


@dataclass(frozen=True)
class Surroundings:
    """Header and sidebar as a value: equal ones look the same.

    Attributes:
        header: what the header depends on, but for its control.
        lines: the elements of the sidebar.
        values: what each control shows, by the name of its setting.
    """

    header: tuple[object, ...]
    lines: sidebar.Lines
    values: Mapping[str, object]

    def after(self, name: str, value: object) -> Surroundings:
        """Header and sidebar after a person gave the control ``name`` another value, before anything is drawn."""
        taken = tuple(value) if isinstance(value, list) else value
        return replace(self, values={**self.values, name: taken})


def around(choices: Choices) -> Surroundings:
    """Return the header and the sidebar around the picture of some choices."""
    return _around(choices.settings, choices.selection, sidebar.lines_of_source(choices))


@lru_cache(maxsize=64)  # asked for when a control was changed, and again when the picture is drawn
def _around(settings: Settings, selection: Selection, of_source: tuple[sidebar.Line, ...]) -> Surroundings:
    lines = sidebar.lines_for(settings, selection, of_source)
    values = {name: getattr(selection if hasattr(selection, name) else settings, name) for name in lines.fields}
    return Surroundings(header.depends_on(selection), lines, {**values, "view": selection.view})


def foreseen(choices: Choices, name: str, value: object) -> Choices:
    """The choices after a person gave the control of a setting another value, and did nothing else.

    Where more was done at once, the picture finds something else around it, and has the whole page drawn.
    """
    if value is None:  # a pressed choice that is pressed again: it stays
        return choices
    changes: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value}
    if hasattr(choices.selection, name):
        return replace(choices, selection=replace(choices.selection, **changes))
    return state.with_changes(choices, **changes)


def draw(picture: Callable[[], None], *, picture_first: bool) -> None:
    """Draw the whole page.

    Args:
        picture: draws all below the header.
        picture_first: whether it is sent before what stands around it, in the place that it has.
    """
    drafts.put_by(_DRAWN, None)  # until all is drawn: a run can be broken off
    header.style()
    sidebar.title()
    top = st.container(key="top")
    if picture_first:
        _part(picture)
    choices = state.chosen()
    with _TURNS.turn():
        drawn = around(choices)
        sidebar.controls(drawn.lines, changed)
        with top:
            header.header(changed)
    drafts.put_by(_DRAWN, drawn)
    if not picture_first:
        _part(picture)


def _part(picture: Callable[[], None]) -> None:
    """Draw the picture, now and whenever it changes alone; the whole page where a change touches the rest."""
    is_drawn = Event()

    def draw_picture() -> None:
        if not is_drawn.is_set():
            is_drawn.set()
            with _TURNS.turn():
                picture()
            return
        with _TURNS.turn():
            if around(state.load()) != drafts.put_by_before(_DRAWN):
                draw_all()
            picture()
        state.show_link()
        freeze_imports()

    part(_PICTURE, draw_picture)


def changed(name: str, value: object) -> None:
    """A person changed the control of a setting: where nothing else around the picture follows, draw that alone.

    For the end of a callback.
    """
    drawn = drafts.put_by_before(_DRAWN)
    if not is_warm() or not isinstance(drawn, Surroundings):
        return
    seen, wanted = drawn.after(name, value), around(foreseen(state.chosen(), name, value))
    if seen == wanted:
        drafts.put_by(_DRAWN, wanted)
        draw_alone(_PICTURE)
