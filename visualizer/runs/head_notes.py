"""What keeps a hand-built head from doing what its name says."""

from __future__ import annotations


def head_note(name: str, masks: tuple[str, ...], *, is_cross: bool, two_vocabularies: bool = False) -> str:
    """Where a hand-built head cannot do what its name says, in one sentence; empty where it can everywhere.

    Args:
        name: one of ``hand_built_names``, or empty.
        masks: the names of the masks of its attention.
        is_cross: whether it attends from the target to the source.
        two_vocabularies: whether source and target have one each.
    """
    if name.endswith(")"):  # its name says what the model lacks for it
        return "The model lacks what this head needs, so it gives every allowed key the same weight."
    if _reads_itself(name, masks, is_cross=is_cross):
        return "The causal mask blocks the next token, so this head reads its own token."
    target = _target(name)
    if target == "same token" and is_cross and two_vocabularies:
        return (
            "Source and target have vocabularies of their own, so that to the model no token of the one is a token "
            f"of the other: the weight of “{name}” falls on whatever is least unlike."
        )
    if target == "ahead" and "causal" in masks:
        return f"The causal mask blocks what “{name}” looks for, so its weight falls on what is left."
    reasons = [_MISSING[target, is_cross]] if (target, is_cross) in _MISSING else []
    if not _BLOCKERS.get(target, frozenset()).isdisjoint(masks):
        reasons.append("a mask blocks what it looks for")
    return f"Where {' or '.join(reasons)}, the weight of “{name}” falls elsewhere." if reasons else ""


def noted_name(name: str, masks: tuple[str, ...], *, is_cross: bool) -> str:
    """The name of a head, with what it does instead where its masks leave it only that."""
    return f"{name} (causal: reads itself)" if _reads_itself(name, masks, is_cross=is_cross) else name


def _reads_itself(name: str, masks: tuple[str, ...], *, is_cross: bool) -> bool:
    leaves_itself = {"causal", "padding", "prefix", "sliding_window"}
    return name == "next token" and "causal" in masks and leaves_itself.issuperset(masks) and not is_cross


def _target(name: str) -> str:
    """What a head looks for, with all distances ahead, and all back, as one."""
    last = name.rpartition(" ")[2]
    return {"next token": "ahead", "previous token": "back"}.get(name, last if last in ("ahead", "back") else name)


_MISSING = {
    ("ahead", False): "there is nothing that far ahead",
    ("back", False): "there is nothing that far back",
    ("ahead", True): "the source has no token at that place",
    ("back", True): "the source has no token at that place",
    ("itself", True): "the source has no token at that place",
    ("same token", True): "the source has no equal token",
}
"""What there may be none of, by what a head looks for and whether in cross-attention."""

_BLOCKERS = {
    "ahead": frozenset({"prefix", "padding", "sliding_window", "strided", "custom"}),
    "back": frozenset({"padding", "sliding_window", "strided", "custom"}),
    "first token": frozenset({"sliding_window", "strided", "custom"}),
    "itself": frozenset({"padding", "custom"}),
    "same token": frozenset({"padding", "custom"}),
}
"""The masks that may block what a head looks for."""
