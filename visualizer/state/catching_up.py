"""What the browser has not heard of yet.

A page sends the values of all its controls with whatever it says, also when only a clock of the page asks for
another look. What it says before it has drawn what was changed here holds values that were taken back long ago, and
nobody chose them now. The address tells: it is sent last, so a page with an address that it should have left does
not yet show what the others show. The browser has a new address sooner than its controls have their new values: a
number that nobody sees is given and drawn after them, and a page that has it has theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from visualizer.state.memory import address, memory
from visualizer.state.streamlit_internals import has_gone_back

_LEFT = "_left_addresses"
_REPLACED = "_replaced_values"
_TOLD, _HEARD = "_told", "heard"
_MOST = 32  # addresses: a page is seldom behind by more than one

Address = Mapping[str, str]


def shows(link: Address, *, is_told: bool) -> None:
    """The page has this link now; ``is_told`` where the browser has spoken with it, and not with the one before."""
    spoken = address()
    addresses = [known for known in _left() if known not in (spoken, link)]
    memory[_LEFT] = addresses if is_told else [*addresses, spoken][-_MOST:]


def replaced(key: str, value: object) -> None:
    """The control ``key`` has been given another value than this one, which the browser has not heard of."""
    known = memory.get(_REPLACED, {})
    memory[_REPLACED] = known | {key: [*known.get(key, ()), value]}


def is_unheard(key: str) -> bool:
    """Whether the control ``key`` was given a value that the browser has not heard of.

    It is given once more then: a run that is broken off sends nothing.
    """
    return key in memory.get(_REPLACED, {})


def is_read_as(key: str, value: object) -> None:
    """The control ``key`` reads what it does not offer as this, which may be what it offered to the browser."""
    if is_unheard(key):
        replaced(key, value)


def caught_up() -> None:
    """The browser shows all that was changed."""
    for record in (_LEFT, _REPLACED):
        memory.pop(record, None)


def begin_to_tell() -> None:
    """Count a run that draws all controls, before it does: one that is broken off was not heard."""
    if memory.get(_REPLACED):
        memory[_TOLD] = 1 + max(memory.get(name, 0) for name in (_TOLD, _HEARD))


def tell() -> None:
    """Draw, after all controls, the number that the browser says with their values when it has taken these over."""
    if memory.get(_REPLACED):
        memory[_HEARD] = memory.get(_TOLD, 0)
    st.number_input("Heard", step=1, key=_HEARD, label_visibility="collapsed")


def has_old_values() -> bool:
    """Whether the browser spoke before its controls had the values of the last change."""
    return memory.get(_HEARD, 0) < memory.get(_TOLD, 0) or address() in _left()


def is_behind() -> bool:
    """Whether the browser spoke before it heard of the last change. Back and Forward mean where they go to."""
    return has_old_values() and not has_gone_back()


def is_old(key: str, value: object) -> bool:
    """Whether a browser that is behind has not heard that the control ``key`` no longer has this value."""
    return value in memory.get(_REPLACED, {}).get(key, ()) and has_old_values()


def without_old(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of controls, as a browser that is behind sent them, that it did not merely still show."""
    old = memory.get(_REPLACED, {})
    return {key: value for key, value in values.items() if value not in old.get(key, ())}


def _left() -> list[Address]:
    addresses: list[Address] = memory.get(_LEFT, [])
    return addresses
