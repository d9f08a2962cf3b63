"""What is wrong with a loaded array beside what it should be, in all its masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
import torch
from torch import Tensor

from model.mask_tools.beside_intent import all_clear, findings_under
from model.mask_tools.destinations import DESTINATIONS, passed_to
from model.mask_tools.intents import Intent, recognise
from model.mask_tools.language import MaskContext
from model.mask_tools.mask_case import Finding, MaskCase
from model.mask_tools.planes import Passed
from visualizer.safe_text import markdown_safe
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import chosen_intent, guessed_intent, padding_of, plain_context
from visualizer.views.lab.planes import ICONS, Found, Plane, judged

_ASSUMES_SCORES = "fill_leaks"
"""A finding of the lint that needs to know the scores; of an array alone the fill's margin is said instead."""


def draw_findings(case: Case, passed: Passed, planes: Sequence[Plane], shown: Plane, *, is_of_keys: bool) -> None:
    """Everything that is wrong with any of the masks, with the masks that it is about."""
    context = _context(case, shown.allowed)
    with st.spinner("Comparing every cell …") if shown.allowed.numel() > _MANY_CELLS else st.container():
        if is_of_keys:
            _draw(judged(planes, lambda plane: _of_keys(case, plane, planes)))
            _say_keys(planes, shown)
            return
        chosen = chosen_intent(case, context)
        intent = (chosen or guessed_intent(case, shown.allowed, context)).standing(context)
        found = judged(planes, lambda plane: _of_queries(intent, passed, plane, context))
    _draw(found)
    if not found:
        st.caption(markdown_safe(all_clear(intent, is_guess=chosen is None)))
    elif chosen is None:
        st.caption(markdown_safe(f"That it should be {intent.words} is a guess: say above what it should be."))


_MANY_CELLS = 256 * 256


def _of_queries(intent: Intent, passed: Passed, plane: Plane, context: MaskContext) -> Sequence[Finding]:
    query_is_padding, key_is_padding = padding_of(context)
    mask = MaskCase(
        allowed=plane.allowed,
        query_is_padding=query_is_padding,
        key_is_padding=key_is_padding,
        causal=intent.hides_later,
        fill=passed.fill,
        dtype=passed.dtype,
    )
    return [finding for finding in findings_under(intent, mask, context) if finding.rule != _ASSUMES_SCORES]


def _of_keys(case: Case, plane: Plane, planes: Sequence[Plane]) -> Sequence[Finding]:
    """What is wrong with the one row of a sequence, where its padding is known."""
    n_keys = plane.allowed.shape[1]
    is_known = len(planes) == 1 and n_keys == len(case.keys) and any(case.keys.is_padding)
    is_padding = torch.tensor(case.keys.is_padding) if is_known else torch.zeros(n_keys, dtype=torch.bool)
    open_keys = plane.allowed[0]
    if not open_keys.any():
        return [_keyless(plane, may_be_turned=any(bool(other.allowed.any()) for other in planes))]
    if not is_known or torch.equal(open_keys, ~is_padding):
        return []
    seen, hidden = int((open_keys & is_padding).sum()), int((~open_keys & ~is_padding).sum())
    turned = " Every key is the wrong way round: it is inverted." if torch.equal(open_keys, is_padding) else ""
    return [
        Finding(
            rule="not_the_padding",
            title="This is not the padding of the text",
            severity="error",
            cells=(open_keys == is_padding)[None],
            why=f"{seen} of {int(is_padding.sum())} padding keys are open, {hidden} tokens are blocked.{turned}",
            mend="Block the padding, and nothing else.",
        )
    ]


def _keyless(plane: Plane, *, may_be_turned: bool) -> Finding:
    turned = " A sequence without padding is such a row where the mask is inverted." if may_be_turned else ""
    return Finding(
        rule="no_key_left",
        title="No key is left",
        severity="error",
        cells=~plane.allowed,
        why=f"Every key of the sequence is blocked, so each of its queries gets NaN or an even mean.{turned}",
        mend="Leave the tokens open, and block the padding.",
    )


def _say_keys(planes: Sequence[Plane], shown: Plane) -> None:
    """Where the blocked keys are, in words."""
    open_keys = shown.allowed[0]
    n_open, n_keys = int(open_keys.sum()), len(open_keys)
    if n_open in (0, n_keys):
        st.caption(f"Every query may attend to {'all' if n_open else 'none'} of {n_keys} keys.")
        return
    changes = int(open_keys.int().diff().abs().sum())
    side = "right" if bool(open_keys[0]) else "left"
    other = "left" if side == "right" else "right"
    where = (
        f"the others are what padding on the {side} looks like. If yours is on the {other}, the mask is inverted."
        if changes == 1
        else "the others are not at one end, where padding is."
    )
    name = f"{shown.name.capitalize()}: e" if shown.name else "E"
    st.caption(f"{name}very query may attend to {n_open} of {n_keys} keys; {where}")


def _draw(found: Sequence[Found]) -> None:
    for one in found:
        finding = one.finding
        head = f"{finding.severity.capitalize()}: {finding.title}"
        st.markdown(
            f"{ICONS[finding.severity]} **{markdown_safe(head)}.** {markdown_safe(one.where + finding.why)}"
        )
        st.caption(markdown_safe(finding.mend))


def _context(case: Case, allowed: Tensor) -> MaskContext:
    """The tokens of the text where the mask is over as many, else tokens of which nothing is known."""
    return case.context if allowed.shape == case.size else plain_context(*allowed.shape)


def elsewhere(given: Tensor, place: str, passed: Passed, n_heads: int) -> None:
    """What the array would be in other places, one line for each mask that has a name."""
    places: dict[str, list[str]] = {}
    for name, destination in DESTINATIONS.items():
        if name == place or destination.rows == "sequences" or given.dim() == 1:
            continue
        allowed = passed_to(given, name, n_heads).allowed
        if allowed is None or (passed.allowed is not None and _same_cells(allowed, passed.allowed)):
            continue
        if (words := _name_of(allowed)) is not None:
            places.setdefault(words, []).append(destination.title)
    for words, titles in places.items():
        first = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
        st.caption(markdown_safe(f"Under {first} this would be {words}."))


def _same_cells(one: Tensor, other: Tensor) -> bool:
    return one.numel() == other.numel() and bool((one.flatten() == other.flatten()).all())


def _name_of(allowed: Tensor) -> str | None:
    """The mask that every plane is, in words; None where it has no name."""
    flat = allowed.reshape(-1, *allowed.shape[-2:])
    if bool((flat != flat[:1]).any()):
        return None
    context = plain_context(*flat.shape[-2:])
    intent = recognise(flat[0], context)
    return None if intent is None else replace(intent, documents=False, padding=False).standing(context).words
