"""A screen as a small file, where its text is too long for a link."""

from __future__ import annotations

import json
from dataclasses import replace

from model.texts import texts_of
from visualizer.settings.fields import fields_of
from visualizer.settings.link import left_out_of_link, write_whole
from visualizer.settings.settings import Settings
from visualizer.settings.training_settings import write_training
from visualizer.settings.watched_settings import write_watched
from visualizer.state.state import Choices, read

say = texts_of(__name__)

FORMAT = 1
MAX_BYTES = 2**20


def write_screen(choices: Choices) -> str:
    """The text of the file; "" where a link carries all that is chosen."""
    if not left_out_of_link(choices.settings):
        return ""
    link = write_whole(choices.settings, choices.selection)
    link |= write_training(choices.training) | write_watched(choices.watched)
    return json.dumps({"headlight_screen": FORMAT, "link": link}, ensure_ascii=False, indent=2)


def read_screen(data: bytes) -> Choices:
    """The choices that a file holds; as of a link, one sentence is noted for each value that cannot be taken.

    Raises:
        ValueError: one sentence on what is wrong with it.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(say("too_long", most=MAX_BYTES, n_bytes=len(data)))
    try:
        entry = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ValueError(say("not_json")) from None
    link = entry.get("link") if isinstance(entry, dict) and entry.get("headlight_screen") == FORMAT else None
    if not isinstance(link, dict) or not all(isinstance(text, str) for text in link.values()):
        raise ValueError(say("no_screen", format=FORMAT))
    long = {field.name for field in fields_of(Settings).values() if field.kind in ("text", "cells")} & link.keys()
    choices = read({name: [text] for name, text in link.items() if name not in long})
    return replace(choices, settings=replace(choices.settings, **{name: link[name] for name in long}))
