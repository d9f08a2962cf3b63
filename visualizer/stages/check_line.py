"""A check as one line of Markdown with its tick, and all of a stage as one."""

from __future__ import annotations

from collections.abc import Sequence

from visualizer.stages.checks import Check

_MARKS = {True: ":green[:material/check_circle:]", False: ":red[:material/cancel:]", None: ":material/info:"}


def check_line(check: Check) -> str:
    """A tick, a cross or, for a remark, an i, then the text."""
    return f"{_MARKS[check.holds]} {check.text.replace('|', chr(92) + '|')}"


def summary_line(checks: Sequence[Check]) -> str:
    """``✓ 5 checks passed``, or ``✗ 1 of 5 checks failed``, and how many remarks stand beside them."""
    held = [check.holds for check in checks if check.holds is not None]
    failed, n_remarks = held.count(False), len(checks) - len(held)
    if failed:
        said = f":red[**{failed} of {_counted(len(held), 'check')} failed**]"
    else:
        said = f"{_counted(len(held), 'check')} passed"
    beside = f" · {_counted(n_remarks, 'remark')}" if n_remarks else ""
    return f"{_MARKS[not failed]} {said}{beside}"


def all_hold(checks: Sequence[Check]) -> bool:
    """Whether no check fails; a remark cannot."""
    return all(check.holds is not False for check in checks)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
