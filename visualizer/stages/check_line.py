"""A check as one line of Markdown with its tick, and all of a stage as one."""

from __future__ import annotations

from collections.abc import Sequence

from model.texts import texts_of
from visualizer.stages.checks import Check

say = texts_of(__name__)

_MARKS = {True: ":green[:material/check_circle:]", False: ":red[:material/cancel:]", None: ":material/info:"}


def check_line(check: Check) -> str:
    """A tick, a cross or, for a remark, an i, then the text."""
    return f"{_MARKS[check.holds]} {check.text.replace('|', chr(92) + '|')}"


def summary_line(checks: Sequence[Check]) -> str:
    """``✓ 5 checks passed``, or ``✗ 1 of 5 checks failed``, and how many remarks stand beside them."""
    held = [check.holds for check in checks if check.holds is not None]
    failed, n_remarks = held.count(False), len(checks) - len(held)
    found = say("failed", count=failed, checks=len(held)) if failed else say("passed", checks=len(held))
    return f"{_MARKS[not failed]} {found}{say('remarks', count=n_remarks) if n_remarks else ''}"


def all_hold(checks: Sequence[Check]) -> bool:
    """True if no check fails; a remark cannot."""
    return all(check.holds is not False for check in checks)
