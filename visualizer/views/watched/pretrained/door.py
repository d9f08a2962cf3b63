"""The pass of a pretrained model over a text, and what it takes to open the model before that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from weakref import WeakKeyDictionary

import streamlit as st

from headlight.attention import Keep
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.opening import Cost, cost_of, open_checkpoint
from headlight.pretrained.passes import memory_of_run, run
from headlight.pretrained.places import NotInstalledError, place_of
from headlight.pretrained.sizes import in_words
from headlight.pretrained.tokens import Piece, Tokenized, Words, pieces_of_ids, tokenized
from model.texts import texts_of
from visualizer.components.token_strip import Token, TokenSequence
from visualizer.runs.checkpoints import (
    MOST_BYTES,
    MOST_TOKENS,
    Wanted,
    checkpoint_of,
    opened,
    wanted_by,
    words_of,
)
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import as_code, markdown_safe, visible, visible_whole
from visualizer.settings.settings import Settings
from visualizer.state import drafts, state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.panels import OnTop, draw_tokens
from visualizer.views.watched.pretrained.controls import ready_texts
from visualizer.views.watched.pretrained.examples import ready_text_of
from visualizer.work import background
from visualizer.work.cache import Kept

say = texts_of(__name__)
_SHOWN = 24
"""The number of characters of a line that stand on its button."""

_KEPT_BYTES = 2 * MOST_BYTES
_ASKED = "pretrained_asked"
_LOAD = "pretrained_load"
_COSTS: Kept[tuple[str, str], Cost] = Kept(room=32)
_RUNS: WeakKeyDictionary[Checkpoint, Kept[tuple[Words, Keep], WatchedRun]] = WeakKeyDictionary()


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


def render(choices: Choices, strip: OnTop, no_strip: Callable[[], None]) -> WatchedRun | None:
    """Draw the tokens of the text, and give the pass over it; None where it cannot be read, which is said."""
    checkpoint = checkpoint_of(choices.settings)
    try:
        given = tokenized(checkpoint, line_of(choices), MOST_TOKENS)
    except ValueError as error:
        no_strip()
        _refused(str(error))
        return None
    _strip(given, choices, strip)
    about(choices)
    if len(choices.settings.lines) > 1:
        _choose_line(choices)
    return _watched(checkpoint, given, choices)


def line_of(choices: Choices) -> Words:
    """Return the text for the model; of a batch the line that is looked at, which is read alone."""
    words, lines = words_of(choices.settings), choices.settings.lines
    if len(lines) == 1:
        return words
    return replace(words, text=lines[min(choices.selection.batch, len(lines) - 1)], batch=False)


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
        st.button(
            say("look_up"),
            icon=":material/search:",
            key="pretrained_look",
            on_click=state.callback(_ask, wanted),
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
        return _COSTS.keep(key, cost_of(place, wanted.dtype))


def _ask(wanted: Wanted) -> None:
    drafts.put_by(_ASKED, wanted)


def about(choices: Choices) -> None:
    """Say in one line what is open and, of a ready text, what there is to see."""
    checkpoint, wanted = checkpoint_of(choices.settings), wanted_by(choices.settings)
    config = checkpoint.config
    parts = [checkpoint.part, *_sizes(config), weights_in_words(checkpoint.n_weights)]
    parts += [
        say("computed", dtype=wanted.dtype, device=wanted.device),
        say("memory", size=in_words(checkpoint.n_bytes)),
    ]
    st.caption(f"{as_code(type(checkpoint.model).__name__)} · {markdown_safe(' · '.join(parts))}")
    for note in checkpoint.notes:
        st.warning(markdown_safe(visible_whole(note)), icon=":material/warning:")
    if (shown := ready_text_of(choices)) is not None:
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


def _choose_line(choices: Choices) -> None:
    """Choose the sequence of a batch that is looked at."""
    lines = choices.settings.lines
    item = min(choices.selection.batch, len(lines) - 1)
    st.pills(
        say("sequence"),
        range(len(lines)),
        default=item,
        format_func=lambda line: f"{line}: {_shortened(lines[line])}",
        label_visibility="collapsed",
        required=True,
        **widgets.following("line_of_batch", item, lambda line: state.select(batch=line)),
    )
    st.caption(say("read_alone"))


def _shortened(line: str) -> str:
    return markdown_safe(visible(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"))


def _strip(given: Tokenized, choices: Choices, strip: OnTop) -> None:
    """The tokens, and beside them what is known of each, and the way to edits."""
    has_two = bool(given.target)
    pieces = given.pieces
    rows = [TokenSequence("source", say("source") if has_two else say("tokens"), _tokens(pieces))]
    if has_two:
        rows.append(TokenSequence("target", say("target"), _tokens(given.target)))

    def beside() -> None:
        n_tokens = say("n_tokens", n_tokens=len(pieces) + len(given.target))
        with st.popover(n_tokens, icon=":material/tag:", type="tertiary", width="content"):
            _table((*pieces, *given.target), given.text)

    draw_tokens(rows, choices, strip, more=beside)


def _tokens(pieces: tuple[Piece, ...]) -> tuple[Token, ...]:
    return tuple(
        Token(index, visible(piece.text), piece.id, padding=piece.padding, special=piece.special)
        for index, piece in enumerate(pieces)
    )


def _table(pieces: tuple[Piece, ...], text: str) -> None:
    """Every token with its number and its place, and what a template made of the text."""
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
    st.code(visible_whole(text), language=None, wrap_lines=True)


def _watched(checkpoint: Checkpoint, given: Tokenized, choices: Choices) -> WatchedRun | None:
    """The pass over the text, computed once for all sessions."""
    words = line_of(choices)
    keep: Keep = "all" if choices.selection.view in ("way", "step") else "weights"
    kept = _RUNS.setdefault(checkpoint, Kept(_KEPT_BYTES, size=lambda run: run.trace.nbytes))
    found = kept.get((words, "all")) or kept.get((words, keep))
    if found is not None:
        return found
    n_bytes = memory_of_run(checkpoint, given, keep)
    if n_bytes > MOST_BYTES:
        size, most = in_words(n_bytes), in_words(MOST_BYTES)
        of_all = say("too_large_with_all", size=size, most=most)
        _refused(of_all if keep == "all" else say("too_large", size=size, most=most))
        return None
    with st.spinner(say("computing")):
        return kept.keep((words, keep), _run(checkpoint, given, keep))


def _run(checkpoint: Checkpoint, given: Tokenized, keep: Keep) -> WatchedRun:
    return WatchedRun(
        run(checkpoint, given, keep=keep).trace,
        checkpoint.name,
        causal=True if checkpoint.part == "decoder" else None,
        model_name=type(checkpoint.model).__name__,
        texts_of_ids=lambda ids: [visible(one.text) for one in pieces_of_ids(checkpoint.tokenizer, ids)],
    )
