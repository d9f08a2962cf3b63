"""A mask from elsewhere: an array uploaded or pasted, the conventions it can be in, and what looks wrong."""

from __future__ import annotations

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.mask_conventions import Reading, read_as
from model.mask_lint import Finding, MaskCase, lint
from visualizer import mask_editing, state
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.lab.case import Case
from visualizer.lab.paint import ALL_CLEAR
from visualizer.mask_files import MAX_BYTES, read_pasted, read_upload
from visualizer.tokens import markdown_safe

_EXAMPLE = "[[1, 0, 0],\n [1, 1, 0],\n [1, 1, 1]]"


def render(case: Case) -> None:
    """Draw the fields for an array, and what it can mean."""
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
    try:
        if upload is not None:
            if text.strip():
                st.caption("What is shown is the file: remove it to read what is pasted.")
            array = read_upload(upload.name, upload.getvalue())
        elif text.strip():
            array = read_pasted(text)
        else:
            return
        readings = read_as(torch.from_numpy(array))
    except ValueError as error:
        sentence = str(error)
        st.error(markdown_safe(sentence[:1].upper() + sentence[1:]), icon=":material/error:")
        return
    _readings(case, array, readings)


def _readings(case: Case, array: NDArray[np.generic], readings: tuple[Reading, ...]) -> None:
    shape = " × ".join(str(size) for size in array.shape)
    st.markdown(f"An array of **{shape}** can be read in {len(readings)} {'ways' if len(readings) > 1 else 'way'}.")
    chosen = st.radio(
        "Convention",
        range(len(readings)),
        format_func=lambda index: markdown_safe(readings[index].title),
        captions=[markdown_safe(reading.reason) for reading in readings],
        key=f"reading_of_{'_'.join(reading.name for reading in readings)}",
        label_visibility="collapsed",
    )
    reading = readings[chosen]
    allowed = _for_tokens(reading.allowed, len(case.tokens))
    picture, judged = st.columns([2, 3])
    with picture:
        _picture(case, allowed)
    with judged:
        findings = _findings(case, allowed, reading)
        if not findings:
            st.caption(ALL_CLEAR)
        for finding in findings:
            st.markdown(f"**{markdown_safe(finding.title)}.** {markdown_safe(finding.why)}")
            st.caption(markdown_safe(finding.mend))
        _paint_button(case, allowed)


def _for_tokens(allowed: Tensor, n_tokens: int) -> Tensor:
    """A mask of keys alone holds for every query."""
    return allowed.expand(n_tokens, -1) if _is_of_keys(allowed) and allowed.shape[1] == n_tokens else allowed


def _is_of_keys(allowed: Tensor) -> bool:
    """Whether it is one row, such as a padding mask, which another mask makes causal."""
    return len(allowed) == 1


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
    tensor_grid([panel], key="loaded_mask")


def _axis(case: Case, name: str, size: int) -> Axis:
    if size == len(case.tokens):
        return Axis(name, case.tokens.labels, case.sequence)
    return Axis(name, tuple(str(index) for index in range(size)), None)


def _findings(case: Case, allowed: Tensor, reading: Reading) -> tuple[Finding, ...]:
    query_is_padding, key_is_padding = (_padding(case, size) for size in allowed.shape)
    return lint(
        MaskCase(
            allowed=allowed,
            query_is_padding=query_is_padding,
            key_is_padding=key_is_padding,
            causal=case.run.settings.architecture != "encoder" and not _is_of_keys(reading.allowed),
            fill=reading.fill,
            dtype=None if reading.fill is None else torch.float32,
        )
    )


def _padding(case: Case, size: int) -> Tensor:
    """Which tokens are padding; none where the array is over other tokens than the text's."""
    return torch.tensor(case.tokens.is_padding if size == len(case.tokens) else [False] * size)


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
        settings = mask_editing.started_alone(case.run.settings, case.scope, allowed, case.context)
        state.change_masks(settings)

    st.button("Paint this mask", icon=":material/brush:", key="paint_loaded", on_click=paint)
