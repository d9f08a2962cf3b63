"""Work of one session that takes long, one job of a kind: its beginning, its progress, and the way to end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from model.texts import texts_of
from visualizer.safe_text import markdown_safe
from visualizer.state import drafts, state
from visualizer.work import live
from visualizer.work.jobs import Job
from visualizer.work.live import how_far

say = texts_of(__name__)

Value = TypeVar("Value")
Progress = Callable[[float], None]


def last(kind: str) -> Job[None] | None:
    """The job of a kind that was begun last in this session."""
    job = drafts.put_by_before(kind)
    return job if isinstance(job, Job) else None


def begin(kind: str, subject: object, work: Callable[[Progress], object]) -> Job[None] | None:
    """Begin a job in place of the last of its kind; None where too much is computed, as ``say_refusal`` then tells.

    Args:
        kind: what it does, in one word.
        subject: what it is about.
        work: does it in a thread of its own, and tells the fraction done; what it comes to is for it to keep.
    """
    if (before := last(kind)) is not None:
        before.stop()
    try:
        job = Job[None](subject, None, lambda report: work(lambda fraction: report(None, fraction)))
    except ValueError as error:
        drafts.put_by(_refusal(kind), str(error))
        return None
    drafts.put_by(_refusal(kind), "")
    drafts.put_by(kind, job)
    return job


def _refusal(kind: str) -> str:
    return f"{kind}_refused"


def running(kind: str, subject: object) -> Job[None] | None:
    """The last job of a kind, if it is about this subject and has not ended."""
    job = last(kind)
    return job if job is not None and job.subject == subject and job.peek().is_running else None


def say_refusal(kind: str) -> None:
    """Draw why the last job of a kind was not begun, if it was not."""
    if refused := drafts.put_by_before(_refusal(kind)):
        st.error(markdown_safe(str(refused)), icon=":material/error:")


def offer(kind: str, subject: object, label: str, work: Callable[[Progress], object], said: str) -> None:
    """Draw the button that begins some work, or how far it is.

    Args:
        kind: what it does, in one word.
        subject: what it is about.
        label: of the button.
        work: as ``begin`` takes it.
        said: what it does, in words.
    """
    if (job := running(kind, subject)) is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            live.show_job(
                f"progress_{kind}", job, said, lambda seen: how_far(said, seen.fraction, seen.seconds_left)
            )
            st.button(
                say("stop"),
                icon=":material/stop:",
                key=f"stop_{kind}",
                on_click=state.callback(job.stop),
                width="content",
            )
        return
    say_refusal(kind)
    if (job := last(kind)) is not None and job.subject == subject and job.peek().phase == "failed":
        st.error(say("failed", why=markdown_safe(job.peek().failure)), icon=":material/error:")
    st.button(
        label,
        icon=":material/science:",
        key=f"begin_{kind}",
        on_click=state.callback(begin, kind, subject, work),  # here, a second act could break off the run
    )


def at_once(work: Callable[[Progress], Value], said: str) -> Value:
    """Do some work while the page waits, with a bar."""
    bar = st.progress(0.0, text=how_far(said, 0.0))

    def tell(done: float) -> None:
        bar.progress(min(1.0, done), text=how_far(said, done))

    found = work(tell)
    bar.empty()
    return found
