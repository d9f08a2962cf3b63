"""Accounts of what another mask does to the weights of an attention: which keys lost them, and which gained."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st
import torch

from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.settings.settings import Selection, mask_title
from visualizer.views.comparison import Shift, has_same_mask, most_freed, opened, same_mask_note, shift

say = texts_of(__name__)


def what_changed(a: Run, b: Run, module: str, selection: Selection, batch: int) -> None:
    """Say why nothing changed or, folded, what the query that lost most weight, and the selected one, lost."""
    if has_same_mask(a, b, module):
        _same_masks(a, b, module, selection, batch)
        return
    with st.expander(say("changed"), key="what_changed"):
        say_opened(a, b, module, batch, selection.head)
        _where_it_went(a, b, module, selection, batch)


def _same_masks(a: Run, b: Run, module: str, selection: Selection, batch: int) -> None:
    """Say where the difference comes from at an attention that has the same masks in A and in B."""
    masks = mask_title(a.mask_of(module).names)
    if not b.interventions:
        st.markdown(same_mask_note(a, b, module, masks))
    elif torch.equal(a.trace[f"{module}.weights"].value, b.trace[f"{module}.weights"].value):
        st.markdown(say("edited_later", masks=masks))
    else:
        st.markdown(say("edited", masks=masks))
        with st.expander(say("changed"), key="what_changed"):
            st.markdown(account_of(a, b, module, place_of(a, module, selection), batch))


def _where_it_went(a: Run, b: Run, module: str, selection: Selection, batch: int) -> None:
    selected = place_of(a, module, selection)
    most = most_freed(a, b, module, batch=batch)
    if most != selected and shift(a, b, module, batch=batch, head=most[0], query=most[1]).freed > 0:
        st.markdown(say("largest_change", account=account_of(a, b, module, most, batch)))
    st.markdown(account_of(a, b, module, selected, batch))


def place_of(run: Run, module: str, selection: Selection) -> tuple[int, int]:
    """The head and the query that are looked at, or the last that the run has."""
    n_heads, n_queries, _ = run.trace[f"{module}.weights"].value.shape[1:]
    return min(selection.head, n_heads - 1), min(selection.query, n_queries - 1)


def say_opened(a: Run, b: Run, module: str, batch: int, head: int) -> None:
    """Say how many cells each mask opens that the other blocks."""
    n_heads = a.trace[f"{module}.weights"].value.shape[1]
    head = min(head, n_heads - 1)
    only_a, only_b = opened(a, b, module, batch=batch, head=head)
    parts = [
        say("opens", run=name, count=count, other=other)
        for name, count, other in (("A", only_a, "B"), ("B", only_b, "A"))
        if count
    ]
    said = ", ".join(parts) if parts else say("opens_same")
    st.markdown(say("opened", layer=layer_of(module), head=a.head_label(head), said=said))


def account_of(a: Run, b: Run, module: str, place: tuple[int, int], batch: int) -> str:
    """Return the account of the weight of one query, in one head."""
    head, query = place
    rows, columns = a.axes(f"{module}.weights")
    moved = shift(a, b, module, batch=batch, head=head, query=query)
    return say(
        "account",
        layer=layer_of(module),
        head=a.head_label(head),
        query=query,
        label=markdown_safe(rows.labels[query]),
        said=_sentence(moved, columns),
    )


def _sentence(moved: Shift, keys: Axis) -> str:
    """Say what happened to the weight of one query."""
    if not moved.has_key:
        return say("no_key")
    freed, lost = in_hundredths([moved.freed, sum(moved.other_losses)])
    gained = round(100 * moved.gained)
    if not (freed or lost or gained):
        return say("nothing_freed", blocked=_blocked(moved)) if moved.blocked_keys else say("same_weights")
    # as much was gained as was lost, unless a row does not sum to one: it has no key, or the model is broken
    is_moved = abs(moved.gained - moved.freed - sum(moved.other_losses)) < _ROUNDED
    gains = _gains(moved, keys, freed + lost if is_moved else gained)
    n_lost = len(moved.other_losses)
    losses = say("lost", count=n_lost, lost=lost / 100)
    if not moved.blocked_keys:
        moves = [say("gave_more", gains=gains) if gains else say("no_gain"), losses if lost else ""]
        return say("none_blocked", moves="; ".join(filter(None, moves)))
    taken = say("freed", blocked=_blocked(moved), freed=freed / 100)
    if lost:
        taken = say("freed_and_lost", freed=taken, losses=losses)
    if not gains:
        return say("none_gained", freed=taken)
    return say("went_to", freed=taken, gains=gains) if is_moved else say("and_gave_more", freed=taken, gains=gains)


_ROUNDED = 0.005


def _blocked(moved: Shift) -> str:
    return say("this_key") if moved.blocked_keys == 1 else say("these_keys", count=moved.blocked_keys)


def _gains(moved: Shift, keys: Axis, total: int) -> str:
    """Say which keys gained, in numbers that add up to ``total`` hundredths.

    A key whose gain rounds to nothing is one of the others.
    """
    parts = [gain for _, gain in moved.gains] + ([sum(moved.other_gains)] if moved.other_gains else [])
    shown = in_hundredths(parts, total)
    named = [
        say("gain", key=key, label=markdown_safe(keys.labels[key]), gain=hundredths / 100)
        for (key, _), hundredths in zip(moved.gains, shown, strict=False)
        if hundredths
    ]
    count = len(moved.gains) + len(moved.other_gains) - len(named)
    if not count:
        return ", ".join(named)
    together = shown[-1] if moved.other_gains else 0
    rest = f"+{together / 100:.2f}" if together else say("little")
    others = say("one_other", rest=rest) if count == 1 else say("others", count=count, rest=rest)
    return say("gains_and_others", named=", ".join(named), others=others) if named else others


def in_hundredths(parts: Sequence[float], total: int | None = None) -> list[int]:
    """Each part in whole hundredths, up or down so that they add up to the total, rounded, or to the one given."""
    exact = [100 * part for part in parts]
    down = [math.floor(part) for part in exact]
    missing = (round(sum(exact)) if total is None else total) - sum(down)
    most_cut = sorted(range(len(exact)), key=lambda i: down[i] - exact[i])
    return [part + (i in most_cut[:missing]) for i, part in enumerate(down)]
