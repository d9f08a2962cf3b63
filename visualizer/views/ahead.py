"""Numbers are asked for as soon as their address is known, while their run is still being computed.

What is drawn next is foreseen from what was drawn last. Where that is wrong, an answer is made that nobody draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from visualizer.routes.address import picture_address
from visualizer.session import drafts
from visualizer.session.asking import line_of_page
from visualizer.session.told_ahead import tell
from visualizer.settings.settings import Selection, Settings

_LAST = "addressed_last"


@dataclass(frozen=True)
class _Addressed:
    """What was drawn last by an address.

    Attributes:
        selection: what was looked at, as chosen.
        shown: the same, as it is in the address.
        picture: the name of the picture.
        n_numbers: how many numbers from 0 to 1 it has.
        by_layer: whether one layer is asked for first.
        for_colors: whether they are seen as colours alone.
    """

    selection: Selection
    shown: Selection
    picture: str
    n_numbers: int
    by_layer: bool
    for_colors: bool

    def foreseen(self, settings: Settings, selection: Selection) -> str:
        """Where the same picture of other settings begins; "" where it will be another one."""
        place = ("view", "stage", "layer", "head", "batch")
        if selection.hidden or any(getattr(selection, name) != getattr(self.selection, name) for name in place):
            return ""
        seen = {name: getattr(self.shown, name) for name in place}
        there = replace(selection, **seen)
        address = picture_address(self.picture, settings, there, self.n_numbers, for_colors=self.for_colors)
        if not address:
            return ""
        return f"{address}&layers={self.shown.layer}" if self.by_layer else address


def ask_for_next(settings: Settings, selection: Selection) -> None:
    """Have the browser ask for what will be drawn of these settings. For before the run is computed."""
    last = drafts.put_by_before(_LAST)
    tell(line_of_page(), last.foreseen(settings, selection) if isinstance(last, _Addressed) else "")


def nothing_addressed() -> None:
    """What is drawn now came with its message, and so will the next."""
    drafts.put_by(_LAST, None)


def addressed(
    picture: str,
    settings: Settings,
    selection: Selection,
    shown: Selection,
    *,
    n_numbers: int = 0,
    by_layer: bool = False,
    for_colors: bool = False,
) -> str | None:
    """``picture_address`` of what is shown, from which the next one is foreseen.

    Args:
        picture: the name of the picture.
        settings: what is run.
        selection: what is looked at, as chosen.
        shown: the same, as it is in this run.
        n_numbers: how many numbers from 0 to 1 it has.
        by_layer: whether the browser asks for the layer shown first.
        for_colors: whether they are seen as colours alone, and a cell's exact number is fetched when asked for.
    """
    drafts.put_by(_LAST, _Addressed(selection, shown, picture, n_numbers, by_layer, for_colors))
    return picture_address(picture, settings, shown, n_numbers, for_colors=for_colors)
