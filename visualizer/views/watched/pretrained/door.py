"""The pass of a pretrained model over a text, and what it takes to open the model before that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from weakref import WeakKeyDictionary

import streamlit as st

from headlight.attention import Keep
from headlight.inputs import NO_PADDING, padding_of
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.opening import Cost, cost_of, open_checkpoint
from headlight.pretrained.passes import memory_of_run, run
from headlight.pretrained.places import NotInstalledError, place_of
from headlight.pretrained.sizes import in_words
from headlight.pretrained.tokens import Piece, Tokenized, Words, pieces_of_ids, tokenized
from model.texts import texts_of
from visualizer.components.token_strip import Token, TokenSequence
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import as_code, markdown_safe, visible, visible_whole
from visualizer.settings.watched_settings import WatchedChoice
from visualizer.state import drafts, state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.panels import OnTop, draw_tokens, panel_of
from visualizer.views.watched.pretrained.chosen import Wanted, opened, wanted_by
from visualizer.views.watched.pretrained.controls import ready_texts
from visualizer.views.watched.pretrained.examples import ready_text_of
from visualizer.work import background
from visualizer.work.cache import Kept

say = texts_of(__name__)
MOST_TOKENS = 512
"""The longest text that is watched."""

MOST_TRACE_BYTES = 1_500_000_000
"""The most memory that the trace of one pass may take."""

_SHOWN = 24
"""The number of characters of a line that stand on its button."""

_KEPT_BYTES = 2 * MOST_TRACE_BYTES
_ASKED = "pretrained_asked"
_LOAD = "pretrained_load"
_COSTS: Kept[tuple[str, str], Cost] = Kept(room=32)
_OF_ONE_LINE = ("search", "way", "write", "mask", "edits", "prove")
"""The panels that are about one sequence without padding."""

_RUNS: WeakKeyDictionary[Checkpoint, Kept[tuple[Words, Keep], WatchedRun]] = WeakKeyDictionary()


def render(choices: Choices, strip: OnTop, no_strip: Callable[[], None]) -> WatchedRun | None:
    """Draw the tokens of the text, and give the pass over it; None where nothing is open yet, which is said."""
    if find_spec("transformers") is None:
        no_strip()
        st.info(say("more_packages"))
        return None
    choice = choices.watched
    wanted = wanted_by(choice)
    checkpoint = opened(choice)
    if checkpoint is None:
        no_strip()
        if wanted.name:
            _open(wanted)
        else:
            _welcome()
        return None
    try:
        given = tokenized(checkpoint, words_of(choices), MOST_TOKENS)
    except ValueError as error:
        no_strip()
        _refused(str(error))
        return None
    _strip(given, choices, strip)
    if checkpoint.part != "encoder-decoder":
        _choose_line(choices)
    _about(checkpoint, wanted)
    if (shown := ready_text_of(choices)) is not None:
        st.caption(f":material/visibility: {shown.what_to_see}")
    return _watched(checkpoint, given, choices)


def words_of(choices: Choices) -> Words:
    """Return the text for the model; of a batch, where one sequence alone is looked at, its line."""
    choice = choices.watched
    words = all_words_of(choice)
    if len(words.lines) == 1 or panel_of(choices) not in _OF_ONE_LINE:
        return words
    return Words(words.lines[min(choice.watched_item, len(words.lines) - 1)], "", choice.pretrained_chat)


def all_words_of(choice: WatchedChoice) -> Words:
    """Everything that is written for the model."""
    return Words(choice.pretrained_text, choice.pretrained_second, choice.pretrained_chat, choice.pretrained_batch)


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


def _about(checkpoint: Checkpoint, wanted: Wanted) -> None:
    """Say in one line what is open."""
    config = checkpoint.config
    parts = [checkpoint.part, *_sizes(config), weights_in_words(checkpoint.n_weights)]
    parts += [
        say("computed", dtype=wanted.dtype, device=wanted.device),
        say("memory", size=in_words(checkpoint.n_bytes)),
    ]
    st.caption(f"{as_code(type(checkpoint.model).__name__)} · {markdown_safe(' · '.join(parts))}")
    for note in checkpoint.notes:
        st.warning(markdown_safe(visible_whole(note)), icon=":material/warning:")


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
    choice = choices.watched
    lines = all_words_of(choice).lines
    if len(lines) == 1:
        return
    item = min(choice.watched_item, len(lines) - 1)
    st.pills(
        say("sequence"),
        range(len(lines)),
        default=item,
        format_func=lambda line: f"{line}: {_shortened(lines[line])}",
        label_visibility="collapsed",
        required=True,
        **widgets.following("line_of_batch", item, lambda line: state.watch(watched_item=line)),
    )
    if panel_of(choices) in _OF_ONE_LINE:
        st.caption(say("read_alone"))


def _shortened(line: str) -> str:
    return markdown_safe(visible(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"))


def _strip(given: Tokenized, choices: Choices, strip: OnTop) -> None:
    """The tokens, and beside them what is known of each, and the way to edits."""
    has_two = bool(given.target)
    pieces = given.lines[min(choices.watched.watched_item, len(given.lines) - 1)] if given.lines else given.pieces
    rows = [TokenSequence("source", say("source") if has_two else say("tokens"), _tokens(pieces))]
    if has_two:
        rows.append(TokenSequence("target", say("target"), _tokens(given.target)))

    def beside() -> None:
        n_tokens = say("n_tokens", n_tokens=len(pieces) + len(given.target))
        with st.popover(n_tokens, icon=":material/tag:", type="tertiary", width="content"):
            _table((*pieces, *given.target), given.text)
        if panel_of(choices) != "edits":
            st.button(
                say("edit"),
                icon=":material/content_cut:",
                key="to_edits",
                help=say("edit_help"),
                on_click=state.callback(state.show_panel, "edits"),
                type="tertiary",
            )

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
    words = words_of(choices)
    keep: Keep = "all" if panel_of(choices) in ("way", "operations", "compare", "edits") else "weights"
    kept = _RUNS.setdefault(checkpoint, Kept(_KEPT_BYTES, size=lambda run: run.trace.nbytes))
    found = kept.get((words, "all")) or kept.get((words, keep))
    if found is not None:
        return found
    n_bytes = memory_of_run(checkpoint, given, keep)
    if n_bytes > MOST_TRACE_BYTES:
        size, most = in_words(n_bytes), in_words(MOST_TRACE_BYTES)
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
        padding=padding_of(given.inputs) if given.lines else NO_PADDING,
        item_is_chosen=True,
        texts_of_ids=lambda ids: [visible(one.text) for one in pieces_of_ids(checkpoint.tokenizer, ids)],
    )
