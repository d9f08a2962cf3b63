"""The pass of a pretrained model over a text, and what it takes to open the model before that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import streamlit as st

from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.checkpoint_places import NotInstalledError, place_of
from headlight.pretrained.memory_needed import in_words
from headlight.pretrained.opening import Cost, cost_of, open_checkpoint
from headlight.pretrained.tokenized import Tokenized
from model.texts import texts_of
from visualizer.runs.checkpoints import (
    Wanted,
    checkpoint_of,
    input_of,
    opened,
    wanted_by,
)
from visualizer.safe_text import as_code, markdown_safe, visible_whole
from visualizer.settings.settings import Settings
from visualizer.state import drafts, state
from visualizer.state.state import Choices
from visualizer.state.widget_values import key_of
from visualizer.views.watched.pretrained.choosers import offer_similar, ready_texts
from visualizer.views.watched.pretrained.ready_texts import ready_text_of
from visualizer.work import background
from visualizer.work.cache import Cache

say = texts_of(__name__)
_ASKED = "pretrained_asked"
_LOAD = "pretrained_load"
_TOKENS = "tokens_of_checkpoint"
_COSTS: Cache[tuple[str, str], Cost] = Cache(room=32)


def open_or_offer(settings: Settings, no_strip: Callable[[], None]) -> Checkpoint | None:
    """The checkpoint that is open; None where none is, after drawing what it takes to open one."""
    if find_spec("transformers") is None:
        no_strip()
        st.info(say("more_packages"))
        return None
    checkpoint = opened(settings)
    if checkpoint is None:
        no_strip()
        if settings.pretrained_model:
            _open(wanted_by(settings))
        else:
            _welcome()
    return checkpoint


def _welcome() -> None:
    st.markdown(say("welcome"))
    st.caption(say("where_from"))
    st.markdown(say("ready_texts"))
    ready_texts()


def _open(wanted: Wanted) -> None:
    """Draw what opening takes, the button for it, and its progress."""
    if background.is_shown(_LOAD, wanted, say("load"), below=say("continues")):
        return
    try:
        cost = _cost(wanted)
    except NotInstalledError as error:
        st.markdown(say("not_installed", name=error.name))
        st.code(error.command, language="shell")
        st.button(say("look_again"), icon=":material/refresh:", key="pretrained_again")
        return
    except ValueError as error:
        _refused(str(error))
        return
    if cost is None:
        st.caption(say("not_here", name=markdown_safe(visible_whole(wanted.name))))
        offer_similar(wanted.name)
        st.button(
            say("look_up"),
            icon=":material/search:",
            key="pretrained_look",
            on_click=state.callback(_ask),
        )
        return
    st.caption(markdown_safe(visible_whole(cost.in_words)))
    named = replace(cost, place=replace(cost.place, name=wanted.name))
    background.offer(
        _LOAD,
        wanted,
        say("download", size=in_words(cost.download)) if cost.download else say("load"),
        lambda report: open_checkpoint(named, report, dtype=wanted.dtype, device=wanted.device),
        outlives_page=True,
        below=say("continues"),
        icon=":material/download:",
        is_primary=True,
    )


def _refused(sentence: str) -> None:
    st.error(markdown_safe(visible_whole(sentence)), icon=":material/error:")


def _cost(wanted: Wanted) -> Cost | None:
    """Return the cost of opening; None where the hub has to be asked, which nobody has wanted yet.

    Raises:
        ValueError: there is no such checkpoint, or it takes too much memory.
    """
    place = place_of(wanted.name)
    if place.kind != "hub" or place.is_here:
        return cost_of(place, wanted.dtype)
    if drafts.put_by_before(_ASKED) != wanted:
        return None
    key = (wanted.name, wanted.dtype)
    if (found := _COSTS.get(key)) is not None:
        return found
    with st.spinner(say("asking")):
        return _COSTS.put(key, cost_of(place, wanted.dtype))


def _ask() -> None:
    drafts.put_by(_ASKED, wanted_by(state.now().settings))


def about(choices: Choices) -> None:
    """Say in one line what is open, with its tokens behind a button, and, of a ready text, what there is to see."""
    checkpoint, wanted = checkpoint_of(choices.settings), wanted_by(choices.settings)
    config = checkpoint.config
    parts = [checkpoint.part, *_sizes(config), weights_in_words(checkpoint.n_weights)]
    parts += [
        say("computed", dtype=wanted.dtype, device=wanted.device),
        say("memory", size=in_words(checkpoint.n_bytes)),
    ]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="about_checkpoint"):
        st.caption(
            f"{as_code(type(checkpoint.model).__name__)} · {markdown_safe(' · '.join(parts))}", width="content"
        )
        key = key_of(_TOKENS)
        menu = st.popover(say("tokens"), type="tertiary", width="content", key=key, on_change="rerun")
        if menu.open:
            with menu:
                _table(input_of(choices.settings))
    for note in checkpoint.notes:
        st.warning(markdown_safe(visible_whole(note)), icon=":material/warning:")
    if not choices.selection.hidden and (shown := ready_text_of(choices)) is not None:
        st.caption(f":material/visibility: {shown.what_to_see}")


def weights_in_words(n_weights: int) -> str:
    """``135 million weights``."""
    return say("millions", n_millions=n_weights / 10**6) if n_weights >= 10**6 else say("weights", n=n_weights)


def _sizes(config: object) -> list[str]:
    """Layers and heads, as far as the checkpoint says them by the usual names."""
    layers, heads = getattr(config, "num_hidden_layers", None), getattr(config, "num_attention_heads", None)
    keys = getattr(config, "num_key_value_heads", None)
    found = [say("layers", n_layers=layers)] if layers else []
    if heads:
        shared = say("shared_heads", n_heads=heads, n_key_heads=keys)
        found.append(shared if keys and keys != heads else say("heads", n_heads=heads))
    return found


def _table(encoding: Tokenized) -> None:
    """Every token with its number and its place, and what a template made of the text."""
    pieces = (*(piece for line in encoding.lines or (encoding.pieces,) for piece in line), *encoding.target)
    columns = {
        say("token"): [visible_whole(piece.text) for piece in pieces],
        say("vocabulary"): [visible_whole(piece.raw) for piece in pieces],
        say("number"): [piece.id for piece in pieces],
        say("special"): [piece.special for piece in pieces],
        say("from"): [piece.start for piece in pieces],
        say("to"): [piece.end for piece in pieces],
    }
    st.dataframe(columns, hide_index=True, height=280)
    st.caption(say("characters"))
    st.code(visible_whole(encoding.text), language=None, wrap_lines=True)
