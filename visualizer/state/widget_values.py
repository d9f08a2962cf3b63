"""The values that the controls of the page show, and those that a person chose.

A page says the values of all its controls with whatever it says, also those that were replaced and that it has not
heard of yet. So a control that is given another value becomes another control, with a key of its own. What differs
from what was last known under a key was chosen by a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

import streamlit as st

_CONTROLS = "_controls"
_DRAFTS = "_drafts"

Known = dict[str, object]
"""The values that a control is known to show, by its keys: the last is drawn, others may still be on the page."""


def give(name: str, value: object) -> str:
    """Have the control ``name`` show a value, which it is to be drawn with.

    Returns:
        The key to draw it by.
    """
    known = _known(name)
    key = key_of(name)
    value = _plain(value)
    if _plain(st.session_state.get(key, known.get(key, value))) != value:
        for old in [old for old in known if old not in st.session_state]:
            del known[old]
        key = f"{name}-{int(key.removeprefix(name).removeprefix('-') or 0) + 1}"
    known[key] = value
    return key


def give_emptiable(name: str, value: object) -> str:
    """The same for a control that a person can empty, which Streamlit allows where it is drawn without a value."""
    key = give(name, value)
    st.session_state[key] = value
    return key


class Draft(TypedDict):
    """The key to draw a field for text by, and what to draw it with."""

    key: str
    value: str


def give_draft(name: str, text: str) -> Draft:
    """Have a field for text show another text when ``text`` has changed, and what is written there otherwise."""
    drafts = st.session_state.setdefault(_DRAFTS, {})
    shown = text if drafts.get(name) != text else str(shown_in(name) or "")
    drafts[name] = text
    return Draft(key=give(name, shown), value=shown)


def forget_drafts(*names: str) -> None:
    """Have fields for text, all or those named, show what they are given next, whatever is written there."""
    known = st.session_state.get(_DRAFTS, {})
    st.session_state[_DRAFTS] = {name: text for name, text in known.items() if names and name not in names}


def key_of(name: str) -> str:
    """The key by which a control is drawn."""
    return next(reversed(_known(name)), name)


def shown_in(name: str) -> object:
    """Return the value that a control shows, or will once it is drawn; None where it was never given any."""
    key = key_of(name)
    return st.session_state.get(key, _known(name).get(key))


def is_given(name: str) -> bool:
    """True if a control is given its values here."""
    return bool(_known(name))


def keys_on_page(name: str) -> list[str]:
    """The keys under which a page has the control, the newest last."""
    return [key for key in _known(name) or (name,) if key in st.session_state]


def chosen_in(names: Iterable[str]) -> dict[str, object]:
    """Return the values that a person chose in controls since the last call, by the names of the controls."""
    found = {}
    values = st.session_state.to_dict()
    controls: dict[str, Known] = values.get(_CONTROLS, {})
    for name in names:
        newest = next(reversed(controls.get(name, {}).values()), None)
        for key, shown in controls.get(name, {}).items():
            value = _plain(values.get(key, shown))
            if value != shown:
                controls[name][key] = value
                found[name] = newest = _chosen(newest, shown, value)
    return found


def _chosen(newest: object, shown: object, value: object) -> object:
    """A value that was chosen in place of one shown; of several names, those that were added or taken away count.

    The page may not have heard of the newest value yet, which has others besides.
    """
    if not (isinstance(newest, tuple) and isinstance(shown, tuple) and isinstance(value, tuple)):
        return value
    stay = [name for name in newest if name in value or name not in shown]
    return (*stay, *(name for name in value if name not in (*shown, *stay)))


def _known(name: str) -> Known:
    known: Known = st.session_state.setdefault(_CONTROLS, {}).setdefault(name, {})
    return known


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
