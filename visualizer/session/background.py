"""Work of one session that takes long: begun by a button, with how far it is and the way to end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from visualizer.safe_text import markdown_safe
from visualizer.session import drafts
from visualizer.session.jobs import Job, Seen, duration, watch

Progress = Callable[[float], None]


def offer(name: str, subject: object, label: str, work: Callable[[Progress], object], said: str) -> None:
    """Draw the button that begins some work, or how far it is; what it comes to is for ``work`` to keep.

    Args:
        name: of the kind of work; a session does one of a kind, the newest.
        subject: what it is about.
        label: of the button.
        work: does it in a thread of its own, and tells the fraction done.
        said: what it does, in words.
    """
    before = drafts.put_by_before(name)
    job = before if isinstance(before, Job) and before.subject == subject else None
    if job is None or not job.peek().is_running:
        place = st.empty()
        with place.container():
            if job is not None and job.peek().phase == "failed":
                st.error(f"It failed: {markdown_safe(job.peek().failure)}.", icon=":material/error:")
            if not st.button(label, icon=":material/science:", key=f"begin_{name}"):
                return
        if isinstance(before, Job):
            before.stop()
        try:
            job = Job[None](subject, None, lambda report: work(lambda done: report(None, done)))
        except ValueError as error:
            st.error(markdown_safe(str(error)), icon=":material/error:")
            return
        drafts.put_by(name, job)
        place.empty()
    running = job
    watch(running.look, lambda seen: _how_far(running, seen, name, said))


def at_once(work: Callable[[Progress], object], said: str) -> None:
    """Do some work while the page waits, with a bar."""
    bar = st.progress(0.0, text=said)

    def show(done: float) -> None:
        bar.progress(min(1.0, done), text=f"{said} {done:.0%}")

    work(show)
    bar.empty()


def _how_far(job: Job[Any], seen: Seen[Any], name: str, said: str) -> None:
    def stop() -> None:
        job.stop()

    left = "" if seen.seconds_left is None else f", about {duration(seen.seconds_left)} left"
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.progress(min(1.0, seen.fraction), text=f"{said} {seen.fraction:.0%}{left}")
        st.button("Stop", icon=":material/stop:", key=f"stop_{name}", on_click=stop, width="content")
