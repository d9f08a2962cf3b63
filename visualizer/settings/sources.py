"""The sources of a model, and the views that a model of each is seen in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from visualizer.settings.fields import MAX_TOKENS, PRETRAINED
from visualizer.settings.views import VIEWS

SourceName = Literal["built", "pretrained", "recording"]

VIEWS_OF: Mapping[SourceName, tuple[str, ...]] = {
    "built": tuple(VIEWS),
    "pretrained": ("way", "step", "heads", "compare", "lab", "generate"),
    "recording": ("way", "step", "heads", "compare"),
}
"""The views of each source."""

TOOLS_OF_CHECKPOINT: tuple[Literal["translate", "load", "blocks", "reach", "prove"], ...] = (
    "translate",
    "load",
    "blocks",
    "reach",
    "prove",
)
"""The tools of the Mask lab for the mask of a checkpoint, whose scores are its own; the usual one first."""

_WITH_A_RUN: Mapping[SourceName, tuple[str, ...]] = {
    "built": tuple(name for name, view in VIEWS.items() if view.has_run),
    "pretrained": ("heads", "compare", "lab", "generate"),
    "recording": (),
}

_OF_PANELS = {
    **{"operations": "step", "way": "way", "write": "generate", "search": "heads"},
    **{"compare": "compare", "edits": "compare", "mask": "lab", "prove": "lab"},
}
"""The view of each panel that links of before name."""


def has_run(source: SourceName, view: str) -> bool:
    """True if a view draws a run that masks and edits change, which can be covered and asked about."""
    return view in _WITH_A_RUN[source]


def view_in(source: SourceName, view: str) -> str:
    """The view, where a source has it; else its heads."""
    return view if view in VIEWS_OF[source] else "heads"


def renewed(link: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """A link in today's parameters.

    Other models were once a view of their own, with a door and panels, and had texts, masks and places beside those
    of the model that is built here.
    """
    found = link
    if list(link.get("view", ())) == ["watched"]:
        door, panel = (next(iter(link.get(f"watched_{name}", ())), "") for name in ("door", "panel"))
        source = "pretrained" if door == "pretrained" else "recording"
        found = {"watched_query": ["0"], **link, "view": [_OF_PANELS.get(panel, "heads")], "source": [source]}
    if list(found.get("source", ())) == ["pretrained"] and "weights" not in found:
        return _of_checkpoint(found)
    if list(found.get("weights", ())) == [PRETRAINED]:
        found = {"source": ["pretrained"], **found}
    renamed = {new: found[old] for old, new in _RENAMED.items() if old in found}
    is_step = list(found.get("view", ())) == ["step"]
    if "watched_stage" in found and is_step:
        renamed |= {"key": ["0"]} | {new: found[old] for old, new in _OF_OPERATION.items() if old in found}
    elif "watched_attention" in found and not is_step:
        renamed["stage"] = found["watched_attention"]
    return {**renamed, **found} if renamed else found


def _of_checkpoint(link: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """A link to a checkpoint, with the texts, masks and places in the fields of every other run."""
    panel = next(iter(link.get("watched_panel", ())), "")
    found: dict[str, Sequence[str]] = {"query": [str(MAX_TOKENS - 1)], "key": ["0"], "head": ["0"]}
    found |= {new: link[old] for old, new in _RENAMED.items() if old in link}
    if number := re.search(r"\d+", next(iter(link.get("watched_attention", ())), "")):
        found["layer"] = [number[0]]
    if panel == "mask" or "pretrained_mask" in link:
        found |= {"mask": ["custom"], "custom": link.get("pretrained_mask", ["k <= q and q - k < 4"])}
    if list(link.get("pretrained_sampling", ())) == ["on"]:
        found["strategy"] = ["sampling"]
    return {**found, **_TOOLS.get(panel, {}), **link, "weights": [PRETRAINED]}


_RENAMED = {
    **{"pretrained_text": "text", "pretrained_second": "target", "pretrained_edits": "edits"},
    **{"pretrained_other_text": "other_text", "watched_item": "batch"},
    **{"watched_head": "head", "watched_query": "query", "watched_key": "key", "pretrained_steps": "limit"},
}
_OF_OPERATION = {"watched_stage": "stage", "watched_row": "query", "watched_column": "key"}
_TOOLS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "search": {"chart": ["measures"]},
    "prove": {"panel": ["prove"]},
}
