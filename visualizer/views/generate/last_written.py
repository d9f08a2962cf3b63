"""What this session last saw the model write, so that a change of the settings computes only what differs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from visualizer.runs.run import Subject
from visualizer.runs.writer import Writer
from visualizer.runs.written import OneByOne, Written, write
from visualizer.session import drafts
from visualizer.views.generate.kept import WRITINGS

_KEY = "generation"


@dataclass(frozen=True, eq=False)
class Shown:
    """What was written last, and where it came from.

    Attributes:
        subject: the sequence that it continues or answers.
        how: it was written.
        written: the steps.
        account: one sentence on what was computed for it.
    """

    subject: Subject
    how: OneByOne
    written: Written
    account: str


def written_now(subject: Subject, writer: Writer, how: OneByOne) -> Shown:
    """What the model writes: what this session saw last, what is kept from before, or what is new.

    Raises:
        ValueError: as ``write``.
    """
    last = _last()
    if last is not None and (last.subject, last.how) == (subject, how):
        return last
    kept = WRITINGS.get((subject, how))
    if kept is None:
        before = _before(last, subject, how)
        written = WRITINGS.keep((subject, how), write(writer, how, before))
    else:
        written = replace(kept, n_kept=0, differs_at=None)
    shown = Shown(subject, how, written, account_of(written))
    drafts.put_by(_KEY, shown)
    return shown


def account_of(written: Written) -> str:
    """How often the model runs, or what a change of the settings left as it was."""
    total, kept = len(written.steps), written.n_kept
    if kept == 0:
        return f"The model runs once for each token, {_times(total)}."
    if written.differs_at is None:
        if total == kept:
            return "With these settings each step chooses the token that it chose before: the model did not run."
        same = f"The tokens up to step {kept} are those of before"
        return f"{same}; the model ran {_times(total - kept)} more (underlined)."
    other = f"At step {written.differs_at + 1} another token is chosen now, though with the same logits"
    if total == kept:
        return f"{other}; it is the last one, so the model did not run."
    again = f"ran again (underlined), {_times(total - kept)}"
    return f"{other}; from step {kept + 1} on the model reads other tokens and {again}."


def _before(last: Shown | None, subject: Subject, how: OneByOne) -> Written | None:
    """What the same model wrote last, where its steps have what this way of writing needs."""
    usable = last is not None and last.subject == subject and last.how.cached == how.cached
    return last.written if last is not None and usable else None


def _last() -> Shown | None:
    shown = drafts.put_by_before(_KEY)
    return shown if isinstance(shown, Shown) else None


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
