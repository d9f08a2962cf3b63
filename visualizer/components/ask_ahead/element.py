"""Has the browser ask for the numbers of a picture before the picture itself is there."""

from visualizer.components.packing import pack
from visualizer.components.picture import Picture

WORKER = 'import { listen } from "./worker.js";\nself.onmessage = ({ data }) => listen(data);\n'
"""The source of the script that asks, beside the page; it stands in this folder."""


def ask_ahead(line: str, *, script: str, key: str) -> Picture:
    """What the page asks for: it shows nothing.

    line: the address at which the page is told where the numbers will be that a picture draws next, "" where none
        are foreseen.
    script: the address of ``WORKER`` with what it imports.
    """
    return Picture("ask_ahead/ask.js", pack({"line": line, "script": script}, {}), key)
