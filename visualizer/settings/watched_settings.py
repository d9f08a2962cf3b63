"""A person's choices of a model that was not built here, as one frozen value, and its part of the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from visualizer.settings.fields import Field, fields_of, setting
from visualizer.settings.link import read_part, write_part
from visualizer.settings.settings import MOST_DRAWN

Opened = Literal["none", "example", "given", "path", "uploaded"]

MOST_SIDE = 512
"""The most queries, and keys, of a recording that are drawn at once."""


@dataclass(frozen=True)
class WatchedChoice:
    """The trace of another model that is opened, and the part that is drawn of a long one."""

    watched_source: Opened = setting("none")
    watched_path: str = setting("")
    watched_file: str = setting("")
    watched_first_query: int = setting(0, most=MOST_DRAWN - 1)
    watched_first_key: int = setting(0, most=MOST_DRAWN - 1)


WATCHED: Mapping[str, Field] = fields_of(WatchedChoice)
"""Every parameter by name."""

NOTHING_WATCHED = WatchedChoice()
"""The choice that the view opens with."""


def read_watched(query: Mapping[str, Sequence[str]]) -> tuple[WatchedChoice, tuple[str, ...]]:
    """Read this part of a link: the choice, and one plain sentence for each parameter that was changed."""
    choice, notices = read_part(query, NOTHING_WATCHED)
    return choice, tuple(notices.values())


def write_watched(choice: WatchedChoice) -> dict[str, str]:
    """This part of the link: what differs from the defaults."""
    return write_part(choice, NOTHING_WATCHED)
