"""The sources of a model, and the views and panels that a model of each is seen in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from visualizer.settings.views import VIEWS

SourceName = Literal["built", "pretrained", "recording"]
Panel = Literal["heads", "search", "way", "compare", "operations", "write", "mask", "edits", "prove"]

VIEWS_OF: Mapping[SourceName, Mapping[str, tuple[Panel, ...]]] = {
    "built": dict.fromkeys(VIEWS, ()),
    "pretrained": {
        "way": ("way",),
        "step": ("operations",),
        "heads": ("heads", "search"),
        "compare": ("compare", "edits"),
        "lab": ("mask", "prove"),
        "generate": ("write",),
    },
    "recording": {"step": ("operations",), "heads": ("heads",), "compare": ("compare",)},
}
"""The views of each source; those of a model that was not built here with their panels, the usual one first."""

VIEW_OF: Mapping[Panel, str] = {panel: view for view, panels in VIEWS_OF["pretrained"].items() for panel in panels}
"""The view that each panel belongs to."""


def has_own_run(source: SourceName, view: str) -> bool:
    """True if a view shows a run of the model that is built here, which can be covered, asked about and walked."""
    return source == "built" and VIEWS[view].has_run


def view_in(source: SourceName, view: str) -> str:
    """The view, where a source has it; else its heads."""
    return view if view in VIEWS_OF[source] else "heads"


def panel_in(source: SourceName, view: str, chosen: Panel) -> Panel:
    """The panel that is chosen, where a view of a source has it; else the usual one."""
    offered = VIEWS_OF[source][view]
    return chosen if chosen in offered else offered[0]


def renewed(link: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """A link in today's parameters: other models were once a view of their own, with a door and panels."""
    if list(link.get("view", ())) != ["watched"]:
        return link
    door, panel = (next(iter(link.get(f"watched_{name}", ())), "") for name in ("door", "panel"))
    source = "pretrained" if door == "pretrained" else "recording"
    view = next((view for each, view in VIEW_OF.items() if each == panel), "heads")
    former = {"watched_query": ["0"], "watched_mask": ["k <= q"]}  # the defaults of that view
    return {**former, **link, "view": [view], "source": [source]}
