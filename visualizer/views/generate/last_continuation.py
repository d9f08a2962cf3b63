"""The text that a session last saw the model write, so that another setting computes only what differs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from model.texts import texts_of
from visualizer.runs.continuation import Continuation, OneByOne, write
from visualizer.runs.run import Subject
from visualizer.runs.writer import Writer
from visualizer.state import drafts
from visualizer.views.generate.cached import CONTINUATIONS

say = texts_of(__name__)

_KEY = "generation"


@dataclass(frozen=True, eq=False)
class Shown:
    """The text that was written last, and its origin.

    Attributes:
        subject: the sequence that it continues or answers.
        how: it was written.
        continuation: the steps.
        account: one sentence on what was computed for it.
    """

    subject: Subject
    how: OneByOne
    continuation: Continuation
    account: str


def continuation_now(subject: Subject, writer: Writer, how: OneByOne) -> Shown:
    """Return what the model writes: what this session saw last, what is kept from before, or what is new.

    Raises:
        ValueError: as ``write``.
    """
    last = _last()
    if last is not None and (last.subject, last.how) == (subject, how):
        return last
    known = CONTINUATIONS.get((subject, how))
    if known is None:
        before = _before(last, subject, how)
        continuation = CONTINUATIONS.put((subject, how), write(writer, how, before))
    else:
        continuation = replace(known, n_kept=0, differs_at=None)
    shown = Shown(subject, how, continuation, account_of(continuation))
    drafts.put_by(_KEY, shown)
    return shown


def account_of(continuation: Continuation) -> str:
    """Say how often the model runs, or what a change of the settings left as it was."""
    total, known = len(continuation.steps), continuation.n_kept
    if known == 0:
        return say("once_for_each_token", times=total)
    if continuation.differs_at is None:
        if total == known:
            return say("all_as_before")
        return say("first_as_before", known=known, times=total - known)
    if total == known:
        return say("last_differs", step=continuation.differs_at + 1)
    return say("differs_from", step=continuation.differs_at + 1, next=known + 1, times=total - known)


def _before(last: Shown | None, subject: Subject, how: OneByOne) -> Continuation | None:
    """Return what the same model wrote last, where its steps have what this way of writing needs."""
    usable = last is not None and last.subject == subject and last.how.cached == how.cached
    return last.continuation if last is not None and usable else None


def _last() -> Shown | None:
    shown = drafts.put_by_before(_KEY)
    return shown if isinstance(shown, Shown) else None
