"""The path that comes with Headlight, and those that were opened here, under names that a link can carry."""

from __future__ import annotations

import hashlib
from pathlib import Path

from visualizer.guide.path import GuidedPath, read_path, write_path
from visualizer.work.cache import Kept

FIRST_PATH = read_path((Path(__file__).parent / "first_path.json").read_bytes())

_KEPT: Kept[str, GuidedPath] = Kept(room=64)


def keep_path(path: GuidedPath) -> str:
    """Remember a path for all sessions, and give the name under which ``path_named`` finds it."""
    name = hashlib.sha256(write_path(path).encode()).hexdigest()[:12]
    _KEPT.keep(name, path)
    return name


def path_named(name: str) -> GuidedPath | None:
    """The path of a name, which is ``FIRST_PATH`` for none; None for one that this server does not know."""
    return _KEPT.get(name) if name else FIRST_PATH
