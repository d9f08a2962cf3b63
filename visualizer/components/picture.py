"""A picture as any host gets it: the app, a notebook, a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """Something to draw, and the script that draws it.

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
