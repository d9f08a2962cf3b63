"""Work that takes long, by what it is about: its beginning, its progress, and the way to end it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

import streamlit as st

from model.texts import texts_of
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.state import drafts, state
from visualizer.state.visitors import name_of_session
from visualizer.work import live
from visualizer.work.jobs import Job, Jobs, Report, Seen
from visualizer.work.live import how_far

say = texts_of(__name__)

Value = TypeVar("Value")
Work = Callable[[Report[str]], object]
"""Does something in a thread of its own, and tells what, and the fraction done. It keeps what it comes to."""

_JOBS: Jobs[str] = Jobs()


def offer(
    kind: str,
    subject: Hashable,
    label: str,
    work: Work,
    *,
    outlives_page: bool = False,
    below: str = "",
    icon: str = ":material/science:",
    is_primary: bool = False,
) -> None:
    """Draw the button that begins some work, or how far it is, whoever began it.

    Args:
        kind: what it does, in one word: a session does one of a kind at a time.
        subject: what it is about.
        label: of the button.
        work: what is to be done.
        outlives_page: whether it goes on though nobody looks, and beside others of its kind.
        below: a line below the bar.
        icon: of the button.
        is_primary: whether it is the one that a person is to see first.
    """
    drawn = state.chosen().settings
    begin = partial(_begin, kind, subject, work, outlives_page)

    def ask() -> None:
        """Begin, heard even where a second act breaks the run off; what was typed right before is drawn first."""
        now = state.now().settings
        if now == drawn:
            begin()
        drafts.put_by(_asked(kind), None if now == drawn else now)

    if drafts.put_by_before(_asked(kind)) == drawn:
        drafts.put_by(_asked(kind), None)
        begin()
    if is_shown(kind, subject, label, below=below):
        return
    job, refused = _JOBS.of((kind, subject)), drafts.put_by_before(_refusal(kind, subject))
    if failed := str(refused or "") or (job.peek().failure if job is not None else ""):
        st.error(markdown_safe(visible_whole(failed)), icon=":material/error:")
    st.button(
        label,
        key=f"begin_{kind}",
        on_click=state.callback(ask),
        icon=icon,
        type="primary" if is_primary else "secondary",
    )


def is_shown(kind: str, subject: Hashable, label: str, *, below: str = "") -> bool:
    """Draw how far some work is, and the way to end it; False where this session does not wait for any."""
    job = _JOBS.of((kind, subject))
    if job is None or job is drafts.put_by_before(_left(kind)) or not job.peek().is_running:
        return False
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key=f"running_{kind}"):
        live.show_job(f"progress_{kind}", job, label, _words, below=below)
        st.button(
            say("stop"),
            icon=":material/stop:",
            key=f"stop_{kind}",
            on_click=state.callback(_leave, kind, job),
            width="content",
        )
    return True


def _words(seen: Seen[str]) -> str:
    return how_far(visible_whole(seen.value), seen.fraction, seen.seconds_left)


def _begin(kind: str, subject: Hashable, work: Work, outlives_page: bool) -> None:
    before = drafts.put_by_before(kind)
    if isinstance(before, Job) and not outlives_page:
        before.leave(name_of_session())
    drafts.put_by(_left(kind), None)
    drafts.put_by(_refusal(kind, subject), "")
    try:
        job = _JOBS.start((kind, subject), lambda: Job(say("starting"), work, stops_unwatched=not outlives_page))
    except ValueError as error:
        drafts.put_by(_refusal(kind, subject), str(error))
    else:
        drafts.put_by(kind, job)


def _leave(kind: str, job: Job[str]) -> None:
    """End a job for this session; it goes on where somebody else looks at it."""
    drafts.put_by(_left(kind), job)
    job.leave(name_of_session())


def _asked(kind: str) -> str:
    return f"{kind}_asked"


def _left(kind: str) -> str:
    return f"{kind}_left"


def _refusal(kind: str, subject: Hashable) -> str:
    return f"{kind}_refused_{hash(subject)}"


def at_once(work: Callable[[Callable[[float], None]], Value], said: str) -> Value:
    """Do some work while the page waits, with a bar."""
    bar = st.progress(0.0, text=how_far(said, 0.0))

    def tell(done: float) -> None:
        bar.progress(min(1.0, done), text=how_far(said, done))

    try:
        return work(tell)
    finally:
        bar.empty()
