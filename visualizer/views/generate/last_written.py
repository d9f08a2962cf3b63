"""The text that a session last saw the model write, so that another setting computes only what differs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from model.texts import texts_of
from visualizer.runs.run import Subject
from visualizer.runs.writer import Writer
from visualizer.runs.written import OneByOne, Written, write
from visualizer.state import drafts
from visualizer.views.generate.kept import WRITINGS

say = texts_of(__name__)

_KEY = "generation"


@dataclass(frozen=True, eq=False)
class Shown:
    """The text that was written last, and its origin.

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
    """Return what the model writes: what this session saw last, what is kept from before, or what is new.

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
    """Say how often the model runs, or what a change of the settings left as it was."""
    total, kept = len(written.steps), written.n_kept
    if kept == 0:
        return say("once_for_each_token", times=_times(total))
    if written.differs_at is None:
        if total == kept:
            return say("all_as_before")
        return say("first_as_before", kept=kept, times=_times(total - kept))
    if total == kept:
        return say("last_differs", step=written.differs_at + 1)
    return say("differs_from", step=written.differs_at + 1, next=kept + 1, times=_times(total - kept))


def _before(last: Shown | None, subject: Subject, how: OneByOne) -> Written | None:
    """Return what the same model wrote last, where its steps have what this way of writing needs."""
    usable = last is not None and last.subject == subject and last.how.cached == how.cached
    return last.written if last is not None and usable else None


def _last() -> Shown | None:
    shown = drafts.put_by_before(_KEY)
    return shown if isinstance(shown, Shown) else None


def _times(count: int) -> str:
    return {1: say("once"), 2: say("twice")}.get(count, say("many_times", count=count))
