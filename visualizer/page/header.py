"""The header above every view: the examples, the choice of the view, the notices and the token strip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

import streamlit as st

from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.components.glossary.element import glossary
from visualizer.components.token_strip.element import Token, TokenSequence, parse_token, token_strip
from visualizer.page.audience import audience_menu, keys
from visualizer.page.beginning import begin
from visualizer.page.examples_menu import examples_menu
from visualizer.runs.tokens import TokenSequence as Tokens
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.examples import EXAMPLES, OPENING, USUAL, note_on
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.gallery import GALLERY
from visualizer.settings.link import left_out_of_link
from visualizer.settings.settings import Selection, Settings
from visualizer.settings.sources import VIEWS_OF, has_run
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.state.widgets import notices

say = texts_of(__name__)

_ICON = str(Path(__file__).parent / "icon.svg")
"""The picture of the browser's tab, a file of our own: Streamlit fetches its icons from another host."""

_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_ALONE = (Path(__file__).parent / "alone.css").read_text(encoding="utf-8")
_PRESENTED = (Path(__file__).parent / "present.css").read_text(encoding="utf-8")
_WALKED = ".st-key-sticky .stPopover { display: none; }"
_NO_SIZES: Mapping[str, str] = MappingProxyType({})
_SPECIALS = ("<pad>", "<s>", "<sos>", "<eos>")
_TITLES: Mapping[SequenceName, str] = {"source": say("source"), "target": say("target")}
_TITLES_OF_VECTORS: Mapping[SequenceName, str] = {"source": say("keys"), "target": say("queries")}


def style() -> None:
    """Name the page, and style it where the theme does not."""
    st.set_page_config(page_title="Headlight", page_icon=_ICON, layout="wide")
    selection = state.chosen().selection
    walked = is_walked(selection)
    added = (_ALONE * (selection.present or walked), _PRESENTED * selection.present, _WALKED * walked)
    st.html(f"<style>{_STYLE}{''.join(added)}</style>")


def offers_path(settings: Settings, selection: Selection) -> bool:
    """True if the guided path has a button of its own: in the first view of a source, and when it was left."""
    begins_in = {"built": "way", "pretrained": "heads"}.get(selection.source, "")
    if not begins_in or (selection.view != begins_in and not selection.stop):
        return False
    if selection.source == "built":
        return True
    from visualizer.runs.checkpoints import opened  # brings torch, which the sidebar of a checkpoint has brought

    return opened(settings) is not None


@contextmanager
def failure_said() -> Iterator[None]:
    """Say in a sentence that what is within failed, or a callback before; the rest of the page stays."""
    with state.logged_failure():
        yield
    if code := state.failure():
        st.error(say("failed", code=code))


@failure_said()
def header(place: AbstractContextManager[object]) -> None:
    """Draw, in ``place``, the choice of the view, the door to the guided path and the menu of the examples.

    The path does without them.
    """
    settings, selection = state.chosen().settings, state.chosen().selection
    if is_walked(selection):
        return
    has_button = offers_path(settings, selection)
    with place, st.container(horizontal=True, vertical_alignment="center", gap="small", key="header"):
        offered = list(VIEWS_OF[selection.source])
        widgets.segments("view", offered, help=None, label_visibility="collapsed", wrap=True)
        with st.container(horizontal=True, gap="small", width="content", key="beside_views"):
            if has_button:
                is_left = bool(selection.stop)
                st.button(
                    say("go_on") if is_left else say("begin"),
                    key="begin",
                    on_click=state.callback(begin),
                    type="secondary" if is_left else "primary",
                )
            examples_menu(offers_path=selection.source == "built" and not has_button)


def is_walked(selection: Selection) -> bool:
    """True if the card of the guided path is on the page; not where results are covered, which it would tell."""
    return selection.guided and not selection.hidden and has_run(selection.source, selection.view)


@failure_said()
def remarks(choices: Choices) -> None:
    """Say what was changed in the link, what the link cannot carry, and where to look."""
    notices(choices.notices)
    for name in left_out_of_link(choices.settings):
        st.info(say("left_out", name=name))
    selection = choices.selection
    if selection.source != "built" or is_walked(selection) or selection.hidden:  # the note tells what comes out
        return
    if what_to_see := note_on((OPENING, USUAL, *EXAMPLES, *GALLERY), choices.settings, selection):
        st.caption(f":material/visibility: {what_to_see}")


def strip(
    sequences: Mapping[SequenceName, Tokens],
    choices: Choices,
    *,
    queried: SequenceName | None,
    sizes: Mapping[str, str],
    edit: Callable[[], None] | None = None,
) -> None:
    """The token strip, the glossary and the menus of edits and for a room, which stay on top.

    Clicking a token makes it the query, or the key of cross-attention.

    Args:
        sequences: the tokens of each sequence.
        choices: what is chosen.
        queried: the sequence that the rows of the picture run over; None where there is no query to choose.
        sizes: what the glossary says of this run.
        edit: draws the menu of edits, where there is one.
    """
    only = say("input") if choices.settings.weights in WORKED_EXAMPLES else say("text")
    has_ids = choices.settings.weights not in WORKED_EXAMPLES
    titles = (_TITLES if has_ids else _TITLES_OF_VECTORS) if len(sequences) > 1 else {"source": only}
    strips = [_drawn(name, titles[name], tokens, has_ids=has_ids) for name, tokens in sequences.items()]

    def select(event: object) -> None:
        if queried and (choice := parse_token(event, strips)):
            sequence, index = choice
            state.select(**{"query" if sequence == queried else "key": index})

    selected = (queried, min(choices.selection.query, len(sequences[queried]) - 1)) if queried else None
    on_top(strips, selected, select, sizes=sizes, more=edit)


def on_top(
    rows: Sequence[TokenSequence],
    selected: tuple[SequenceName, int] | None,
    select: Callable[[object], None],
    *,
    sizes: Mapping[str, str] = _NO_SIZES,
    more: Callable[[], None] | None = None,
) -> None:
    """The tokens, the glossary and the menus, which stay on top.

    Args:
        rows: the tokens of each sequence.
        selected: the sequence that has the query, and which of its tokens that is; None where there is none.
        select: hears of a token that is clicked.
        sizes: what the glossary says of this run.
        more: draws what stands beside the glossary.
    """
    key = "token_strip"
    with st.container(key="sticky", horizontal=True, vertical_alignment="top", gap="small"):
        mount(token_strip(rows, selected_query=selected, seq=state.last_seq(key), key=key), select=select)
        mount(glossary(sizes, key="glossary"), width="content")
        if more:
            more()
        audience_menu()
        keys(next((len(row.tokens) for row in rows if selected and row.name == selected[0]), 0))


def glossary_alone() -> None:
    """The glossary where there is no run, and so no token strip to stand beside."""
    with st.container(horizontal=True, horizontal_alignment="right", key="glossary_alone"):
        mount(glossary(_NO_SIZES, key="glossary"), width="content")
        audience_menu()
        keys(0)


def batch_items(beginnings: Sequence[str]) -> None:
    """The choice of one of the sequences that were computed at once, by how each of them begins."""
    names = [f"{i} {beginning}" if beginning else str(i) for i, beginning in enumerate(beginnings)]
    if len(names) <= FEW:
        widgets.segments("batch", range(len(names)), format_func=lambda i: markdown_safe(names[i]))
    else:
        chosen = min(state.chosen().selection.batch, len(names) - 1)
        widgets.named("batch", {name: i for i, name in enumerate(names)}, chosen, key="line_of_batch")


FEW = 6
"""Up to so many sequences have a button each."""


def loading() -> AbstractContextManager[object]:
    """A sign of life while the model is being loaded."""
    return st.spinner(say("loading"))


def _drawn(name: SequenceName, title: str, sequence: Tokens, *, has_ids: bool) -> TokenSequence:
    is_special = sequence.is_special or tuple(
        token in _SPECIALS and token_id < 3 for token, token_id in zip(sequence.tokens, sequence.ids, strict=True)
    )
    tokens = tuple(
        Token(i, label, token_id if has_ids else None, padding=padding, special=special)
        for i, (label, token_id, padding, special) in enumerate(
            zip(sequence.labels, sequence.ids, sequence.is_padding, is_special, strict=True)
        )
    )
    return TokenSequence(name, title, tokens)
