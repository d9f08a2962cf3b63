"""The glossary: every entry, and the sizes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from model.texts import texts_of
from visualizer.components.packing import pack
from visualizer.components.picture import Picture
from visualizer.glossary import GLOSSARY, Entry, pieces

say = texts_of(__name__)


def glossary(sizes: Mapping[str, str], *, key: str) -> Picture:
    """The button that opens the glossary; with it, every word of the page that has an entry opens it.

    Args:
        sizes: what is known of this run, by ``Entry.size``.
        key: identifies the element on the page.
    """
    return _with_sizes(tuple(sizes.items()), key)


@lru_cache(maxsize=64)  # it is long, and the same for another seed or mask
def _with_sizes(sizes: tuple[tuple[str, str], ...], key: str) -> Picture:
    return Picture("glossary/element.js", pack({"key": key, "entries": _ENTRIES, "sizes": dict(sizes)}, {}), key)


def _described(entry: Entry) -> dict[str, object]:
    """An entry as the browser shows and searches it."""
    return {
        "name": entry.name,
        "symbol": entry.symbol,
        "text": pieces(entry.text),
        "size": entry.size,
        "source": say("section", section=entry.section) if entry.section[:1].isdigit() else entry.section,
        "search": " ".join((entry.name, entry.symbol, *entry.also)).lower(),
    }


_ENTRIES = [_described(entry) for entry in GLOSSARY.values()]
