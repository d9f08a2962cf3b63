"""The settings for a room: how it is presented, the keys, whether results are hidden and a class is counted."""

from __future__ import annotations

from contextlib import suppress
from secrets import token_hex
from typing import Any

import streamlit as st

from model.texts import texts_of
from visualizer.components.page_keys.element import Act, acts_in, page_keys
from visualizer.components.theme_links.element import theme_links
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.fields import MAX_TEXT, MAX_TYPED, MOST_HEADS, MOST_LAYERS
from visualizer.settings.sources import VIEWS_OF, has_run
from visualizer.settings.views import VIEWS
from visualizer.state import drafts, state, widgets
from visualizer.state.expectations import reveal_or_cover
from visualizer.state.screen_file import write_screen
from visualizer.state.state import Choices
from visualizer.state.theme import look_of
from visualizer.state.widget_values import give, key_of
from visualizer.work.membership import begin, cookie, is_student

say = texts_of(__name__)

_DONE = "keys_done"
_MENU = "audience_menu"


def audience_menu() -> None:
    """A button that opens the settings, beside the token strip; they are drawn when it is open."""
    icon = ":material/co_present:"
    key = key_of(_MENU)
    menu = st.popover(say("menu"), icon=icon, type="tertiary", width="content", key=key, on_change="rerun")
    if not menu.open:
        return
    close = state.callback(give, _MENU, False)
    with menu:
        widgets.switch("present", on_change=close)
        mount(theme_links({"light": look_of("light"), "dark": look_of("dark")}, key="theme_links"))
        if not is_student():
            widgets.switch("hidden", on_change=close)
        selection = state.chosen().selection
        if not has_run(selection.source, selection.view):
            st.caption(say("not_covered"))
        _class(selection.class_code)


def keys(n_tokens: int) -> None:
    """The keys of the whole page.

    Args:
        n_tokens: how many tokens there are to choose the query from; 0 for none.
    """
    key = "page_keys"

    def act(event: object) -> None:
        # Of two fast events the second may find the callback of before the first: what is done is kept apart.
        done = drafts.put_by_before(_DONE)
        drafts.put_by(_DONE, state.last_seq(key))
        for one in acts_in(event, done if isinstance(done, int) else 0):
            if one in ("hide", "reveal") and is_student():
                continue
            if one == "reveal":
                reveal_or_cover()
            else:
                state.select(**changes_by(one, state.chosen(), n_tokens))

    longest = {"": MAX_TEXT, **MAX_TYPED}
    choices = state.chosen()
    picture = page_keys(
        longest=longest,
        seq=state.last_seq(key),
        key=key,
        run=token_hex(4),
        cookie=cookie(),
        screen=write_screen(choices),
        addresses=(st.query_params.to_dict(), choices.link),
    )
    mount(picture, width="content", act=act, went=state.go_to)


def changes_by(act: Act, choices: Choices, n_tokens: int) -> dict[str, Any]:
    """Return the changes of the selection by an act."""
    settings, selection = choices.settings, choices.selection
    if act == "present":
        return {"present": not selection.present}
    if act == "hide":
        return {"hidden": not selection.hidden}
    name, _, direction = act.partition("_")
    step = 1 if direction == "next" else -1
    if name == "view":
        views = list(VIEWS_OF[selection.source])
        return {"view": views[(views.index(selection.view) + step) % len(views)]}
    is_built = selection.source == "built"  # who looks up a place takes the nearest
    n_layers, n_heads = (settings.depth, settings.n_heads) if is_built else (MOST_LAYERS, MOST_HEADS)
    bounds = {"layer": n_layers, "head": n_heads, "token": n_tokens}
    field = "query" if name == "token" else name
    return {field: _stepped(getattr(selection, field), step, bounds[name])} if bounds[name] else {}


def _stepped(place: int, step: int, n: int) -> int:
    """The place one step further, of ``n``."""
    return min(max(min(place, n - 1) + step, 0), n - 1)


def _begin_class() -> None:
    """Cover the results and show the poll, in a view that asks, with a first question that has one clear answer."""
    from visualizer.stages.informative import clear_row  # brings torch, which the page does without
    from visualizer.work.cache import cached_run

    if not has_run(state.chosen().selection.source, state.chosen().selection.view):
        state.show_source("built")
    choices = state.chosen()
    row = choices.selection.query
    with suppress(ValueError):  # the page says what is wrong with the settings
        row = clear_row(cached_run(choices.settings), choices.selection)
    view = choices.selection.view if VIEWS[choices.selection.view].asks else "heads"
    state.select(view=view, hidden=True, class_code=begin(), query=row)
    give(_MENU, False)


def _class(code: str) -> None:
    """The code of a class, or the button that makes one."""
    if not code:
        st.button(
            say("begin_class"),
            icon=":material/groups:",
            key="begin_class",
            on_click=state.callback(_begin_class),
            help=say("begin_class_help"),
        )
        return
    if is_student():
        st.caption(say("student", code=markdown_safe(code)))
    else:
        st.caption(say("class_made", code=markdown_safe(code)))
    leave = state.callback(state.select, class_code="")
    st.button(say("leave_class"), key="leave_class", on_click=leave, type="tertiary")
