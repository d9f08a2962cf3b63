"""Has the browser ask for the numbers of a picture before the picture itself is there."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from visualizer.components.packing import pack
from visualizer.components.picture import Picture

WORKER = 'import { hear } from "./worker.js";\nself.onmessage = ({ data }) => hear(data);\n'
"""The source of the script that asks, beside the page; it stands in this folder."""


def ask_ahead(line: str, *, script: str, key: str) -> Picture:
    """What the page asks for: it shows nothing.

    line: the address at which the page is told where the numbers will be that a picture draws next, "" where none
        are foreseen.
    script: the address of ``WORKER`` with what it imports.
    """
    return Picture("ask_ahead/ask.js", pack({"key": key, "line": line, "script": script}, {}), key)


@dataclass(frozen=True)
class Control:
    """A control of the page, whose values the browser can read.

    Attributes:
        selector: what it is found by, in CSS.
        values: what its places stand for, as in a link; empty for one with numbers or a text.
        usual: the value that links leave out.
    """

    selector: str
    values: tuple[str, ...]
    usual: str


def foresee(controls: Mapping[str, Control], *, untaken: str, key: str) -> Picture:
    """Has the browser ask for the next numbers when a person changes a control: it shows nothing.

    controls: by the name of its setting.
    untaken: what says, in a control, that its text is not taken yet.
    """
    described = {name: asdict(control) for name, control in controls.items()}
    return Picture("ask_ahead/foresee.js", pack({"key": key, "untaken": untaken, "controls": described}, {}), key)
