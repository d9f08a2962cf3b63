"""A picture as any host gets it: the app, a notebook, a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A picture to be drawn, and the module that draws it.

    module: the JavaScript module that draws it, relative to this folder; it exports ``render(root, bytes, host)``,
        which returns ``{update(bytes), destroy()}``.
    data: the packed bytes.
    key: names the picture among those of a page.
    events: what a person can do in it, by the names that it gives its host.
    """

    module: str
    data: bytes
    key: str
    events: tuple[str, ...] = ()
