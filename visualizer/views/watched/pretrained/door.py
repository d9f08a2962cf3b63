"""The door: which checkpoint, what it takes to open it, and the text that it is given."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple
from weakref import WeakKeyDictionary

import streamlit as st

from headlight.attention import Keep
from headlight.inputs import NO_PADDING, padding_of
from headlight.pretrained.checkpoint import SHELF, Checkpoint, Part, devices
from headlight.pretrained.opening import Cost, cost_of, open_checkpoint
from headlight.pretrained.passes import memory_of_run, run
from headlight.pretrained.places import SUGGESTIONS, NotInstalledError, Place, on_this_machine, place_of
from headlight.pretrained.sizes import in_words
from headlight.pretrained.tokens import Piece, Tokenized, Words, pieces_of_ids, tokenized
from model.texts import texts_of
from visualizer.components.token_strip import Token, TokenSequence, parse_token, token_strip
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import as_code, markdown_safe, visible, visible_whole
from visualizer.server.mount import mount
from visualizer.settings.watched_settings import WatchedChoice
from visualizer.state import drafts, state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.pretrained.examples import MODEL, READY_TEXTS, ReadyText, ready_text_of
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
_PANELS: dict[Part, tuple[str, ...]] = {
    "decoder": ("search", "way", "compare", "operations", "write", "mask", "edits", "prove"),
    "encoder": ("search", "way", "compare", "operations", "mask", "edits", "prove"),
    "encoder-decoder": ("search", "way", "compare", "operations", "write", "mask", "edits", "prove"),
}
_OF_ONE_LINE = ("search", "way", "write", "mask", "edits", "prove")
"""The panels that are about one sequence without padding."""

_LOOK_SECONDS = 5
_FOUND: Kept[int, tuple[Place, ...]] = Kept(room=1)
_RUNS: WeakKeyDictionary[Checkpoint, Kept[tuple[Words, Keep], WatchedRun]] = WeakKeyDictionary()


class Wanted(NamedTuple):
    """A checkpoint as it is asked for.

    Attributes:
        name: of the hub, a folder, a file, or a package.
        dtype: the number type of its weights.
        device: where it is computed.
    """

    name: str
    dtype: str
    device: str


def render(choices: Choices) -> WatchedRun | None:
    """Draw the choice of a checkpoint and of a text, and give the pass over it; None where nothing is open yet."""
    if find_spec("transformers") is None:
        st.info(say("more_packages"))
        return None
    choice = choices.watched
    wanted = Wanted(choice.pretrained_model, choice.pretrained_dtype, _device(choice))
    checkpoint = SHELF.get(wanted) if wanted.name else None
    chosen, written = st.columns([2, 3], gap="medium")
    with chosen:
        _choose(choice, checkpoint)
    if checkpoint is None:
        if wanted.name:
            _open(wanted)
        else:
            _welcome()
        return None
    with written:
        _write(checkpoint)
    _about(checkpoint, wanted)
    if (shown := ready_text_of(choice)) is not None:
        st.caption(f":material/visibility: {shown.what_to_see}")
    try:
        given = tokenized(checkpoint, words_of(choice), MOST_TOKENS)
    except ValueError as error:
        _refused(str(error))
        return None
    if checkpoint.part != "encoder-decoder":
        _choose_line(choice)
    _strip(given, choices)
    return _watched(checkpoint, given, choices)


def opened(choice: WatchedChoice) -> Checkpoint | None:
    """The checkpoint that is chosen, where it is in memory."""
    return SHELF.get(Wanted(choice.pretrained_model, choice.pretrained_dtype, _device(choice)))


def words_of(choice: WatchedChoice) -> Words:
    """Return the text for the model; of a batch, where one sequence alone is looked at, its line."""
    words = all_words_of(choice)
    if len(words.lines) == 1 or choice.watched_panel not in _OF_ONE_LINE:
        return words
    return Words(words.lines[min(choice.watched_item, len(words.lines) - 1)], "", choice.pretrained_chat)


def all_words_of(choice: WatchedChoice) -> Words:
    """Everything that is written for the model."""
    return Words(choice.pretrained_text, choice.pretrained_second, choice.pretrained_chat, choice.pretrained_batch)


def _choose(choice: WatchedChoice, checkpoint: Checkpoint | None) -> None:
    """The field for the checkpoint, with what is on this machine first; below it what else is chosen of it."""
    here = {place.name: say("here") for place in _here()}
    offered = here | {name: about for name, about in SUGGESTIONS.items() if name not in here}
    if choice.pretrained_model and choice.pretrained_model not in offered:
        offered = {choice.pretrained_model: ""} | offered
    names = list(offered)
    st.selectbox(
        say("checkpoint"),
        names,
        index=names.index(choice.pretrained_model) if choice.pretrained_model else None,
        format_func=lambda name: visible_whole(" · ".join(filter(None, (name, offered.get(name))))),
        placeholder=say("checkpoint_which"),
        accept_new_options=True,
        help=say("checkpoint_help"),
        **widgets.following("suggested_checkpoint", choice.pretrained_model or None, _take),
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="pretrained_choice"):
        with st.popover(say("options"), icon=":material/tune:", type="tertiary", width="content"):
            widgets.segments("pretrained_dtype", required=True)
            _choose_device(choice)
            if checkpoint is not None and checkpoint.part != "encoder-decoder":
                widgets.switch("pretrained_batch")
            if checkpoint is not None and checkpoint.chats:
                widgets.switch("pretrained_chat")
        if choice.pretrained_model:
            with st.popover(say("to_see"), icon=":material/visibility:", type="tertiary", width="content"):
                _ready_texts()


def _here() -> tuple[Place, ...]:
    """Return the checkpoints on this machine, looked up at most every few seconds."""
    now = int(time.monotonic() // _LOOK_SECONDS)
    return _FOUND.get(now) or _FOUND.keep(now, on_this_machine())


def _take(name: str | None) -> None:
    """Another checkpoint: the text stays, and what was looked at in the one before is forgotten."""
    before = state.chosen().watched
    kept = ("pretrained_text", "pretrained_dtype", "pretrained_device", "pretrained_steps")
    state.open_watched(pretrained_model=(name or "").strip(), **{field: getattr(before, field) for field in kept})


def _choose_device(choice: WatchedChoice) -> None:
    offered = devices()
    if len(offered) > 1:
        st.segmented_control(
            say("device"),
            offered,
            default=_device(choice),
            required=True,
            **widgets.following("device", _device(choice), lambda one: state.watch(pretrained_device=one or "cpu")),
        )
    else:
        st.caption(say("only_cpu"))


def _device(choice: WatchedChoice) -> str:
    """The device that is chosen, or the CPU where this machine does not have it."""
    return choice.pretrained_device if choice.pretrained_device in devices() else "cpu"


def _ready_texts() -> None:
    for ready in READY_TEXTS:
        with st.container(gap="xxsmall", key=f"ready_text_{ready.name}"):
            st.button(ready.title, key=f"ready_{ready.name}", on_click=state.callback(_open_ready, ready))
            st.caption(ready.what_to_see)


def _open_ready(ready: ReadyText) -> None:
    state.open_watched(pretrained_model=MODEL, **ready.changes)


def _welcome() -> None:
    st.markdown(say("welcome"))
    st.caption(say("where_from"))
    st.markdown(say("ready_texts"))
    _ready_texts()


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


def _write(checkpoint: Checkpoint) -> None:
    """The fields for the text."""
    if checkpoint.part == "decoder":
        widgets.text("pretrained_text", height=92)
        return
    for column, field in zip(st.columns(2, gap="small"), ("pretrained_text", "pretrained_second"), strict=True):
        with column:
            widgets.text(field, height=92)


def _choose_line(choice: WatchedChoice) -> None:
    """Choose the sequence of a batch that is looked at."""
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
    if choice.watched_panel in _OF_ONE_LINE:
        st.caption(say("read_alone"))


def _shortened(line: str) -> str:
    return markdown_safe(visible(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"))


def _strip(given: Tokenized, choices: Choices) -> None:
    """The tokens; a click makes one the query."""
    has_two = bool(given.target)
    pieces = given.lines[min(choices.watched.watched_item, len(given.lines) - 1)] if given.lines else given.pieces
    rows = [TokenSequence("source", say("source") if has_two else say("tokens"), _tokens(pieces))]
    if has_two:
        rows.append(TokenSequence("target", say("target"), _tokens(given.target)))
    key = "pretrained_strip"

    def select(event: object) -> None:
        if found := parse_token(event, rows):
            state.watch(watched_query=found.index)

    query = min(choices.watched.watched_query, len(rows[-1].tokens) - 1)
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key="pretrained_tokens"):
        mount(
            token_strip(rows, selected_query=(rows[-1].name, query), seq=state.last_seq(key), key=key),
            select=select,
        )
        with st.popover(
            say("n_tokens", n_tokens=len(pieces) + len(given.target)), type="tertiary", width="content"
        ):
            _table((*pieces, *given.target), given.text)


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
    words = words_of(choices.watched)
    keep: Keep = "all" if choices.watched.watched_panel in ("way", "operations", "compare", "edits") else "weights"
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
        more_panels=_PANELS[checkpoint.part],
    )
