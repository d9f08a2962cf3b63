"""Work of the Mask lab that takes a while: one job of a kind in a session, drawn while it runs."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from visualizer.safe_text import markdown_safe
from visualizer.session import drafts
from visualizer.session.jobs import Job, Seen, watch


def last(kind: str) -> Job[None] | None:
    """The job of a kind that was begun last in this session."""
    job = drafts.put_by_before(kind)
    return job if isinstance(job, Job) else None


def begin(kind: str, subject: object, work: Callable[[Callable[[float], None]], object]) -> Job[None] | None:
    """Begin a job in place of the last of its kind; None, and why, where too much is being computed already.

    Args:
        kind: what it does, in one word.
        subject: what it is about.
        work: called in the background with what it tells the fraction done.
    """
    if (before := last(kind)) is not None:
        before.stop()
    try:
        job = Job[None](subject, None, lambda report: work(lambda fraction: report(None, fraction)))
    except ValueError as error:
        st.error(markdown_safe(str(error)), icon=":material/error:")
        return None
    drafts.put_by(kind, job)
    return job


def show(kind: str, job: Job[None], words: Callable[[Seen[None]], str]) -> None:
    """Draw how far a job is, in words, and the way to end it, until it ends."""

    def stop() -> None:
        job.stop()

    def draw(seen: Seen[None]) -> None:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.progress(seen.fraction, text=words(seen))
            st.button("Stop", icon=":material/stop:", key=f"stop_{kind}", on_click=stop, width="content")

    watch(job.look, draw)
