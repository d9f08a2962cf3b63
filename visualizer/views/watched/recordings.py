"""The door for recordings: a file uploaded, a path, the file that the app was started with, or an example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

import streamlit as st

import headlight
from headlight.pretrained.memory_needed import most_bytes
from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.components.token_strip.element import Token, TokenSequence
from visualizer.runs.watched import WatchedRun, in_bytes
from visualizer.safe_text import as_code, markdown_safe, visible
from visualizer.settings.fields import MOST_HEADS
from visualizer.settings.settings import MOST_DRAWN
from visualizer.settings.watched_settings import WATCHED
from visualizer.state import drafts, state, widget_values
from visualizer.state.recording_argument import recording_argument
from visualizer.state.state import Choices
from visualizer.views.watched.on_top import OnTop, draw_tokens
from visualizer.work import uploads
from visualizer.work.cache import Cache
from visualizer.work.uploads import Upload

say = texts_of(__name__)
MOST_BYTES = 2**28
"""The longest file that can be uploaded."""

EXAMPLE = Path(__file__).parent / "example.headlight"
"""A pass of a small model with a mistake in a mask; ``make_example.py`` beside it makes it."""

_RECIPE = """import headlight

with headlight.watch(model, keep="all") as trace:
    model(**batch)
trace.save("run.headlight", tokens=["The", "cat", ...], parameters=True)
"""

ASKS_FROM = 64 * 2**20
"""A file that takes more memory while it is opened is opened when a person has read how much."""

_TIMES_OF_UPLOAD = 3
"""An upload is in memory as Streamlit keeps it, as it is read, and as the arrays in it."""

_MEMORY = 2**31
"""The bytes that recordings of this machine may take together; the newest is kept whatever it takes."""

_LONGEST_PATH = 400
_WAITING = "watched_waiting"
_AGREED = "watched_agreed"
_OPEN = "watched_opened"
_REFUSED = "watched_refused"
_UPLOAD = "watched_upload"
_ANOTHER = "watched_another"
_FILES: Cache[tuple[str, str, int, int], WatchedRun] = Cache(_MEMORY, size=lambda run: run.n_bytes)
_UPLOADS: WeakValueDictionary[str, WatchedRun] = WeakValueDictionary()


class _Opened(NamedTuple):
    """An uploaded recording that is open in a session, and what a link calls it."""

    called: str
    run: WatchedRun


def render(choices: Choices, strip: OnTop, no_strip: Callable[[], None]) -> WatchedRun | None:
    """Draw what opens a recording, and give the one that is open."""
    run, problem = _open(choices)
    if run is not None and (rows := _rows(run, choices.selection.batch)):
        draw_tokens(rows, choices, strip)
    else:
        no_strip()
    refused = drafts.put_by_before(_REFUSED)
    if problem or refused:
        st.error(markdown_safe(str(problem or refused)), icon=":material/error:")
    _ask(choices)
    if run is None:
        _how_to_make_one(choices.watched.watched_source)
        return None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="watched_file"):
        st.markdown(say("open", title=as_code(run.title), size=in_bytes(run.n_bytes)), width="content")
        icon, key = ":material/folder_open:", widget_values.key_of(_ANOTHER)
        with st.popover(say("open_another"), icon=icon, type="tertiary", key=key, on_change="rerun"):
            _upload()
        st.button(
            say("close"),
            icon=":material/close:",
            key="watched_close",
            type="tertiary",
            on_click=state.callback(_close),
        )
    return run


def _rows(run: WatchedRun, item: int) -> list[TokenSequence]:
    """The tokens of a sequence, as far as they are known; of an encoder and a decoder both."""
    source, target = run.tokens_of("source", item), run.tokens_of("target", item)
    if not source or not target:
        return [_row("source", say("tokens"), known) for known in (source, target) if known]
    return [_row("source", say("source"), source), _row("target", say("target"), target)]


def _row(name: SequenceName, title: str, tokens: tuple[str, ...]) -> TokenSequence:
    return TokenSequence(name, title, tuple(Token(index, visible(text), None) for index, text in enumerate(tokens)))


def _open(choices: Choices) -> tuple[WatchedRun | None, str]:
    """Return what is open, and say why it is not where it should be."""
    match choices.watched.watched_source:
        case "uploaded":
            return _of_upload(choices.watched.watched_file)
        case "example":
            return opened_file(EXAMPLE, say("example_title"))
        case "given" if recording_argument() is None:
            return None, say("started_without")
    file = _file_of(choices)
    return (None, "") if file is None or _is_waiting(file) else opened_file(file, file.name)


def _of_upload(called: str) -> tuple[WatchedRun | None, str]:
    """A recording that was uploaded in this session, or in any and is kept."""
    opened = drafts.put_by_before(_OPEN)
    if isinstance(opened, _Opened) and opened.called == called:
        return opened.run, ""
    if (run := _UPLOADS.get(called)) is not None:
        drafts.put_by(_OPEN, _Opened(called, run))
        return run, ""
    upload = uploads.find(called)
    return (None, say("not_kept")) if upload is None else _opened(upload)


def _opened(upload: Upload) -> tuple[WatchedRun | None, str]:
    """Open an upload in this session, and have it at hand for others that open its link meanwhile."""
    try:
        run = _checked(headlight.load(upload.content, most_bytes=MOST_BYTES), upload.name)
    except ValueError as error:
        return None, f"{visible(upload.name)}: {error}."
    if upload.called:
        _UPLOADS[upload.called] = run
    drafts.put_by(_OPEN, _Opened(upload.called, run))
    return run, ""


def _file_of(choices: Choices) -> Path | None:
    """The file of this machine that is chosen."""
    match choices.watched.watched_source:
        case "given":
            return recording_argument()
        case "path":
            return Path(choices.watched.watched_path.strip()).expanduser()
    return None


def cost_of_opening(name: str, n_bytes: int, times: int) -> str:
    """Say in one sentence what it takes to open a file.

    Args:
        name: the file.
        n_bytes: its size.
        times: how often it is in memory while it is opened.

    Raises:
        ValueError: that is more than may be taken; the sentence says what would do.
    """
    taken, most = times * n_bytes, most_bytes()
    if taken > most:
        raise ValueError(
            say("too_large", name=visible(name), size=in_bytes(n_bytes), taken=in_bytes(taken), most=in_bytes(most))
        )
    once = say("cost", name=visible(name), size=in_bytes(n_bytes), taken=in_bytes(taken))
    more = say("cost_and_then", name=visible(name), size=in_bytes(n_bytes), taken=in_bytes(taken))
    return more if times > 1 else once


def _is_waiting(file: Path) -> bool:
    """True if a file of this machine is so large that it is opened on demand, and nobody has asked for it yet."""
    size = file.stat().st_size if file.is_file() else 0
    return size > ASKS_FROM and drafts.put_by_before(_AGREED) != str(file)


def _ask(choices: Choices) -> None:
    """Say what a large file that waits takes, with a way to open it; or why it is not opened."""
    upload, file = drafts.put_by_before(_WAITING), _file_of(choices)
    if upload is not None:
        name, size, times = str(getattr(upload, "name", "")), int(getattr(upload, "size", 0)), _TIMES_OF_UPLOAD
    elif file is not None and _is_waiting(file):
        name, size, times = file.name, file.stat().st_size, 1
    else:
        return
    try:
        cost = cost_of_opening(name, size, times)
    except ValueError as error:
        st.error(markdown_safe(f"{error}."), icon=":material/error:")
        return
    st.info(markdown_safe(cost), icon=":material/memory:")
    agree = state.callback(drafts.put_by, _AGREED, str(file))
    open_it = agree if upload is None else state.callback(_open_upload, upload)
    with st.container(horizontal=True, gap="small", key="watched_waiting"):
        st.button(say("open_it"), key="watched_open", on_click=open_it, type="primary")
        if upload is not None:
            st.button(say("leave_it"), key="watched_leave", on_click=state.callback(drafts.put_by, _WAITING, None))


def opened_file(path: Path, title: str) -> tuple[WatchedRun | None, str]:
    """A recording of this machine, read once for all sessions."""
    if path.suffix != EXAMPLE.suffix:
        return None, say("no_recording", title=visible(title), ending=EXAMPLE.suffix)
    try:
        about = path.stat()
        key = (str(path), title, about.st_mtime_ns, about.st_size)
        return _FILES.get(key) or _FILES.put(key, _checked(headlight.load(path), title)), ""
    except OSError:
        return None, say("cannot_open", title=visible(title))
    except ValueError as error:
        return None, f"{visible(title)}: {error}."


def _checked(trace: headlight.Trace, title: str) -> WatchedRun:
    """A trace that can be drawn.

    Raises:
        ValueError: it has too many tokens or heads.
    """
    if max(map(len, (*trace.paths, *trace.stages)), default=0) > _LONGEST_PATH:
        raise ValueError(say("long_name", most=_LONGEST_PATH))
    for attention in trace:
        _, n_heads, n_queries, n_keys = attention.shape
        if max(n_queries, n_keys) > MOST_DRAWN or n_heads > MOST_HEADS:
            raise ValueError(
                say(
                    "too_many",
                    path=visible(attention.path),
                    n_heads=n_heads,
                    n_queries=n_queries,
                    n_keys=n_keys,
                    most_heads=MOST_HEADS,
                    most_tokens=MOST_DRAWN,
                )
            )
    return WatchedRun(trace, title)


def _upload() -> None:
    key = drafts.key_of_next(_UPLOAD)
    st.file_uploader(
        say("upload"),
        type="headlight",
        key=key,
        max_upload_size=MOST_BYTES // 2**20,
        on_change=state.on_change(key, _take),
        help=say("upload_help"),
    )
    st.caption(say("upload_cost", kept=in_bytes(uploads.MOST_BYTES), most=in_bytes(MOST_BYTES)))
    field, name = WATCHED["watched_path"], "path_of_recording"
    st.text_input(
        field.label,
        **widget_values.give_draft(name, state.chosen().watched.watched_path),
        help=field.help,
        placeholder="run.headlight",
        on_change=state.on_change(name, _take_path),
    )


def _take_path(text: str) -> None:
    """Open a file of this machine; a field that is emptied closes the one that it named."""
    if text.strip():
        widget_values.give(_ANOTHER, False)
        _show("path", watched_path=text.strip())
    elif state.chosen().watched.watched_source == "path":
        _close()


def _take(upload: object) -> None:
    """Open an uploaded file; what is open stays so where it is refused."""
    if upload is None:
        return
    widget_values.give(_ANOTHER, False)
    drafts.count_file(_UPLOAD)
    drafts.put_by(_REFUSED, None)
    if _TIMES_OF_UPLOAD * int(getattr(upload, "size", 0)) > ASKS_FROM:
        drafts.put_by(_WAITING, upload)
    else:
        _open_upload(upload)


def _open_upload(upload: object) -> None:
    drafts.put_by(_WAITING, None)
    name, content = str(getattr(upload, "name", "run.headlight")), upload.getvalue()  # type: ignore[attr-defined]
    file = uploads.keep(name, content)
    run, problem = _opened(file)
    if run is None:
        drafts.put_by(_REFUSED, problem)
    else:
        _show("uploaded", watched_file=file.called)


def _show(source: str, **more: str) -> None:
    drafts.put_by(_REFUSED, None)
    state.open_watched(watched_source=source, **more)


def _close() -> None:
    drafts.put_by(_OPEN, None)
    drafts.put_by(_AGREED, None)
    _show("none")


def _how_to_make_one(source: str) -> None:
    """Say what a recording is and how one is made, and offer one that is ready."""
    made, opened = st.columns([3, 2], gap="large")
    with made:
        st.markdown(say("how_to_make_one"))
        st.code(_RECIPE, language="python")
        st.caption(say("any_model"))
    with opened:
        _upload()
        st.button(
            say("example"),
            icon=":material/play_arrow:",
            key="watched_example",
            on_click=state.callback(_show, "example"),
            help=say("example_help"),
        )
        if recording_argument() is not None and source != "given":
            st.button(
                say("given"),
                key="watched_given",
                on_click=state.callback(_show, "given"),
            )
