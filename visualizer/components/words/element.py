"""Mounts lines of words, some of which open an entry of the glossary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from streamlit.components.v2.bidi_component import ComponentResult

from visualizer.components.packing import pack
from visualizer.components.registry import register
from visualizer.glossary import Piece

_mount = register("words", "words/element.js")

Look = Literal["prose", "symbols", "code", "small"]


def words(lines: Sequence[Sequence[Piece]], *, look: Look, key: str) -> ComponentResult:
    """Mount lines of text.

    Args:
        lines: their parts, from left to right; a part with an entry is a button that opens it.
        look: ``prose`` for an explanation, ``symbols`` for those of a formula, one beside the other, ``code`` for
            aligned lines, ``small`` for a caption.
        key: identifies the element on the page.
    """
    return _mount(key=key, data=pack({"key": key, "look": look, "lines": [list(line) for line in lines]}, {}))
