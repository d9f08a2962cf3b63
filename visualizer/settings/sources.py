"""The sources of a model, and the views and panels that a model of each is seen in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from visualizer.settings.fields import MAX_TOKENS, PRETRAINED
from visualizer.settings.views import VIEWS

SourceName = Literal["built", "pretrained", "recording"]
Panel = Literal["heads", "way", "compare", "operations", "write"]

VIEWS_OF: Mapping[SourceName, Mapping[str, tuple[Panel, ...]]] = {
    "built": dict.fromkeys(VIEWS, ()),
    "pretrained": {
        "way": ("way",),
        "step": ("operations",),
        "heads": (),
        "compare": (),
        "lab": (),
        "generate": ("write",),
    },
    "recording": {"step": ("operations",), "heads": ("heads",), "compare": ("compare",)},
}
"""The views of each source; with a panel where they draw what was seen of a pass, and not a run like any other."""

_VIEW_OF: Mapping[str, str] = {
    **{panel: view for view, panels in VIEWS_OF["pretrained"].items() for panel in panels},
    **dict.fromkeys(("heads", "search"), "heads"),
    **dict.fromkeys(("compare", "edits"), "compare"),
    **dict.fromkeys(("mask", "prove"), "lab"),
}
"""The view of each panel, also of those that links of before name."""


def view_of(panel: Panel) -> str:
    """The view that a panel belongs to."""
    return _VIEW_OF[panel]


def has_run(source: SourceName, view: str) -> bool:
    """True if a view draws a run that masks and edits change, which can be covered and asked about."""
    return VIEWS[view].has_run and VIEWS_OF[source].get(view) == ()


def view_in(source: SourceName, view: str) -> str:
    """The view, where a source has it; else its heads."""
    return view if view in VIEWS_OF[source] else "heads"


def panel_in(source: SourceName, view: str, chosen: Panel) -> Panel:
    """The panel that is chosen, where a view of a source has it; else the usual one."""
    offered = VIEWS_OF[source][view] or ("heads",)
    return chosen if chosen in offered else offered[0]


def renewed(link: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """A link in today's parameters.

    Other models were once a view of their own, with a door and panels, and a checkpoint had texts and masks beside
    those of the model that is built here.
    """
    found = link
    if list(link.get("view", ())) == ["watched"]:
        door, panel = (next(iter(link.get(f"watched_{name}", ())), "") for name in ("door", "panel"))
        source = "pretrained" if door == "pretrained" else "recording"
        former = {"watched_query": ["0"], "watched_mask": ["k <= q"]}  # the defaults of that view
        found = {**former, **link, "view": [_VIEW_OF.get(panel, "heads")], "source": [source]}
    if list(found.get("source", ())) == ["pretrained"] and "weights" not in found:
        return _of_checkpoint(found)
    return found


def _of_checkpoint(link: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """A link to a checkpoint, with the texts, masks and places in the fields of every other run."""
    panel = next(iter(link.get("watched_panel", ())), "")
    found: dict[str, Sequence[str]] = {
        "query": [str(MAX_TOKENS - 1)],
        "key": ["0"],
        "head": ["0"],
    }  # the last token was the usual one
    found |= {new: link[old] for old, new in _RENAMED.items() if old in link}
    if number := re.search(r"\d+", next(iter(link.get("watched_attention", ())), "")):
        found["layer"] = [number[0]]
    if panel == "mask" or "pretrained_mask" in link:
        found |= {"mask": ["custom"], "custom": link.get("pretrained_mask", ["k <= q and q - k < 4"])}
    return {**link, **found, **_TOOLS.get(panel, {}), "weights": [PRETRAINED]}


_RENAMED = {
    **{"pretrained_text": "text", "pretrained_second": "target", "pretrained_edits": "edits"},
    **{"pretrained_other_text": "other_text", "watched_item": "batch"},
    **{"watched_head": "head", "watched_query": "query", "watched_key": "key"},
}
_TOOLS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "search": {"chart": ["measures"]},
    "prove": {"panel": ["prove"]},
}
