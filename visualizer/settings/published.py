"""The worked examples, known before torch is loaded: read from the heads of their files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "model" / "sources" / "published"


@dataclass(frozen=True)
class PublishedExample:
    """One worked example, as the menu shows it.

    Attributes:
        name: of its file, and in the link.
        title: what it is called.
        source: where it was published.
        recipe: the seeds and calls that make its numbers.
        has_mask: whether it was published with a mask.
    """

    name: str
    title: str
    source: str
    recipe: str
    has_mask: bool


def examples_in(folder: Path) -> dict[str, PublishedExample]:
    """The examples of a folder by name: those of one publication together, in the order of its parts."""
    found = [_read(path) for path in folder.glob("*.json")]
    return {example.name: example for example in sorted(found, key=_place)}


def _read(path: Path) -> PublishedExample:
    content = json.loads(path.read_text(encoding="utf-8"))
    title, source, recipe = (str(content[key]) for key in ("title", "source", "recipe"))
    return PublishedExample(path.stem, title, source, recipe, "mask" in content)


def _place(example: PublishedExample) -> tuple[str, list[int], str]:
    """The publication, the numbers of the part or cell, and the name."""
    publication, _, part = example.source.partition(",")
    return publication, [int(number) for number in re.findall(r"\d+", part)], example.name


PUBLISHED: Mapping[str, PublishedExample] = examples_in(_FOLDER)
"""The worked examples in the order of the menu."""
