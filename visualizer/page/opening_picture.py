"""The picture that the page opens with, before PyTorch is there: what the model computed for it stands in a file,
its tokens in another.

``remake_opening`` writes both, and a test holds them against the model. The first visitor of a server sees it after
1.3 s, and without it after 2.7 s (``benchmarks/painting.py first``, two slow cores).
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

from visualizer.components.picture import Picture
from visualizer.components.progress.element import progress
from visualizer.components.token_way.element import paths_in, way_of
from visualizer.page import header
from visualizer.page.warming import is_warm, is_warming, picture_is_there, wait_for_picture
from visualizer.runs.tokens import TokenSequence
from visualizer.server.mount import mount
from visualizer.state.places import listeners
from visualizer.state.state import FIRST, Choices
from visualizer.work import live

FILE = Path(__file__).with_name("opening.packed")
TOKENS = Path(__file__).with_name("opening_tokens.json")


def is_known(choices: Choices) -> bool:
    """True if PyTorch is still being loaded, and the file has the picture of what is chosen."""
    is_first = (choices.settings, choices.selection) == (FIRST.settings, FIRST.selection)
    return is_first and is_warming() and not is_warm()


def show(choices: Choices) -> None:
    """The tokens and the picture, until PyTorch is there and the page is run as always."""
    fields = json.loads(TOKENS.read_text(encoding="utf-8"))
    tokens = TokenSequence(**{name: tuple(values) for name, values in fields.items()})
    header.strip({"source": tokens}, choices, queried="source", sizes={})
    data = FILE.read_bytes()
    mount(way_of(data), **listeners(paths_in(data)))
    wait_for_picture()
    is_drawn = Event()

    def until_warm(address: str) -> Picture | None:
        """Draw nothing, until PyTorch is there. The first to draw it is the script, all others are browsers."""
        if is_drawn.is_set():
            picture_is_there()
        is_drawn.set()
        return None if is_warm() else progress((), key="until_warm", address=address)

    live.show("opening", "", until_warm)
