"""Controls of a page by their names: the key of one is its name, and a number where it was given another value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from visualizer.settings.fields import fields_of, value_in
from visualizer.state import state

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest
    from streamlit.testing.v1 import AppTest


def control_named(drawn: Iterable[Any], key: str) -> Any:
    """The control of a name among those that are drawn."""
    for control in drawn:
        if re.fullmatch(rf"{re.escape(key)}(-\d+)?", control.key or ""):
            return control
    raise KeyError(key)


def hear_as_first_drawn(monkeypatch: pytest.MonkeyPatch, listen: str, act: str) -> None:
    """Have an act done as the first picture gave it, as where a person is faster than the runs between."""
    heard, drawn = getattr(state, listen), []

    def listening(*arguments: object, **named: object) -> object:
        if any(getattr(each, "__name__", "") == act for each in arguments):
            drawn.append(arguments)
            return heard(*drawn[0], **named)
        return heard(*arguments, **named)

    monkeypatch.setattr(state, listen, listening)


def open_menu(app: AppTest, name: str) -> AppTest:
    """The page after a click on the button of a menu."""
    app.session_state[_key_of(app, name)] = True
    return app.run()


def is_open(app: AppTest, name: str) -> bool:
    """True if a menu is open."""
    key = _key_of(app, name)
    return key in app.session_state and bool(app.session_state[key])


def chosen(app: AppTest, name: str) -> Any:
    """Return the value that is chosen for a field."""
    choices = app.session_state["_choices"]
    parts = (choices.settings, choices.selection, choices.training, choices.watched)
    return next(value_in(part, name) for part in parts if name in fields_of(type(part)))


def _key_of(app: AppTest, name: str) -> str:
    if "_controls" not in app.session_state:
        return name
    return next(reversed(app.session_state["_controls"].get(name, {})), name)
