"""Lines of words, some of which open an entry of the glossary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from visualizer.components.packing import pack
from visualizer.components.picture import Picture
from visualizer.glossary import Piece

Look = Literal["prose", "symbols", "code", "small"]


def words(lines: Sequence[Sequence[Piece]], *, look: Look, key: str) -> Picture:
    """Lines of text.

    Args:
        lines: their parts, from left to right; a part with an entry is a button that opens it.
        look: ``prose`` for an explanation, ``symbols`` for those of a formula, one beside the other, ``code`` for
            aligned lines, ``small`` for a caption.
        key: identifies the element on the page.
    """
    header = {"key": key, "look": look, "lines": list(lines)}
    return Picture("words/element.js", pack(header, {}), key)
