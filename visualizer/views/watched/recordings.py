"""The door for recordings: a file uploaded, the file that the app was started with, or an example."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

import headlight
from visualizer.runs.watched import WatchedRun, in_bytes
from visualizer.safe_text import as_code, markdown_safe, visible
from visualizer.session import drafts, state
from visualizer.session.cache import Kept
from visualizer.session.given import given_recording
from visualizer.session.state import Choices
from visualizer.settings.watched_settings import MOST_HEADS, MOST_TOKENS

MOST_BYTES = 2**28
"""The longest file that can be uploaded."""

EXAMPLE = Path(__file__).parent / "example.headlight"
"""A pass of a small model with a mistake in a mask; ``make_example.py`` beside it makes it."""

_RECIPE = """import headlight

with headlight.watch(model, keep="all") as trace:
    model(**batch)
trace.save("run.headlight", tokens=["The", "cat", ...])
"""

_LONGEST_PATH = 400
_OPEN = "watched_opened"
_REFUSED = "watched_refused"
_N_UPLOADS = "watched_uploads"
_FILES: Kept[tuple[str, str, int, int], WatchedRun] = Kept(room=2)


def render(choices: Choices) -> WatchedRun | None:
    """Draw what opens a recording, and give the one that is open."""
    run, problem = _open(choices)
    refused = drafts.put_by_before(_REFUSED)
    if problem or refused:
        st.error(markdown_safe(str(problem or refused)), icon=":material/error:")
    if run is None:
        _how_to_make_one()
        return None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="watched_file"):
        st.markdown(f"{as_code(run.title)} · {in_bytes(run.n_bytes)} in memory", width="content")
        with st.popover("Open another", icon=":material/folder_open:", type="tertiary"):
            _upload()
        st.button("Close", icon=":material/close:", key="watched_close", type="tertiary", on_click=_close)
    return run


def _open(choices: Choices) -> tuple[WatchedRun | None, str]:
    """What is open, and why it is not where it should be."""
    match choices.watched.watched_source:
        case "uploaded":
            kept = drafts.put_by_before(_OPEN)
            if isinstance(kept, WatchedRun):
                return kept, ""
            return None, "The link is of a file that was uploaded in another session: open the file again."
        case "example":
            return _of_file(EXAMPLE, "the example")
        case "given":
            given = given_recording()
            if given is None:
                return None, "The link is of a file that the app was started with: this one was started without."
            return _of_file(given, given.name)
    return None, ""


def _of_file(path: Path, title: str) -> tuple[WatchedRun | None, str]:
    """A recording of this machine, read once for all sessions."""
    try:
        about = path.stat()
        key = (str(path), title, about.st_mtime_ns, about.st_size)
        return _FILES.get(key) or _FILES.keep(key, _checked(headlight.load(path), title)), ""
    except OSError:
        return None, f"{visible(title)} cannot be opened: there is no such file, or it may not be read."
    except ValueError as error:
        return None, f"{visible(title)}: {error}."


def _checked(trace: headlight.Trace, title: str) -> WatchedRun:
    """A trace that can be drawn.

    Raises:
        ValueError: it has too many tokens or heads.
    """
    if max(map(len, (*trace.paths, *trace.stages)), default=0) > _LONGEST_PATH:
        raise ValueError(f"a name in it is longer than {_LONGEST_PATH} characters")
    for attention in trace:
        _, n_heads, *sides = attention.shape
        if max(sides) > MOST_TOKENS or n_heads > MOST_HEADS:
            raise ValueError(
                f"{visible(attention.path)} has {n_heads:,} heads, {sides[0]:,} queries and {sides[1]:,} keys, and "
                f"{MOST_HEADS} heads and {MOST_TOKENS:,} tokens are the most that are drawn"
            )
    return WatchedRun(trace, title)


def _upload() -> None:
    n_uploads = drafts.put_by_before(_N_UPLOADS) or 0
    key = f"watched_upload_{n_uploads}"  # another one after each, so that none of them keeps its file
    st.file_uploader(
        f"A recording, up to {MOST_BYTES // 2**20} MiB",
        type="headlight",
        key=key,
        max_upload_size=MOST_BYTES // 2**20,
        on_change=state.on_change(key, _take),
        help="A file that trace.save wrote. It stays in this session, and nothing in it is run. While it is opened "
        "it takes three times its size in memory, then as much as it is long.",
    )


def _take(upload: object) -> None:
    """Open an uploaded file; what is open stays so where it is refused."""
    if upload is None:
        return
    name = str(getattr(upload, "name", "run.headlight"))
    drafts.put_by(_N_UPLOADS, int(str(drafts.put_by_before(_N_UPLOADS) or 0)) + 1)
    try:
        run = _checked(headlight.load(upload.getvalue(), most_bytes=MOST_BYTES), name)  # type: ignore[attr-defined]
    except ValueError as error:
        drafts.put_by(_REFUSED, f"{visible(name)}: {error}.")
        return
    drafts.put_by(_OPEN, run)
    _show("uploaded")


def _show(source: str) -> None:
    drafts.put_by(_REFUSED, None)
    state.open_watched(watched_source=source)


def _close() -> None:
    drafts.put_by(_OPEN, None)
    _show("none")


def _how_to_make_one() -> None:
    """What a recording is, how one is made, and one that is ready."""
    made, opened = st.columns([3, 2], gap="large")
    with made:
        st.markdown("**See every attention of your own model.** These five lines record a pass of it into a file:")
        st.code(_RECIPE, language="python")
        st.caption(
            "Any PyTorch model, unchanged: nn.Transformer, transformers, FlexAttention, or a softmax that you "
            'wrote out. Without keep="all" the file holds weights and masks alone, and is small.'
        )
    with opened:
        _upload()
        st.button(
            "Open the example",
            icon=":material/play_arrow:",
            key="watched_example",
            on_click=_show,
            args=("example",),
            help="A small nn.TransformerEncoderLayer model with a mistake in one of its masks.",
        )
        if given_recording() is not None:
            st.button(
                "Open the file that the app was started with",
                key="watched_given",
                on_click=_show,
                args=("given",),
            )
