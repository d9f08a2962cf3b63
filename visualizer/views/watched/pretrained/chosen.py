"""The checkpoint that a link names, and the panel that is shown of it."""

from __future__ import annotations

from headlight.pretrained.checkpoint import Checkpoint, devices
from visualizer.settings.watched_settings import WatchedChoice
from visualizer.views.watched.pretrained import jobs
from visualizer.views.watched.pretrained.jobs import Wanted

REFUSED = "pretrained_refused"
"""The name in the session of the sentence that says why a checkpoint was not opened."""


def wanted_by(choice: WatchedChoice) -> Wanted:
    """The checkpoint as it is asked for, on the CPU where this machine does not have the device that is named."""
    return Wanted(choice.pretrained_model, choice.pretrained_dtype, device_of(choice))


def device_of(choice: WatchedChoice) -> str:
    """The device that is chosen, or the CPU where this machine does not have it."""
    return choice.pretrained_device if choice.pretrained_device in devices() else "cpu"


def opened(choice: WatchedChoice) -> Checkpoint | None:
    """The checkpoint that is chosen, where it is in memory."""
    return jobs.in_memory(wanted_by(choice)) if choice.pretrained_model else None
