"""The paths that come with Headlight, and those that were opened here, under names that a link can carry."""

from __future__ import annotations

import hashlib
from pathlib import Path

from visualizer.guide.path import GuidedPath, read_path, write_path
from visualizer.settings.settings import Selection
from visualizer.work.cache import Cache

FIRST_PATH, OF_CHECKPOINT = (
    read_path((Path(__file__).parent / f"{name}.json").read_bytes()) for name in ("first_path", "checkpoint_path")
)

_KEPT: Cache[str, GuidedPath] = Cache(room=64)


def keep_path(path: GuidedPath) -> str:
    """Remember a path for all sessions, and give the name under which ``chosen_path`` finds it."""
    name = hashlib.sha256(write_path(path).encode()).hexdigest()[:12]
    _KEPT.put(name, path)
    return name


def usual_path(selection: Selection) -> GuidedPath:
    """The path that comes with Headlight for the model that is looked at."""
    return OF_CHECKPOINT if selection.source == "pretrained" else FIRST_PATH


def chosen_path(selection: Selection) -> GuidedPath | None:
    """The path that is walked; None for one that this server does not know."""
    return _KEPT.get(selection.path) if selection.path else usual_path(selection)
