"""Opening checkpoints in the background: one job for each, which sessions share and a closed page does not end."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from headlight.pretrained.checkpoint import SHELF, Checkpoint, Key
from headlight.pretrained.opening import Cost, open_checkpoint
from model.texts import texts_of
from visualizer.state import drafts
from visualizer.state.visitors import name_of_session
from visualizer.work.cache import Kept
from visualizer.work.jobs import Job, Report

say = texts_of(__name__)
_LOCK = threading.Lock()
_JOBS: Kept[Key, Job[str]] = Kept(room=16)
"""Those that were begun or looked at last: how one ended is told for a while."""

_LEFT = "pretrained_left"


@dataclass(frozen=True)
class Wanted:
    """A checkpoint as it is asked for.

    Attributes:
        name: of the hub, a folder, a file, or a package.
        dtype: the number type of its weights.
        device: where it is computed.
    """

    name: str
    dtype: str
    device: str

    @property
    def key(self) -> Key:
        """The key that it is kept under."""
        return (self.name, self.dtype, self.device)


def in_memory(wanted: Wanted) -> Checkpoint | None:
    """The checkpoint, where it is loaded."""
    return SHELF.get(wanted.key)


def start(wanted: Wanted, cost: Cost) -> None:
    """Open a checkpoint, unless somebody does so already.

    Raises:
        ValueError: too much is being done already.
    """

    def work(report: Report[str]) -> None:
        open_checkpoint(cost, report, dtype=wanted.dtype, device=wanted.device)

    with _LOCK:
        before = _JOBS.get(wanted.key)
        if before is None or not before.peek().is_running:
            _JOBS.keep(wanted.key, Job(wanted, say("starting"), work, stops_unwatched=False))
    drafts.put_by(_LEFT, None)


def job_of(wanted: Wanted) -> Job[str] | None:
    """Return the job that opens or opened a checkpoint; None without one, or where this session has ended it."""
    job = _JOBS.get(wanted.key)
    return None if drafts.put_by_before(_LEFT) is job else job


def cancel(wanted: Wanted) -> None:
    """End the opening for this session; it goes on where somebody else waits for it."""
    if (job := _JOBS.get(wanted.key)) is not None:
        drafts.put_by(_LEFT, job)
        job.leave(name_of_session())
