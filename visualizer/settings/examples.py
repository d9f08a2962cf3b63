"""The examples that a click opens, each with something to see at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from visualizer.settings.fields import changed, value_in
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Selection, Settings, default_stage


@dataclass(frozen=True)
class Example:
    """A finished choice of settings.

    Attributes:
        name: what code and tests call it.
        title: what its button says.
        what_to_see: one sentence that says where to look.
        settings: what is run.
        selection: what is looked at.
        speaks_of: the places of the selection, beside the view, the stage and the panel of the lab, without which
            the sentence is not about what is seen.
    """

    name: str
    title: str
    what_to_see: str
    settings: Settings
    selection: Selection
    speaks_of: tuple[str, ...] = ()

    def is_seen(self, settings: Settings, selection: Selection) -> bool:
        """True if this is what the sentence is about."""
        places = ["view", "stage", "hidden", *self.speaks_of]  # what is hidden is not told
        if selection.view == "lab":
            places.append("panel")
        return settings == self.settings and all(
            value_in(selection, place) == value_in(self.selection, place) for place in places
        )


_Part = TypeVar("_Part", Settings, Selection)


def read_examples(file: str, settings: Settings, selection: Selection) -> tuple[Example, ...]:
    """The examples of a TOML file beside this, each of which says where it differs from a choice of settings."""
    tables = tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return tuple(_read(name, entry, settings, selection) for name, entry in tables.items())


def _read(name: str, entry: Mapping[str, Any], usual: Settings, usually_seen: Selection) -> Example:
    settings = fitted(_with(usual, entry.get("settings", {})))
    seen = replace(usually_seen, stage=default_stage(settings.architecture))
    selection = _with(seen, entry.get("selection", {}))
    return Example(
        name, entry["title"], entry["what_to_see"], settings, selection, tuple(entry.get("speaks_of", ()))
    )


def _with(part: _Part, changes: Mapping[str, Any]) -> _Part:
    values: dict[str, Any] = {name: tuple(to) if isinstance(to, list) else to for name, to in changes.items()}
    return changed(part, **values)


OPENING, USUAL, *_OFFERED = read_examples("examples.toml", Settings(), Selection())
"""The choices of an address without parameters; any other leaves out fields that are as in ``Settings()``."""

EXAMPLES = tuple(_OFFERED)
"""In the order of the buttons."""


def note_on(examples: Iterable[Example], settings: Settings, selection: Selection) -> str:
    """Return the note on where to look, if this is the picture of one of the examples; else nothing."""
    seen = (example.what_to_see for example in examples if example.is_seen(settings, selection))
    return next(seen, "")
