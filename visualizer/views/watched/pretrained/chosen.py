"""The checkpoint that a link names."""

from __future__ import annotations

from typing import NamedTuple

from headlight.pretrained.checkpoint import SHELF, Checkpoint, devices
from visualizer.settings.watched_settings import WatchedChoice


class Wanted(NamedTuple):
    """A checkpoint as it is asked for.

    Attributes:
        name: of the hub, a folder, a file, or a package.
        dtype: the number type of its weights.
        device: where it is computed.
    """

    name: str
    dtype: str
    device: str


def wanted_by(choice: WatchedChoice) -> Wanted:
    """The checkpoint as it is asked for, on the CPU where this machine does not have the device that is named."""
    return Wanted(choice.pretrained_model, choice.pretrained_dtype, device_of(choice))


def device_of(choice: WatchedChoice) -> str:
    """The device that is chosen, or the CPU where this machine does not have it."""
    return choice.pretrained_device if choice.pretrained_device in devices() else "cpu"


def opened(choice: WatchedChoice) -> Checkpoint | None:
    """The checkpoint that is chosen, where it is in memory."""
    return SHELF.get(wanted_by(choice)) if choice.pretrained_model else None
