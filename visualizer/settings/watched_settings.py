"""What a person chooses in the view of any model, as one frozen value, and its part of the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from visualizer.settings.fields import Field, fields_of, setting
from visualizer.settings.link import read_part, write_part

Door = Literal["recording"]
Source = Literal["none", "example", "given", "uploaded"]
Panel = Literal["heads", "operations"]

MOST_HEADS = 256
MOST_TOKENS = 2_048
MOST_PLACES = 9_999_999


@dataclass(frozen=True)
class WatchedChoice:
    """Which trace of another model is opened, and what is looked at in it.

    The places may lie beyond what a trace has; whoever looks them up takes the nearest.
    """

    watched_door: Door = setting(
        "recording",
        "Model",
        "Where the trace comes from.",
        choices={"recording": "Open a recording"},
    )
    watched_source: Source = setting(
        "none",
        "Recording",
        "Which recording is open. What was uploaded stays in the session and is in no link.",
        choices={
            "none": "None",
            "example": "The example",
            "given": "The file that the app was started with",
            "uploaded": "An uploaded file",
        },
    )
    watched_panel: Panel = setting(
        "heads",
        "Show",
        "The heads of its attentions, or every operation one after the other.",
        choices={"heads": "Heads", "operations": "Step through"},
    )
    watched_attention: str = setting("", "Attention", "The attention that is looked at, by its path.")
    watched_item: int = setting(
        0, "Sequence", "Which sequence of the batch is looked at, counted from 0.", most=1_023
    )
    watched_head: int = setting(0, "Head", "The head that is looked at, counted from 0.", most=MOST_HEADS - 1)
    watched_query: int = setting(0, "Query", "The token that looks, counted from 0.", most=MOST_TOKENS - 1)
    watched_key: int = setting(0, "Key", "The token that is looked at, counted from 0.", most=MOST_TOKENS - 1)
    watched_stage: str = setting("", "Operation", "The operation that is looked at, by its path.")
    watched_row: int = setting(
        0, "Row", "The row of the number that is looked at, counted from 0.", most=MOST_PLACES
    )
    watched_column: int = setting(
        0, "Column", "The column of the number that is looked at, counted from 0.", most=MOST_PLACES
    )


WATCHED: Mapping[str, Field] = fields_of(WatchedChoice)
"""Every parameter by name."""

NOTHING_WATCHED = WatchedChoice()
"""What the view opens with."""


def read_watched(query: Mapping[str, Sequence[str]]) -> tuple[WatchedChoice, tuple[str, ...]]:
    """Read this part of a link: the choice, and one plain sentence for each parameter that was changed."""
    choice, notices = read_part(query, NOTHING_WATCHED)
    return choice, tuple(notices.values())


def write_watched(choice: WatchedChoice) -> dict[str, str]:
    """This part of the link: what differs from the defaults."""
    return write_part(choice, NOTHING_WATCHED)
