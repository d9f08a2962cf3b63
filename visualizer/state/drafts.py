"""What lasts in a session and is no setting: what is typed but not taken over yet, and what was put by."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from visualizer.state import catching_up
from visualizer.state.memory import memory


def keep_in_step(key: str, text: str) -> None:
    """Give the text field ``key`` another text when ``text`` has changed; otherwise keep what is written there.

    Call it before the field is drawn.
    """
    given = f"_{key}_given"
    shown = memory.get(key)
    if shown is None or memory.get(given) != text or catching_up.is_old(key, shown):
        memory[given] = text
        fill(key, text)


def text_in(key: str) -> str:
    """What is written in the text field ``key``."""
    return str(memory.get(key) or "")


def fill(key: str, value: object) -> None:
    """Have the widget ``key`` show a value that is kept elsewhere, None to empty it.

    Call it before the widget is drawn, or in a callback.
    """
    if key not in memory or memory[key] != value:
        catching_up.replaced(key, memory.get(key))
    elif not catching_up.is_unheard(key):
        return
    memory[key] = value


def say_again(keys: Iterable[str]) -> None:
    """Give the controls ``keys`` their values once more. Call it before they are drawn."""
    for key in keys:
        if key in memory:
            memory[key] = memory[key]


def put_by(name: str, value: object) -> None:
    """Have ``put_by_before`` return a value under this name for the rest of the session."""
    memory[f"_{name}"] = value


def put_by_before(name: str) -> object:
    """What was put by under a name in this session; None before anything was."""
    return memory.get(f"_{name}")


def secret_of_session() -> str:
    """What this session and its page alone know: a random text."""
    drawn = put_by_before("session_secret")
    if drawn is None:
        drawn = secrets.token_hex(16)
        put_by("session_secret", drawn)
    return str(drawn)
