"""The masks in a loaded array, and their faults beside what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import streamlit as st
from torch import Tensor

from headlight.masks.beside_intent import all_clear, findings_under, without_key
from headlight.masks.destinations import DESTINATIONS, Destination, passed_to
from headlight.masks.intents import Intent, plain_context
from headlight.masks.language import MaskContext
from headlight.masks.mask_case import Finding, MaskCase
from headlight.masks.naming import name_of
from headlight.masks.planes import Passed
from model.texts import capitalized, texts_of
from visualizer.safe_text import markdown_safe
from visualizer.settings.painted_mask import asks_for_head
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import expected_cells, intent_of_array, padding_of
from visualizer.views.lab.planes import CALLED, ICONS, Found, Plane, judged
from visualizer.views.lab.tokens_said import TokensSaid

say = texts_of(__name__)
_MANY_CELLS = 256 * 256


def draw_findings(
    case: Case, passed: Passed, planes: Sequence[Plane], shown: Plane, destination: Destination
) -> Tensor | None:
    """Draw what the masks are and, once it is said what they should be, all their faults.

    Returns:
        The cells of the mask shown that are not as they should be, (Tq, Tk); None where there are none.
    """
    with st.spinner(say("comparing")) if shown.allowed.numel() > _MANY_CELLS else st.container():
        try:
            return _judge(case, passed, planes, shown, destination)
        except ValueError as error:
            st.warning(markdown_safe(say("not_compared", error=error)), icon=":material/warning:")
            return None


def _judge(
    case: Case, passed: Passed, planes: Sequence[Plane], shown: Plane, destination: Destination
) -> Tensor | None:
    context, intent = _said_of(case, shown, destination)
    cells = None if intent is None else expected_cells(intent, "intent_array", case.allowed)
    if intent is not None and asks_for_head(intent.condition):
        planes = [replace(plane, tokens=number) for number, plane in enumerate(planes)]

    @cache
    def judge(plane: Plane) -> Sequence[Finding]:
        over, meant = _said_of(case, plane, destination)
        mask = MaskCase(plane.allowed, *padding_of(over), causal=False, fill=passed.fill, dtype=passed.dtype)
        if meant is None:
            return _described(mask, over, destination)
        return findings_under(meant, mask, over, cells=cells, keyless=destination.keyless)

    found = judged(planes, judge)
    if intent is None:
        _draw(found, "")
        st.caption(say("say_padding") if destination.rows == "sequences" else say("say_intent"))
    else:
        _draw(found, all_clear(intent, shown.allowed, context, cells))
    return next((one.cells for one in judge(shown) if one.rule == "not_as_meant"), None)


def _said_of(case: Case, plane: Plane, destination: Destination) -> tuple[MaskContext, Intent | None]:
    """Return what is said of the tokens of one mask, and of what it should be."""
    said = TokensSaid(case.selection.lab.array_documents, case.selection.lab.array_padding)
    (n_queries, n_keys), at = plane.allowed.shape, dict(plane.index)
    before = case.selection.lab.keys_before if n_queries != n_keys else 0
    before = before if before >= 0 else max(0, n_keys - n_queries)
    context = said.context(n_queries, n_keys, before, at.get("sequence", 0), at.get("head", 0))
    if destination.rows == "queries":
        return context, intent_of_array(case, context)
    of_keys = Intent("bidirectional", padding=True) if said.padding.strip() else None
    return replace(context, query_is_padding=(False,)), of_keys


def _described(mask: MaskCase, context: MaskContext, destination: Destination) -> Sequence[Finding]:
    """Describe a mask and its rows without a key, as notes."""
    name = Finding("name", say("this_is", name=name_of(mask.allowed, context)), "note", mask.allowed, "", "")
    keyless = without_key(mask, destination.keyless)
    return [name] if keyless is None else [name, replace(keyless, severity="note")]


def _draw(found: Sequence[Found], all_clear: str) -> None:
    for one in found:
        finding = one.finding
        if finding.rule == "name":
            st.markdown(markdown_safe(f"{capitalized(one.where + finding.title)}."))
            continue
        draw_finding(one)
        if finding.mend:
            st.caption(markdown_safe(finding.mend))
    if not any(one.finding.severity == "error" for one in found) and all_clear:
        st.success(markdown_safe(all_clear), icon=":material/check:")


def draw_finding(one: Found, attention: str = "") -> None:
    """Draw what is found in masks of an attention, with its severity in front."""
    finding = one.finding
    head = markdown_safe(f"{CALLED[finding.severity]}: {finding.title}")
    st.markdown(f"{ICONS[finding.severity]} **{head}.** {markdown_safe(attention + one.where + finding.why)}")


def elsewhere(array: Tensor, place: str, here: Tensor | None, n_heads: int) -> None:
    """Say what the array would be in other places, one line for each mask that has a name."""
    places: dict[str, list[str]] = {}
    for name, destination in DESTINATIONS.items():
        if name == place or destination.rows == "sequences" or array.dim() == 1:
            continue
        allowed = passed_to(array, name, n_heads).allowed
        if allowed is None or (here is not None and _same_cells(allowed, here)):
            continue
        if (words := _name_of(allowed)) is not None:
            places.setdefault(words, []).append(destination.title)
    for words, (first, *more) in places.items():
        others = say("other_places", n_more=len(more)) if more else ""
        st.caption(markdown_safe(say("would_be", place=first, others=others, name=words)))


def _same_cells(one: Tensor, other: Tensor) -> bool:
    return one.numel() == other.numel() and bool((one.flatten() == other.flatten()).all())


def _name_of(allowed: Tensor) -> str | None:
    """The mask that every plane is, in words; None where they differ or it has no short name."""
    flat = allowed.reshape(-1, *allowed.shape[-2:])
    if bool((flat != flat[:1]).any()):
        return None
    words = name_of(flat[0], plain_context(*flat.shape[-2:]))
    return None if words.startswith("irregular") else words
