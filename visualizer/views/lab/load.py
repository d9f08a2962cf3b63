"""A mask from elsewhere: an array uploaded or pasted, and what the place that it is for makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.mask_tools.conventions import read_as
from model.mask_tools.destinations import DESTINATIONS, Passed, Remark, passed_to
from model.mask_tools.intents import Intent, recognise
from model.mask_tools.language import MaskContext
from model.mask_tools.mask_case import MaskCase
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.safe_text import markdown_safe
from visualizer.session import state, widgets
from visualizer.session.mount import mount
from visualizer.views.lab import mask_edits
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import (
    all_clear,
    chosen_intent,
    findings_under,
    guessed_intent,
    padding_of,
    plain_context,
)
from visualizer.views.lab.mask_files import MAX_BYTES, read_pasted, read_upload

_EXAMPLE = "[[1, 0, 0],\n [1, 1, 0],\n [1, 1, 1]]"
_ICONS = {"error": ":material/error:", "warning": ":material/warning:", "note": ":material/info:"}


def render(case: Case) -> None:
    """Draw the fields for an array, the place that it is for, and what it means there."""
    pasting, uploading = st.columns(2)
    text = pasting.text_area(
        "Paste an array",
        key="pasted_mask",
        height=140,
        placeholder=_EXAMPLE,
        help="Nested lists, CSV, or what NumPy or PyTorch prints. Queries are rows, keys are columns.",
        persist_state="page",
    )
    upload = uploading.file_uploader(
        f"Or upload a file, up to {MAX_BYTES // 2**20} MiB",
        type=["npy", "csv", "tsv", "txt", "json"],
        key="mask_file",
    )
    widgets.choice("passed_to")
    try:
        if upload is not None:
            if text.strip():
                st.caption("What is shown is the file: remove it to read what is pasted.")
            array = read_upload(upload.name, upload.getvalue())
        elif text.strip():
            array = read_pasted(text)
        else:
            return
    except ValueError as error:
        _refuse(error)
        return
    _array(case, array)


def _refuse(error: ValueError) -> None:
    sentence = str(error)
    st.error(markdown_safe(sentence[:1].upper() + sentence[1:]), icon=":material/error:")


def _array(case: Case, array: NDArray[np.generic]) -> None:
    given = torch.from_numpy(array)
    shape = " × ".join(str(size) for size in array.shape)
    place = case.selection.passed_to
    if place == "ask":
        st.markdown(f"An array of **{shape}**, {_type_of(given)}. What it means depends on where it goes.")
        _possible(given)
        return
    destination = DESTINATIONS[place]
    st.markdown(f"An array of **{shape}**, {_type_of(given)}. {markdown_safe(destination.note)}")
    passed = passed_to(given, place)
    for remark in passed.remarks:
        _remark(remark)
    if passed.allowed is not None:
        _judged(case, passed, passed.allowed, is_of_keys=destination.rows == "sequences" or given.dim() == 1)
    _elsewhere(given, place, passed)


def _type_of(given: Tensor) -> str:
    return str(given.dtype).removeprefix("torch.")


def _possible(given: Tensor) -> None:
    """What the array could be, for who does not know where it goes; nothing of it is judged."""
    try:
        readings = read_as(given)
    except ValueError as error:
        _refuse(error)
        return
    for reading in readings:
        st.caption(f"**{markdown_safe(reading.title)}.** {markdown_safe(reading.reason)}")


def _remark(remark: Remark) -> None:
    draw = {"error": st.error, "warning": st.warning, "note": st.info}[remark.severity]
    draw(markdown_safe(remark.text), icon=_ICONS[remark.severity])


def _judged(case: Case, passed: Passed, planes: Tensor, *, is_of_keys: bool) -> None:
    """The picture of one plane, and what is wrong with it."""
    flat = planes.reshape(-1, *planes.shape[-2:])
    index = _choose_plane(len(flat), is_of_keys=is_of_keys)
    allowed = flat[index]
    n_tokens = len(case.tokens)
    if is_of_keys and allowed.shape[1] == n_tokens:
        allowed = allowed.expand(n_tokens, -1)
    picture, judged = st.columns([2, 3])
    with picture:
        _picture(case, allowed)
    with judged:
        _findings(case, passed, allowed, is_of_keys=is_of_keys)
        _paint_button(case, allowed)


def _choose_plane(count: int, *, is_of_keys: bool) -> int:
    if count == 1:
        return 0
    name = "Sequence" if is_of_keys else "Mask"
    return int(
        st.number_input(
            f"{name}, of {count}", min_value=0, max_value=count - 1, value=0, step=1, key="loaded_plane"
        )
    )


def _findings(case: Case, passed: Passed, allowed: Tensor, *, is_of_keys: bool) -> None:
    context = _context(case, allowed)
    chosen = chosen_intent(case)
    if is_of_keys:
        padding = any(context.key_is_padding)
        intent, chosen = Intent("bidirectional", padding=True) if padding else Intent("painted"), None
    else:
        intent = chosen or guessed_intent(case, allowed, context)
    query_is_padding, key_is_padding = padding_of(context)
    mask = MaskCase(
        allowed=allowed,
        query_is_padding=query_is_padding,
        key_is_padding=key_is_padding,
        causal=intent.hides_later,
        fill=passed.fill,
        dtype=passed.dtype,
    )
    findings = findings_under(intent, mask, context)
    for finding in findings:
        st.markdown(f"{_ICONS[finding.severity]} **{markdown_safe(finding.title)}.** {markdown_safe(finding.why)}")
        st.caption(markdown_safe(finding.mend))
    if findings:
        if chosen is None and not is_of_keys:
            st.caption(markdown_safe(f"That it should be {intent.words} is a guess: say above what it should be."))
        return
    if is_of_keys:
        n_open = int(allowed[0].sum())
        st.caption(f"Every query may attend to {n_open} of {allowed.shape[1]} keys.")
    else:
        st.caption(markdown_safe(all_clear(intent, is_guess=chosen is None)))


def _context(case: Case, allowed: Tensor) -> MaskContext:
    """The tokens of the text where the mask is over as many, else tokens of which nothing is known."""
    n_tokens = len(case.tokens)
    return case.context if allowed.shape == (n_tokens, n_tokens) else plain_context(*allowed.shape)


def _elsewhere(given: Tensor, place: str, passed: Passed) -> None:
    """What the array would be in other places, one line for each mask that has a name."""
    places: dict[str, list[str]] = {}
    for name, destination in DESTINATIONS.items():
        if name == place or destination.rows == "sequences" or given.dim() == 1:
            continue
        allowed = passed_to(given, name).allowed
        if allowed is None or (passed.allowed is not None and torch.equal(allowed, passed.allowed)):
            continue
        if (words := _name_of(allowed)) is not None:
            places.setdefault(words, []).append(destination.title)
    for words, titles in places.items():
        first = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
        st.caption(markdown_safe(f"Under {first} this would be {words}."))


def _name_of(allowed: Tensor) -> str | None:
    """The mask that every plane is, in words; None where it has no name."""
    flat = allowed.reshape(-1, *allowed.shape[-2:])
    context = plain_context(*flat.shape[-2:])
    found = {recognise(plane, context) for plane in flat}
    intent = found.pop() if len(found) == 1 else None
    return None if intent is None else replace(intent, documents=False, padding=False).words


def _picture(case: Case, allowed: Tensor) -> None:
    rows, columns = (_axis(case, name, size) for name, size in zip(("query", "key"), allowed.shape, strict=True))
    blocked = (~allowed).numpy().astype(np.uint8)
    panel = Panel(
        name="loaded",
        title="May attend",
        array=allowed.float().numpy(),
        rows=rows,
        columns=columns,
        role="weights",
        bounds=(0.0, 1.0),
        blocked=blocked,
        blocked_by=("the array",),
    )
    mount(tensor_grid([panel], key="loaded_mask"))


def _axis(case: Case, name: str, size: int) -> Axis:
    if size == len(case.tokens):
        return Axis(name, case.tokens.labels, case.sequence)
    return Axis(name, tuple(str(index) for index in range(size)), None)


def _paint_button(case: Case, allowed: Tensor) -> None:
    n_tokens = len(case.tokens)
    if allowed.shape != (n_tokens, n_tokens):
        shape = " × ".join(str(size) for size in allowed.shape)
        st.caption(
            f"It cannot be painted here: the text has {n_tokens} tokens and the array is {shape}. "
            f"Give the text as many tokens as the array has rows and columns."
        )
        return

    def paint() -> None:
        settings = mask_edits.started_alone(case.run.settings, case.scope, allowed, case.context)
        state.change_masks(settings)

    st.button("Paint this mask", icon=":material/brush:", key="paint_loaded", on_click=paint)
