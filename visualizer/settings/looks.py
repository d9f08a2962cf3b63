"""The looks chosen in the pictures of heads, between the selection and the components."""

from __future__ import annotations

from typing import Any

from visualizer.components.looks import LOOKS, Looks
from visualizer.settings.link import chosen_in
from visualizer.settings.settings import Selection


def looks_of(selection: Selection) -> Looks:
    """Return the looks of the heads."""
    return Looks(**{name: getattr(selection.heads, name) for name in LOOKS})


def looks_in(event: object) -> dict[str, Any]:
    """Return the changes of the selection by an event of such a component."""
    return chosen_in(event, LOOKS)
