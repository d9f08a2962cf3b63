"""The state of what moves by itself: a picture asks ``/jobs/<name>`` for it, and no clock runs the script."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import streamlit as st

from model.texts import texts_of
from visualizer.components.picture import Picture
from visualizer.components.progress.element import Bar, progress
from visualizer.server.mount import mount
from visualizer.state import drafts
from visualizer.state.visitors import name_of_session
from visualizer.work.jobs import Job, Seen, Value, duration

say = texts_of(__name__)

Draw = Callable[[str], Picture | None]
"""Draws a picture as it is now, which asks the address that is given; None once there is nothing more to come."""


@dataclass(eq=False)
class Moving:
    """Something that moves by itself.

    Attributes:
        subject: what it is about.
        draw: draws it.
        name: its name in the address, which cannot be guessed.
    """

    subject: object
    draw: Draw
    name: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @property
    def picture(self) -> Picture | None:
        """The picture as it is now; None once there is nothing more to come."""
        return self.draw(f"jobs/{self.name}")


_MOVING: WeakValueDictionary[str, Moving] = WeakValueDictionary()
"""By their names. A session alone keeps what moves on its page, so that both are forgotten at once."""


def show(key: str, subject: object, draw: Draw) -> None:
    """Draw what moves by itself, and once more the page when there is nothing more to come.

    Args:
        key: names the picture in the session.
        subject: what it is about: the address stays while this does.
        draw: runs in any thread, also without a session.
    """
    before = drafts.put_by_before(f"moving_{key}")
    moving = before if isinstance(before, Moving) and before.subject == subject else Moving(subject, draw)
    moving.draw = draw
    drafts.put_by(f"moving_{key}", moving)
    _MOVING[moving.name] = moving
    if (picture := moving.picture) is None:
        st.rerun()
    else:
        mount(picture)


def moving_at(name: str) -> Moving | None:
    """Return what has a name; None where no page shows anything of that name."""
    return _MOVING.get(name)


def show_job(
    key: str, job: Job[Value], label: str, words: Callable[[Seen[Value]], str], *, below: str = ""
) -> None:
    """Draw how far a job is until it ends. Who sees it looks at it.

    Args:
        key: names the picture in the session.
        job: the job.
        label: what it does.
        words: how far it is.
        below: a line below the bar.
    """
    watcher = name_of_session()

    def draw(address: str) -> Picture | None:
        seen = job.look(watcher)
        bar = Bar(label, words(seen), seen.fraction)
        return progress([bar], key=key, address=address, below=below) if seen.is_running else None

    show(key, job, draw)


def how_far(said: str, done: float, seconds_left: float | None = None) -> str:
    """``Counting … 40%, about 3 seconds left``."""
    if seconds_left is None:
        return say("how_far", said=said, done=done)
    return say("how_far_and_left", said=said, done=done, left=duration(seconds_left))
