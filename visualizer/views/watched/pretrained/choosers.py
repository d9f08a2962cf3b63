"""The sidebar controls of a pretrained model: which checkpoint, how it is run, and the text that it reads."""

from __future__ import annotations

import time

import streamlit as st

from headlight.pretrained.checkpoint import Part, devices
from headlight.pretrained.checkpoint_places import SUGGESTIONS, Place, on_this_machine
from model.texts import texts_of
from visualizer.runs.checkpoints import device_of, opened
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.settings.settings import Settings
from visualizer.state import state, widgets
from visualizer.views.watched.pretrained.ready_texts import MODEL, READY_TEXTS, ReadyText
from visualizer.work.cache import Cache

say = texts_of(__name__)

_LOOK_SECONDS = 5
_MOST_SIMILAR = 3
_FOUND: Cache[int, tuple[Place, ...]] = Cache(room=1)


def kind_of_open(settings: Settings) -> tuple[Part, bool] | None:
    """Return which part of a model is open and whether it chats; None before one is."""
    checkpoint = opened(settings)
    return None if checkpoint is None else (checkpoint.part, checkpoint.chats)


def draw(settings: Settings, kind: tuple[Part, bool] | None) -> None:
    """Draw the controls; ``kind`` is what ``kind_of_open`` gives."""
    part, chats = kind or (None, False)
    _choose_checkpoint(settings)
    if part is not None:
        widgets.text("text", height=92, help=None)
        if part != "decoder":
            widgets.text(
                "target", height=68, label=say("second") if part == "encoder" else say("target"), help=None
            )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="pretrained_choice"):
        with st.popover(say("options"), icon=":material/tune:", type="tertiary", width="content"):
            widgets.segments("pretrained_dtype", required=True)
            _choose_device(settings)
            if part is not None and part != "encoder-decoder":
                widgets.switch("pretrained_batch")
            if chats:
                widgets.switch("pretrained_chat")
        if settings.pretrained_model == MODEL:
            with st.popover(say("to_see"), icon=":material/visibility:", type="tertiary", width="content"):
                ready_texts()


def ready_texts() -> None:
    """Draw a button for each of the texts with something to see."""
    for ready in READY_TEXTS:
        with st.container(gap="xxsmall", key=f"ready_text_{ready.name}"):
            st.button(ready.title, key=f"ready_{ready.name}", on_click=state.callback(_open_ready, ready))
            st.caption(ready.what_to_see)


def _open_ready(ready: ReadyText) -> None:
    state.open_checkpoint(MODEL, text=ready.text, pretrained_batch=False, pretrained_chat=False)
    state.select(view=ready.view, **ready.place)


def _choose_checkpoint(settings: Settings) -> None:
    """The field for the checkpoint, with what is on this machine first."""
    offered = _offered()
    if settings.pretrained_model and settings.pretrained_model not in offered:
        offered = {settings.pretrained_model: ""} | offered
    names = list(offered)
    st.selectbox(
        say("checkpoint"),
        names,
        index=names.index(settings.pretrained_model) if settings.pretrained_model else None,
        format_func=lambda name: visible_whole(" · ".join(filter(None, (name, offered.get(name))))),
        placeholder=say("checkpoint_which"),
        accept_new_options=True,
        help=say("checkpoint_help"),
        **widgets.following("suggested_checkpoint", settings.pretrained_model or None, _take),
    )


def _offered() -> dict[str, str]:
    """The checkpoints on this machine, and others, each with what it is."""
    here = {place.name: say("here") for place in _here()}
    return here | {name: about for name, about in SUGGESTIONS.items() if name not in here}


def offer_similar(name: str) -> None:
    """Draw a button for each checkpoint whose name holds what was written, which may be a part of it."""
    for found in [each for each in _offered() if name.casefold() in each.casefold()][:_MOST_SIMILAR]:
        label = say("take", name=markdown_safe(visible_whole(found)))
        st.button(label, key=f"take_{found}", on_click=state.callback(_take, found))


def _here() -> tuple[Place, ...]:
    """Return the checkpoints on this machine, looked up at most every few seconds."""
    now = int(time.monotonic() // _LOOK_SECONDS)
    return _FOUND.get(now) or _FOUND.put(now, on_this_machine())


def _take(name: str | None) -> None:
    """Another checkpoint: the text stays, and what was looked at in the one before is forgotten."""
    state.open_checkpoint((name or "").strip())


def _choose_device(settings: Settings) -> None:
    offered, chosen = devices(), device_of(settings)
    if len(offered) > 1:
        st.segmented_control(
            say("device"),
            offered,
            default=chosen,
            required=True,
            **widgets.following("device", chosen, lambda one: state.change(pretrained_device=one or "cpu")),
        )
    else:
        st.caption(say("only_cpu"))
