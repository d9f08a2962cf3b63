"""Who teaches a class: the session that began it, or took it over. Everybody else who has its link is a student."""

from __future__ import annotations

from visualizer.state import drafts, state
from visualizer.state.controls import give

_CODE = "teaches"


def teach(code: str) -> None:
    """Have this session teach the class, and show it the poll."""
    drafts.put_by(_CODE, code)
    give("show_class", True)


def is_student() -> bool:
    """Whether this session is in a class that another one teaches, which alone may reveal what is covered."""
    code = state.chosen().selection.class_code
    return bool(code) and drafts.put_by_before(_CODE) != code
