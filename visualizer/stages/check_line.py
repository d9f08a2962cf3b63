"""A check as one line of Markdown with its tick."""

from __future__ import annotations

from visualizer.stages.checks import Check

_MARKS = {True: ":green[:material/check_circle:]", False: ":red[:material/cancel:]", None: ":material/info:"}


def check_line(check: Check) -> str:
    """A tick, a cross or, for a remark, an i, then the text."""
    return f"{_MARKS[check.holds]} {check.text.replace('|', chr(92) + '|')}"
