"""The answers of a class: this person's answer counted; for the asker the way to join and the counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from html import escape
from urllib.parse import urlencode, urlsplit

import numpy as np
import segno
import streamlit as st

from model.texts import texts_of
from visualizer.components.picture import Picture
from visualizer.components.progress.element import Bar, progress
from visualizer.state import drafts, state
from visualizer.state.expectations import expect, expectation_at
from visualizer.state.state import Choices
from visualizer.state.widget_values import key_of, shown_in
from visualizer.views.predict.questions import CellQuestion, TokenQuestion
from visualizer.views.predict.verdicts import answer_in_words, cells_in_words, position, right_answers
from visualizer.work import live
from visualizer.work.classroom import CLASSROOM, name_of_question
from visualizer.work.membership import is_student, key_in

say = texts_of(__name__)

MOST_BARS = 12
_MET = "questions_met"
_ONLY_HERE = ("localhost", "127.0.0.1", "::1")

Question = CellQuestion | TokenQuestion


def bring_back(question: Question, of: Hashable) -> None:
    """Have what this person answered before the page was loaded again."""
    code, name = state.chosen().selection.class_code, _name(question, of)
    met = drafts.put_by_before(_MET)
    met = met if isinstance(met, frozenset) else frozenset()
    if not code or name in met:  # what was taken back meanwhile stays so
        return
    drafts.put_by(_MET, met | {name})
    text = CLASSROOM.answer_of(code, name, key_in(code))
    if not text or _answer(question, of):
        return
    if isinstance(question, TokenQuestion):
        expect(
            of, question.place, token=next((one for one in question.offered if question.labels[one] == text), None)
        )
    else:
        cells = expectation_at(of, question.place).flags(question.right.shape) | cells_in_words(question, text)
        expect(of, question.place, cells=np.packbits(cells).tobytes())


@contextmanager
def beside_answers(question: Question, of: Hashable, code: str, *, revealed: bool) -> Iterator[None]:
    """Count what is expected now. A teacher can have the answers of the class beside what is drawn meanwhile.

    Until the result is revealed, the way to the question for students stands there too; then the answers that are
    right are marked.
    """
    name = _name(question, of)
    CLASSROOM.answer(code, name, key_in(code), _answer(question, of))
    shown = False
    with st.container(horizontal=True, vertical_alignment="center", key="class_answers"):
        if not is_student():
            CLASSROOM.ask(code, name, for_students(state.chosen()).link)
            shown = st.toggle(
                say("show", code=code),
                value=shown_in("show_class") is not False,
                key=key_of("show_class"),
                persist_state="page",
                width="content",
            )
        if not shown:
            st.caption(say("counted", asked_for=_asked_for(question, is_markdown=True)), width="content")
        if is_student():
            _to_the_class(code, name)
    if not shown:
        yield
        return
    left, *way, answers = st.columns([7, 3] if revealed else [4, 3, 3])
    for column in way:
        with column:
            _way_to_join(code)
    right = right_answers(question) if revealed else frozenset()
    with answers, st.container(key="tally"):
        live.show("class_tally", (code, name, revealed), partial(_tally, code, name, _asked_for(question), right))
    with left:
        yield


def _way_to_join(code: str) -> None:
    """The code in large letters, and the address that students open as a QR code."""
    page = st.context.url or ""
    with st.container(key="join_class"):
        st.html(f"<p>{escape(code)}</p>")
        if urlsplit(page).hostname in _ONLY_HERE:
            st.warning(say("only_here"))
            return
        try:
            scanned = segno.make(address_for_students(page, state.chosen()), error="l", micro=False)
        except segno.DataOverflowError:
            st.caption(say("too_long"))
            return
        picture = scanned.svg_data_uri(dark="#000", light="#fff", omitsize=True)
        st.html(f'<img src="{escape(picture)}" alt="{escape(say("scan"))}">')


def address_for_students(page: str, choices: Choices) -> str:
    """The address of what is chosen on a page, as a student sees it."""
    return f"{page}?{urlencode(for_students(choices).link)}"


def for_students(choices: Choices) -> Choices:
    """Return what a student sees of the choices: covered, and on a screen of their own."""
    return replace(choices, selection=replace(choices.selection, hidden=True, present=False))


def _to_the_class(code: str, name: str) -> None:
    """For a student whose page asks another question than the teacher's: the way to that one, once there is one."""
    asked, _ = CLASSROOM.asked(code)

    def look(address: str) -> Picture | None:
        is_same = CLASSROOM.asked(code)[0] == asked
        return progress((), key="class_question", address=address) if is_same else None

    if asked not in ("", name):
        st.button(say("go_there"), key="to_the_class", type="primary", on_click=state.callback(_go_there, code))
    live.show("class_question", (code, asked), look)


def _go_there(code: str) -> None:
    there = state.read({field: [value] for field, value in CLASSROOM.asked(code)[1].items()})
    state.choose(there.settings, there.selection)


def _tally(code: str, name: str, asked_for: str, right: frozenset[str], address: str) -> Picture:
    """A bar for each answer of the class."""
    counts = CLASSROOM.counts(code, name)
    total = sum(counts.values())
    bars = [
        Bar(text, say("answer", tick="✓ " if text in right else "", text=text, count=count), count / total)
        for text, count in list(counts.items())[:MOST_BARS]
    ]
    people = sum(list(counts.values())[MOST_BARS:])
    below = say("more", more=len(counts) - MOST_BARS, people=people) if people else ""
    above = say("people", total=total, asked_for=asked_for) if total else say("nobody", asked_for=asked_for)
    return progress(bars, key="class_tally", address=address, role="meter", above=above, below=below)


def _asked_for(question: Question, *, is_markdown: bool = False) -> str:
    """Reduce a question about a matrix to the one row whose answer counts."""
    if isinstance(question, TokenQuestion):
        return ""
    return say("row", row=position(question.panel.rows, question.row, is_markdown=is_markdown))


def _answer(question: Question, of: Hashable) -> str:
    expectation = expectation_at(of, question.place)
    if isinstance(question, TokenQuestion):
        return "" if expectation.token is None else question.labels[expectation.token]
    shape = (len(question.panel.rows.labels), len(question.panel.columns.labels))
    return answer_in_words(question, expectation.flags(shape))


def _name(question: Question, of: Hashable) -> str:
    row = question.row if isinstance(question, CellQuestion) else None
    return name_of_question(of, question.place, row)
