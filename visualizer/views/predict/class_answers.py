"""What a class expects: this person's answer counted, and the counts in sight of who asks for them."""

from __future__ import annotations

from collections.abc import Hashable

import streamlit as st

from visualizer.safe_text import markdown_safe
from visualizer.session import drafts
from visualizer.session.classroom import CLASSROOM, name_of_question, new_person
from visualizer.session.expectations import expectation_at
from visualizer.views.predict.questions import CellQuestion, TokenQuestion
from visualizer.views.predict.verdicts import answer_in_words, right_answers

EVERY_SECONDS = 2.0
"""How often the counts are looked up while they are in sight."""

MOST_BARS = 12
_PERSON = "person_of_class"

Question = CellQuestion | TokenQuestion


def class_answers(question: Question, of: Hashable, code: str, *, revealed: bool) -> None:
    """Count what is expected now; on demand a bar for each answer of the class, looked up again and again.

    Once the result is revealed, the answers that are right are marked.
    """
    name = _name(question, of)
    CLASSROOM.answer(code, name, _person(), _answer(question, of))
    with st.container(key="class_answers"):
        shown = st.toggle(f"What class {code} expects", key="show_class", persist_state="page")
        if not shown:
            st.caption(f"Your answer{_asked_for(question)} is counted, without a name, for an hour.")
            return
        right = right_answers(question) if revealed else frozenset()
        st.fragment(_bars, run_every=EVERY_SECONDS)(code, name, _asked_for(question), right)


def _bars(code: str, name: str, asked_for: str, right: frozenset[str]) -> None:
    counts = CLASSROOM.counts(code, name)
    total = sum(counts.values())
    people = "person has" if total == 1 else "people have"
    st.caption(f"{total} {people} answered{asked_for}." if total else f"Nobody has answered{asked_for} yet.")
    for text, count in list(counts.items())[:MOST_BARS]:
        tick = ":material/check: " if text in right else ""
        st.progress(count / total, text=f"{tick}{markdown_safe(text)}: **{count}**")
    if len(counts) > MOST_BARS:
        left_out = sum(list(counts.values())[MOST_BARS:])
        st.caption(f"{len(counts) - MOST_BARS} more answers, of {left_out} people.")


def _asked_for(question: Question) -> str:
    """Of a matrix, the answer of one row counts."""
    if isinstance(question, TokenQuestion):
        return ""
    rows = question.panel.rows
    label = rows.labels[question.row]
    named = f" “{markdown_safe(label)}”" if label != str(question.row) else ""
    return f" for {rows.name} {question.row}{named}"


def _answer(question: Question, of: Hashable) -> str:
    kept = expectation_at(of, question.place)
    if isinstance(question, TokenQuestion):
        return "" if kept.token is None else question.labels[kept.token]
    shape = (len(question.panel.rows.labels), len(question.panel.columns.labels))
    return answer_in_words(question, kept.flags(shape))


def _name(question: Question, of: Hashable) -> str:
    row = question.row if isinstance(question, CellQuestion) else None
    return name_of_question(of, question.place, row)


def _person() -> str:
    found = drafts.put_by_before(_PERSON)
    if not isinstance(found, str):
        found = new_person()
        drafts.put_by(_PERSON, found)
    return found
