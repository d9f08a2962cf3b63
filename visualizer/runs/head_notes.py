"""Notes on hand-built heads that cannot do what their names say."""

from __future__ import annotations

from model.masks import CombinedMask
from model.texts import texts_of

say = texts_of(__name__)


def head_note(name: str, masks: tuple[str, ...], *, is_cross: bool, two_vocabularies: bool = False) -> str:
    """Say in one sentence where a hand-built head cannot do what its name says; empty where it can everywhere.

    Args:
        name: one of ``hand_built_names``, or empty.
        masks: what is ``blocking`` in its attention.
        is_cross: whether it attends from the target to the source.
        two_vocabularies: whether source and target have one each.
    """
    if name.endswith(")"):  # its name says what the model lacks for it
        return say("lacks")
    if _reads_itself(name, masks, is_cross=is_cross):
        return say("reads_itself")
    target = _target(name)
    if target == "same token" and is_cross and two_vocabularies:
        return say("two_vocabularies", name=name)
    if target == "ahead" and "causal" in masks:
        return say("blocked_ahead", name=name)
    missing = _MISSING.get((target, is_cross))
    if not _BLOCKERS.get(target, frozenset()).isdisjoint(masks):
        return say("missing_or_blocked", missing=missing, name=name) if missing else say("blocked", name=name)
    return say("missing", missing=missing, name=name) if missing else ""


def blocking(mask: CombinedMask) -> tuple[str, ...]:
    """The names of the masks of an attention, without a painted one that blocks nothing."""
    return tuple(name for name, part in mask.parts.items() if name != "custom" or not part.all())


def noted_name(name: str, masks: tuple[str, ...], *, is_cross: bool) -> str:
    """The name of a head, with what it does instead where its masks leave it only that."""
    return say("name_reads_itself", name=name) if _reads_itself(name, masks, is_cross=is_cross) else name


def _reads_itself(name: str, masks: tuple[str, ...], *, is_cross: bool) -> bool:
    leaves_itself = {"causal", "padding", "prefix", "sliding_window"}
    return name == "next token" and "causal" in masks and leaves_itself.issuperset(masks) and not is_cross


def _target(name: str) -> str:
    """Return the target that a head looks for, with all distances ahead, and all back, as one."""
    last = name.rpartition(" ")[2]
    return {"next token": "ahead", "previous token": "back"}.get(name, last if last in ("ahead", "back") else name)


_MISSING = {
    ("ahead", False): say("nothing_ahead"),
    ("back", False): say("nothing_back"),
    ("ahead", True): say("no_token"),
    ("back", True): say("no_token"),
    ("itself", True): say("no_token"),
    ("same token", True): say("no_equal_token"),
}
"""The words for what may be missing, by what a head looks for and whether it is in cross-attention."""

_BLOCKERS = {
    "ahead": frozenset({"prefix", "padding", "sliding_window", "strided", "custom"}),
    "back": frozenset({"padding", "sliding_window", "strided", "custom"}),
    "first token": frozenset({"sliding_window", "strided", "custom"}),
    "itself": frozenset({"padding", "custom"}),
    "same token": frozenset({"padding", "custom"}),
}
"""The masks that may block what a head looks for."""
