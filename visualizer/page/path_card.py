"""The guided path above the picture: the card of its stop, and the doors to other paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

import streamlit as st

from model.texts import texts_of
from visualizer.components.path_card.element import PathCard, path_card
from visualizer.glossary import GLOSSARY
from visualizer.guide.known_paths import chosen_path, keep_path, usual_path
from visualizer.guide.path import MAX_BYTES, GuidedPath, read_path, write_path
from visualizer.guide.walking import facts_of_stop, go_to, is_at, nearest_stop, stops_of
from visualizer.guide.words import words_of_stop
from visualizer.page import sidebar
from visualizer.page.file_field import file_field
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.fields import PRETRAINED
from visualizer.settings.settings import Selection
from visualizer.state import state

say = texts_of(__name__)

_KEY = "path_card"


def walk(run: Run, selection: Selection) -> None:
    """Draw the card of the stop."""
    path = chosen_path(selection)
    numbers = stops_of(run, path, selection) if path else ()
    with _line():
        if path is None:
            st.warning(say("not_open"))
        elif not numbers:
            st.info(say("no_places"))
        else:
            _card(run, selection, path, numbers)
        _beside(path, has_card=bool(numbers))


def walk_nowhere(selection: Selection, say_why: Callable[[], None]) -> None:
    """Draw in the place of the card why there is no run to walk through, and how the path goes on."""
    with _line():
        with st.container():
            say_why()
            st.info(say("goes_on"))
        _beside(chosen_path(selection), has_card=False)


def _line() -> AbstractContextManager[object]:
    return st.container(key="path", horizontal=True, vertical_alignment="top", gap="small")


def _beside(path: GuidedPath | None, *, has_card: bool) -> None:
    """Draw what a person on the path needs: their text, another path, and the way out where no card has it."""
    choices = state.chosen()
    with st.container(key="beside_path", gap="xsmall", width="content"):
        if sidebar.has_texts(choices.settings):
            with st.popover(say("your_text"), width="stretch"):
                sidebar.texts(choices.settings)
        _other_paths(path)
        if not has_card:
            way_out()


def way_out() -> None:
    """The button that leaves the path where no card has it."""
    st.button(say("leave"), key="leave_path", on_click=state.callback(state.select, guided=False))


def _card(run: Run, selection: Selection, path: GuidedPath, numbers: tuple[int, ...]) -> None:
    number = nearest_stop(numbers, selection.stop)
    stop = path.stops[number - 1]
    facts, entries = facts_of_stop(run, stop, selection), frozenset(GLOSSARY)
    onward = _onward(run) if number == numbers[-1] else ()
    card = PathCard(
        title=stop.title,
        words=words_of_stop(stop.words, facts, entries),
        trial=words_of_stop(stop.trial, facts, entries),
        stops=[(one, path.stops[one - 1].title) for one in numbers],
        current=numbers.index(number),
        is_here=is_at(run, stop, selection),
        onward=onward,
    )
    mount(
        path_card(card, key=_KEY),
        go=lambda event: go_to(state.index_in(event, "stop")),
        leave=lambda _: state.select(guided=False, **({"stop": 0} if onward else {})),
        onward=lambda event: _leave_for(event, onward),
    )


_OF_EXAMPLES: tuple[tuple[str, str], ...] = (
    ("step", say("all_stages")),
    ("heads", say("all_heads")),
    ("compare", say("compare")),
)


def _onward(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the views to offer at the path's end, with their labels; of a worked example, those that it has."""
    if (example := run.example) is not None:
        has = {"step": True, "heads": example.attends, "compare": example.mask is not None}
        return tuple((view, label) for view, label in _OF_EXAMPLES if has[view])
    if run.settings.weights == PRETRAINED:
        return ("way", say("way")), ("compare", say("compare")), ("heads", say("all_heads"))
    writes = run.settings.architecture in ("decoder", "encoder-decoder")
    last: tuple[str, str] = ("generate", say("generate")) if writes else ("compare", say("compare"))
    return ("lab", say("lab")), ("heads", say("heads")), last


def _leave_for(event: object, onward: Sequence[tuple[str, str]]) -> None:
    view = event.get("view") if isinstance(event, Mapping) else None
    if chosen := next((one for one, _ in onward if one == view), None):
        state.select(view=chosen, guided=False, stop=0)


def _other_paths(path: GuidedPath | None) -> None:
    """Open a path from a file, save the one that is open, or go back to the one that comes with Headlight."""
    with st.popover(say("paths"), width="stretch"):
        st.caption(say("about_paths"))
        if path is not None:
            st.markdown(f"**{markdown_safe(path.title)}**")
            st.download_button(say("save"), write_path(path), "path.json", "application/json", key="save_path")
        file_field(say("open"), key="path_file", most_bytes=MAX_BYTES, take=_open_file)
        if path is not usual_path(state.chosen().selection):
            st.button(say("back"), key="first_path", on_click=state.callback(_open_path, ""))


def _open_file(file: bytes) -> None:
    """Read the file that was chosen; a bad one leaves the path that is open."""
    _open_path(keep_path(read_path(file)))


def _open_path(name: str) -> None:
    state.select(path=name, guided=True, stop=1)
    go_to(1)
