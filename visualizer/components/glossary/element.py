"""Mounts the glossary. Its text travels with its script, once; what a run adds are its sizes."""

from __future__ import annotations

from collections.abc import Mapping

from streamlit.components.v2.bidi_component import ComponentResult

from visualizer.components.packing import pack
from visualizer.components.registry import register
from visualizer.glossary import GLOSSARY, Entry, pieces


def glossary(sizes: Mapping[str, str], *, key: str) -> ComponentResult:
    """Mount the button that opens the glossary; with it, every word of the page that has an entry opens it.

    Args:
        sizes: what is known of this run, by ``Entry.size``.
        key: identifies the element on the page.
    """
    return _mount(key=key, width="content", data=pack({"key": key, "sizes": dict(sizes)}, {}))


def _described(entry: Entry) -> dict[str, object]:
    """An entry as the browser shows and searches it."""
    return {
        "name": entry.name,
        "symbol": entry.symbol,
        "text": pieces(entry.text),
        "size": entry.size,
        "source": f"Attention Is All You Need, section {entry.section}"
        if entry.section[:1].isdigit()
        else entry.section,
        "search": " ".join((entry.name, entry.symbol, *entry.also)).lower(),
    }


_PAPER = "Attention Is All You Need, section "

_mount = register(
    "glossary",
    "glossary/note.js",
    "glossary/list.js",
    "glossary/element.js",
    GLOSSARY=[_described(entry) for entry in GLOSSARY.values()],
)
