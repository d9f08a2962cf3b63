"""Has the browser ask for the numbers of a picture before the picture itself is there."""

from visualizer.components.packing import pack
from visualizer.components.picture import Picture


def ask_ahead(address: str, *, key: str) -> Picture:
    """What the page asks for: it shows nothing.

    address: where the numbers will be that a picture draws next; "" where none are foreseen.
    """
    return Picture("ask_ahead/ask.js", pack({"address": address}, {}), key)
