"""What this session last saw the model write, so that a change of the settings computes only what differs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from visualizer import state
from visualizer.cache import keep_writing, kept_writing
from visualizer.generation.writer import Writer
from visualizer.generation.writing import OneByOne, Written, write
from visualizer.run import Subject

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
    kept = kept_writing(subject, how)
    if kept is None:
        before = _before(last, subject, how)
        written = write(writer, how, before)
        keep_writing(subject, how, written)
        account = account_of(written)
    else:
        written = replace(kept, n_kept=len(kept.steps), differs_at=None)
        account = f"{_steps(len(kept.steps))} still in memory: nothing was computed."
    shown = Shown(subject, how, written, account)
    state.put_by(_KEY, shown)
    return shown


def account_of(written: Written) -> str:
    """What was computed, and what was already there."""
    total, kept = len(written.steps), written.n_kept
    if kept == 0:
        return f"The model ran {_times(total)}, once for each token."
    again = f"{_steps(kept)} chosen anew from the logits kept"
    if written.differs_at is None:
        if total == kept:
            return f"{again}: the same tokens, so nothing was run."
        return f"{again}: the same tokens. The model ran {_times(total - kept)} more (underlined)."
    other = f"{again}. Step {written.differs_at + 1} now chooses another token"
    if total == kept:
        return f"{other}, the last one: nothing was run."
    return f"{other}, so the model ran again from step {kept + 1} on (underlined), {_times(total - kept)}."


def _before(last: Shown | None, subject: Subject, how: OneByOne) -> Written | None:
    """What the same model wrote last, where its steps have what this way of writing needs."""
    usable = last is not None and last.subject == subject and last.how.cached == how.cached
    return last.written if last is not None and usable else None


def _last() -> Shown | None:
    shown = state.put_by_before(_KEY)
    return shown if isinstance(shown, Shown) else None


def _steps(count: int) -> str:
    return "Step 1 was" if count == 1 else f"Steps 1 to {count} were"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
