"""The members of a class, also after the page was loaded again: a browser keeps a random text for each class.

The code of a class is made of the text of who began it, which nobody else has: so they teach it, on any server.
Everybody else who has its link is a student.
"""

from __future__ import annotations

import re
import secrets

import streamlit as st

from visualizer.state import drafts, state
from visualizer.state.widget_values import give
from visualizer.work.classroom import code_of

_COOKIE = "headlight_class_{code}"
_KEY = re.compile("[0-9a-f]{32}")
_DAY = 24 * 60 * 60


def begin() -> str:
    """Have this browser teach a new class, and show it the poll; the code of the class."""
    key = secrets.token_hex(16)
    code = code_of(key)
    drafts.put_by(_COOKIE.format(code=code), key)
    give("show_class", True)
    return code


def is_student() -> bool:
    """True if this browser is in a class that another one teaches, which alone may reveal what is covered."""
    code = state.chosen().selection.class_code
    return bool(code) and code_of(key_in(code)) != code


def key_in(code: str) -> str:
    """Return the key of a browser in a class: what the session knows, else what the browser has kept, else new."""
    name = _COOKIE.format(code=code)
    found = drafts.put_by_before(name) or st.context.cookies.get(name, "")
    if not isinstance(found, str) or not _KEY.fullmatch(found):
        found = secrets.token_hex(16)
    drafts.put_by(name, found)
    return found


def cookie() -> str:
    """Return the cookie that the browser keeps for a day; "" without a class."""
    code = state.chosen().selection.class_code
    return f"{_COOKIE.format(code=code)}={key_in(code)}; max-age={_DAY}; samesite=lax" if code else ""
