"""What a loaded array is, and what is wrong with it beside what it should be, in all its masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
import torch
from torch import Tensor

from model.mask_tools.beside_intent import all_clear, findings_under, without_key
from model.mask_tools.destinations import DESTINATIONS, Destination, passed_to
from model.mask_tools.intents import plain_context
from model.mask_tools.language import MaskContext
from model.mask_tools.mask_case import Finding, MaskCase
from model.mask_tools.naming import name_of
from model.mask_tools.planes import Passed
from visualizer.safe_text import markdown_safe
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import given_cells, intent_of_array, padding_of
from visualizer.views.lab.planes import ICONS, Found, Plane, judged
from visualizer.views.lab.tokens_said import TokensSaid

_MANY_CELLS = 256 * 256


def draw_findings(
    case: Case, passed: Passed, planes: Sequence[Plane], shown: Plane, destination: Destination
) -> None:
    """What the masks are, and, once it is said what they should be, everything that is wrong with any of them."""
    said = TokensSaid(case.selection.array_documents, case.selection.array_padding)
    with st.spinner("Comparing every cell …") if shown.allowed.numel() > _MANY_CELLS else st.container():
        try:
            if destination.rows == "sequences":
                _say_keys(planes, shown)
                if said.padding.strip():
                    _draw(judged(planes, lambda plane: _of_keys(plane, said)), "Every key is as it should be.")
                return
            _judge(case, passed, planes, shown, destination, said)
        except ValueError as error:
            st.warning(markdown_safe(f"Nothing is compared: {error}."), icon=":material/warning:")


def _judge(
    case: Case, passed: Passed, planes: Sequence[Plane], shown: Plane, destination: Destination, said: TokensSaid
) -> None:
    context = _context(case, shown, said)
    intent = intent_of_array(case, context)
    if intent is None:
        _draw(judged(planes, lambda plane: _described(_mask(passed, plane, context), context, destination)), "")
        st.caption("What should it be? Say it above: then every cell is compared.")
        return
    cells = given_cells(intent, case.allowed)

    def judge(plane: Plane) -> Sequence[Finding]:
        of_plane = _context(case, plane, said)
        meant = intent_of_array(case, of_plane) or intent
        return findings_under(
            meant, _mask(passed, plane, of_plane), of_plane, cells=cells, keyless=destination.keyless
        )

    _draw(judged(planes, judge), all_clear(intent, shown.allowed, context, cells))


def _mask(passed: Passed, plane: Plane, context: MaskContext) -> MaskCase:
    return MaskCase(plane.allowed, *padding_of(context), causal=False, fill=passed.fill, dtype=passed.dtype)


def _described(mask: MaskCase, context: MaskContext, destination: Destination) -> Sequence[Finding]:
    """What a mask is, and which of its rows have no key, as notes."""
    name = Finding("name", f"this is {name_of(mask.allowed, context)}", "note", mask.allowed, "", "")
    keyless = without_key(mask, destination.keyless)
    return [name] if keyless is None else [name, replace(keyless, severity="note")]


def _context(case: Case, plane: Plane, said: TokensSaid) -> MaskContext:
    """What is said of the tokens of one mask."""
    (n_queries, n_keys), at = plane.allowed.shape, dict(plane.index)
    before = case.selection.keys_before if n_queries != n_keys else 0
    before = before if before >= 0 else max(0, n_keys - n_queries)
    return said.context(n_queries, n_keys, before, at.get("sequence", 0), at.get("head", 0))


def _of_keys(plane: Plane, said: TokensSaid) -> Sequence[Finding]:
    """What is wrong with the one row of a sequence whose padding was said."""
    open_keys, sequence = plane.allowed[0], dict(plane.index).get("sequence", 0)
    is_padding = torch.tensor(said.context(1, len(open_keys), 0, sequence).key_is_padding)
    if torch.equal(open_keys, ~is_padding):
        return []
    seen, hidden = int((open_keys & is_padding).sum()), int((~open_keys & ~is_padding).sum())
    cause = " It blocks everything." if not open_keys.any() else ""
    if not cause and torch.equal(open_keys, is_padding):
        cause = " Every key is the wrong way round: it is inverted."
    return [
        Finding(
            rule="not_the_padding",
            title="This is not the padding that you said",
            severity="error",
            cells=(open_keys == is_padding)[None],
            why=f"{seen} of {int(is_padding.sum())} padding keys are open, {hidden} tokens are blocked.{cause}",
            mend="Block the padding, and nothing else.",
        )
    ]


def _say_keys(planes: Sequence[Plane], shown: Plane) -> None:
    """Where the blocked keys are, in words."""
    open_keys = shown.allowed[0]
    n_open, n_keys = int(open_keys.sum()), len(open_keys)
    if n_open in (0, n_keys):
        st.caption(f"Every query may attend to {'all' if n_open else 'none'} of {n_keys} keys.")
        return
    is_at_one_end = int(open_keys.int().diff().abs().sum()) == 1
    side = "right" if bool(open_keys[0]) else "left"
    where = f"stand on the {side}, where padding can be" if is_at_one_end else "are not at one end"
    name = f"{shown.name.capitalize()}: e" if shown.name else "E"
    st.caption(f"{name}very query may attend to {n_open} of {n_keys} keys; the others {where}.")


def _draw(found: Sequence[Found], all_clear: str) -> None:
    for one in found:
        finding = one.finding
        if finding.rule == "name":
            said = one.where + finding.title
            st.markdown(markdown_safe(f"{said[0].upper()}{said[1:]}."))
            continue
        head = f"{finding.severity.capitalize()}: {finding.title}"
        st.markdown(
            f"{ICONS[finding.severity]} **{markdown_safe(head)}.** {markdown_safe(one.where + finding.why)}"
        )
        if finding.mend:
            st.caption(markdown_safe(finding.mend))
    if not any(one.finding.severity == "error" for one in found) and all_clear:
        st.success(markdown_safe(all_clear), icon=":material/check:")


def elsewhere(given: Tensor, place: str, here: Tensor | None, n_heads: int) -> None:
    """What the array would be in other places, one line for each mask that has a name."""
    places: dict[str, list[str]] = {}
    for name, destination in DESTINATIONS.items():
        if name == place or destination.rows == "sequences" or given.dim() == 1:
            continue
        allowed = passed_to(given, name, n_heads).allowed
        if allowed is None or (here is not None and _same_cells(allowed, here)):
            continue
        if (words := _name_of(allowed)) is not None:
            places.setdefault(words, []).append(destination.title)
    for words, titles in places.items():
        first = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
        st.caption(markdown_safe(f"Under {first} this would be {words}."))


def _same_cells(one: Tensor, other: Tensor) -> bool:
    return one.numel() == other.numel() and bool((one.flatten() == other.flatten()).all())


def _name_of(allowed: Tensor) -> str | None:
    """The mask that every plane is, in words; None where they differ or it has no short name."""
    flat = allowed.reshape(-1, *allowed.shape[-2:])
    if bool((flat != flat[:1]).any()):
        return None
    words = name_of(flat[0], plain_context(*flat.shape[-2:]))
    return None if words.startswith("irregular") else words
