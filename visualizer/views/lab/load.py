"""A mask from elsewhere: an array uploaded or pasted, and what the place that it is for makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from headlight.masks.destinations import DESTINATIONS, Destination, passed_to
from headlight.masks.intent_kinds import CELLS_OF_THEIR_OWN
from headlight.masks.intents import plain_context
from headlight.masks.planes import Passed, Remark
from model.texts import capitalized, texts_of
from visualizer.runs.intended import kind_of, read_intent
from visualizer.runs.watched import sizes_in_words
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.settings.attentions import attention_named
from visualizer.settings.fields import TRAINED, UNSAID
from visualizer.state import drafts, state, widget_values, widgets
from visualizer.views.lab import mask_edits
from visualizer.views.lab.case import Case, case_in
from visualizer.views.lab.crop import Crop, crop_of
from visualizer.views.lab.findings_of_array import draw_findings, elsewhere
from visualizer.views.lab.intent import ask_for_past, question
from visualizer.views.lab.mask_files import ENDINGS, MAX_BYTES, pasted, uploaded
from visualizer.views.lab.planes import CALLED, ICONS, Plane, planes_of
from visualizer.work import uploads
from visualizer.work.uploads import Upload

say = texts_of(__name__)
_FILE, _PASTED, _LONG = "mask_file", "pasted_mask", "pasted.txt"
MOST_IN_LINK = 2_000
"""The most characters of a pasted array that a link holds; it names the file that a longer one is kept in."""

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_EXAMPLE = "[[1, 0, 0],\n [1, 1, 0],\n [1, 1, 1]]"


def render(case: Case) -> None:
    """Draw the fields for an array, the place that it is for, and what it means there."""
    pasting, uploading = st.columns(2)
    with pasting:
        text = _text(case.selection.lab.array_text)
    with uploading:
        file = _file(case.selection.lab.array_file)
    questions = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="array_meant")
    with questions:
        widgets.choice("passed_to", width=400)
    try:
        if file is not None:
            if text.strip():
                st.caption(say("both_given"))
            array = _one_of(uploaded(file.name, file.content))
        elif text.strip():
            array = pasted(text)
        else:
            return
    except ValueError as error:
        st.error(markdown_safe(capitalized(error)), icon=":material/error:")
        return
    _array(case, array, questions)


def _text(of_link: str) -> str:
    """The text that is pasted, or that a link holds or names."""

    def keep(text: str) -> None:
        file = None if len(text) <= MOST_IN_LINK else uploads.keep(_LONG, text.encode())
        drafts.put_by(_PASTED, file)
        state.select(array_text=text if file is None else file.called)

    is_short = of_link != "" and not of_link.endswith(f"/{_LONG}")
    long = None if is_short else _kept(_PASTED, of_link)
    known = of_link if is_short else "" if long is None else long.content.decode()
    text: str = st.text_area(
        say("paste"),
        **widget_values.give_draft(_PASTED, known),
        height=100,
        placeholder=_EXAMPLE,
        help=say("paste_help"),
        on_change=state.on_change(_PASTED, keep),
    )
    return text


def _kept(name: str, called: str) -> Upload | None:
    """The file that a link calls so, read once by a session; or the one that is in this session alone."""
    file = drafts.put_by_before(name)
    if isinstance(file, Upload) and called == file.called:
        return file
    found = uploads.find(called)
    drafts.put_by(name, found)
    if found is None and called:
        st.caption(say("not_kept", name=markdown_safe(visible_whole(called.partition("/")[2]))))
    return found


def _file(called: str) -> Upload | None:
    """The file that is uploaded, or that a link calls so."""
    file = _kept(_FILE, called)
    held = widget_values.shown_in(drafts.key_of_next(_FILE))
    if held is not None and (file is None or file.name != getattr(held, "name", "")):
        drafts.count_file(_FILE)  # after Back: the field would go on to name what is not read any more
    key = drafts.key_of_next(_FILE)

    def keep(upload: Any) -> None:  # noqa: ANN401 - what Streamlit has of a file; None for none
        file = None if upload is None else uploads.keep(upload.name, upload.getvalue())
        drafts.put_by(_FILE, file)
        state.select(array_file="" if file is None else file.called)

    upload = st.file_uploader(
        say("upload"),
        key=key,
        max_upload_size=MAX_BYTES // 2**20,
        help=say("upload_help", endings=", ".join(ENDINGS)),
        on_change=state.on_change(key, keep),
    )
    if file is not None and upload is None:  # its field forgets it off the page
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(say("kept", name=markdown_safe(visible_whole(file.name))), width="content")
            st.button(say("remove"), key="remove_file", on_click=state.callback(keep, None), type="tertiary")
    return file


def _one_of(arrays: Mapping[str, Tensor]) -> Tensor:
    """The array of a file, or the one that is chosen of several."""
    names = list(arrays)
    if len(names) == 1:
        return arrays[names[0]]
    chosen = st.selectbox(
        say("array_in_file"),
        names,
        format_func=lambda name: f"{markdown_safe(name)}: {_shape(arrays[name])}, {_type_of(arrays[name])}",
        key="array_in_file",
    )
    return arrays[chosen]


def _array(case: Case, array: Tensor, questions: AbstractContextManager[object]) -> None:
    place = case.selection.lab.passed_to
    described = say("array", shape=_shape(array), dtype=_type_of(array))
    if place == "ask":
        st.markdown(f"{described} {say('depends')}")
        elsewhere(array, place, None, 1)
        return
    destination = DESTINATIONS[place]
    st.markdown(f"{described} {markdown_safe(destination.note)}")
    n_heads = _heads_in(case, array, place)
    passed = passed_to(array, place, n_heads)
    for remark in passed.remarks:
        _remark(remark)
    if passed.allowed is None and array.dtype in _INTEGERS and bool(array.le(1).logical_and(array.ge(0)).all()):
        st.caption(say("as_booleans"))
        passed = passed_to(array.bool(), place, n_heads)
    if passed.allowed is not None:
        _judged(case, passed, destination, questions)
    elsewhere(array, place, passed.allowed, n_heads)


def _shape(array: Tensor) -> str:
    return sizes_in_words(array.shape)


def _type_of(array: Tensor) -> str:
    return str(array.dtype).removeprefix("torch.")


def _heads_in(case: Case, array: Tensor, place: str) -> int:
    """Ask how many heads an axis of sequences and heads has, where there is such an axis."""
    if array.dim() != 3 or not DESTINATIONS[place].takes_heads_of_batch:
        return 1
    widgets.number("array_heads", width=200)
    return case.selection.lab.array_heads or case.run.settings.n_heads


def _remark(remark: Remark) -> None:
    draw = {"error": st.error, "warning": st.warning, "note": st.info}[remark.severity]
    draw(f"**{CALLED[remark.severity]}.** {markdown_safe(remark.text)}", icon=ICONS[remark.severity])


def _judged(
    case: Case, passed: Passed, destination: Destination, questions: AbstractContextManager[object]
) -> None:
    """Judge the masks: ask about tokens and intention, draw one mask, and say what is wrong with any of them."""
    is_of_keys = destination.rows == "sequences"
    with questions:
        if not is_of_keys:
            question("intent_array", case.selection.lab.intent_array, None, "")
        about = [] if is_of_keys else ["array_documents"]
        for name in (*about, "array_padding"):
            widgets.line(name, width=100)
        if not is_of_keys:
            passed = _with_rows(case, passed)
        planes = planes_of(passed)
        shown = _choose_plane(case, planes)
        if not is_of_keys:
            _ask_for_past(case, shown)
    crop = crop_of(case, shown.allowed)
    picture, found = st.columns([2, 3])
    with found:
        differing = draw_findings(case, passed, planes, shown, destination)
        if not is_of_keys:
            _paint_button(case, crop)
    with picture:
        crop.draw(case, differing)


def _with_rows(case: Case, passed: Passed) -> Passed:
    """The mask with axes of one entry spread: one row over every query, where that is meant."""
    allowed = passed.allowed
    if allowed is None or 1 not in allowed.shape[-2:]:
        return passed
    n_queries, n_keys = allowed.shape[-2:]
    if n_queries == 1:
        widgets.segments("one_row", required=True)
        chosen = case.selection.lab.one_row
        if chosen == "one" or (chosen == "usual" and not passed.axes):
            return passed
    size = max(n_queries, n_keys)
    return replace(passed, allowed=allowed.expand(*allowed.shape[:-2], size, size))


def _choose_plane(case: Case, planes: tuple[Plane, ...]) -> Plane:
    if len(planes) == 1:
        return planes[0]
    widgets.number("plane", width=200)
    plane = planes[min(case.selection.lab.plane, len(planes) - 1)]
    st.caption(say("plane", plane=plane.name.capitalize(), n_planes=len(planes)) if plane.name else "")
    return plane


def _ask_for_past(case: Case, shown: Plane) -> None:
    """The number of keys before the first query, where the answer depends on it."""
    context = plain_context(*shown.allowed.shape)
    intent = read_intent(case.selection.lab.intent_array)
    if intent is not None and intent.follows_position:
        before = case.selection.lab.keys_before
        ask_for_past(context, replace(intent, cache=before if before >= 0 else None))


def _paint_button(case: Case, crop: Crop) -> None:
    """Paint what is drawn, over a text of as many tokens where it has others."""
    size, settings = tuple(crop.cells.shape), case.run.settings
    name = "cross" if size[0] != size[1] else case.selection.lab.attention
    painted = case_in(case.run, case.selection, attention_named(name, settings.architecture))
    if size[0] != size[1] and not painted.attention.crosses:
        st.caption(say("not_square"))
        return
    st.button(
        _paint_label(painted, size),
        icon=":material/brush:",
        key="paint_loaded",
        on_click=state.callback(_paint, painted, crop.cells),
    )


def _paint_label(case: Case, size: tuple[int, ...]) -> str:
    if size == case.size:
        return say("paint")
    crossing = say("paint_crossing", n_queries=size[0], n_keys=size[1])
    return crossing if case.attention.crosses else say("paint_over", n_tokens=size[0])


def _paint(case: Case, allowed: Tensor) -> None:
    drawn, now = case.selection.lab, state.now().selection.lab
    if (drawn.array_text, drawn.array_file) != (now.array_text, now.array_file):
        return  # another array was given meanwhile, which nobody has seen yet
    if allowed.shape == case.size:
        source = mask_edits.source_of(allowed, case.context)
        case.change_masks(lambda now: case.put_in_place(now, source))
    else:  # over another text, where nothing of what was painted for some heads is left
        source = mask_edits.source_of(allowed, plain_context(*allowed.shape))
        state.change(**_text_of(case, *allowed.shape))
        case.change_masks(lambda now: mask_edits.put_everywhere(now, source))
    intended = case.selection.lab.intent_array
    meant = {case.attention.intent: intended} if _is_said_of_any_mask(intended) else {}
    state.select(panel="translate", attention=case.attention.name, **meant)  # beside which the painter is


def _is_said_of_any_mask(intent: str) -> bool:
    """True if an intention is one for the painter too: neither its own mask nor cells given beside the array."""
    return kind_of(intent) not in (UNSAID, *CELLS_OF_THEIR_OWN)


def _text_of(case: Case, n_queries: int, n_keys: int) -> dict[str, object]:
    """The settings of a text, and a target, with so many tokens in the sequences that the mask is over."""
    settings, attention = case.run.settings, case.attention
    counts = {attention.queries: n_queries, attention.keys: n_keys}
    lines = {"source": settings.text.split("\n")[0], "target": settings.target.split("\n")[0]}
    for sequence, n_tokens in counts.items():
        n_words = n_tokens - (sequence == "target")  # the target begins with <s>
        letter = "s" if attention.crosses and sequence == "source" else "t"  # no word of one is a word of the other
        lines[sequence] = " ".join(f"{letter}{index}" for index in range(n_words))
    weights = {"weights": "random"} if settings.weights == TRAINED else {}
    target = {"target": lines["target"]} if settings.architecture == "encoder-decoder" else {}
    return {"text": lines["source"], **target, **weights, "tokens": "words", "pad": 0, "order": 0}
