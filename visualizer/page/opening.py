"""The picture that the page opens with, before PyTorch is there: what the model computed for it stands in a file,
its tokens in another.

``remake_opening`` writes both, and a test holds them against the model.
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

from visualizer.components.token_way.element import packed_way, paths_in
from visualizer.page import header
from visualizer.page.warming import is_warm, is_warming, picture_is_there, wait_for_picture
from visualizer.runs.tokens import TokenSequence
from visualizer.server.mount import mount
from visualizer.state.state import FIRST, Choices
from visualizer.state.token_way_events import listeners
from visualizer.work.jobs import rerun_when

FILE = Path(__file__).with_name("opening.packed")
TOKENS = Path(__file__).with_name("opening_tokens.json")

EVERY_SECONDS = 0.2
"""The seconds between two checks whether PyTorch is loaded, by a page that shows the picture of the file."""


def is_known(choices: Choices) -> bool:
    """True if PyTorch is still being loaded, and the file has the picture of what is chosen."""
    is_first = (choices.settings, choices.selection) == (FIRST.settings, FIRST.selection)
    return is_first and is_warming() and not is_warm()


def show(choices: Choices) -> None:
    """The tokens and the picture, until PyTorch is there and the page is run as always."""
    kept = json.loads(TOKENS.read_text(encoding="utf-8"))
    tokens = TokenSequence(**{name: tuple(values) for name, values in kept.items()})
    header.strip({"source": tokens}, choices, queried="source", sizes={})
    data = FILE.read_bytes()
    picture = packed_way(data)
    mount(picture, **listeners(paths_in(data)))
    wait_for_picture()
    asked = Event()

    def is_there() -> bool:
        if asked.is_set():  # by the page itself, for the second time: the picture has left
            picture_is_there()
        asked.set()
        return is_warm()

    rerun_when(is_there, EVERY_SECONDS)
