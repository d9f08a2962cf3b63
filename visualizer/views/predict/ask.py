"""The page of a covered result: what is asked, the marks, Reveal, and then what was computed beside them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
import streamlit as st

from model.texts import texts_of
from visualizer.components.expectation.element import expectation, parse_marks
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.settings import FIELDS
from visualizer.state import state
from visualizer.state.expectations import Expectation, expect, expectation_at, now_asked, reveal
from visualizer.state.widget_values import give, give_emptiable
from visualizer.views.predict.class_answers import beside_answers, bring_back
from visualizer.views.predict.covered import hide_nothing
from visualizer.views.predict.questions import (
    AS_EXPECTED,
    CellQuestion,
    Flags,
    Kind,
    TokenQuestion,
    codes,
)
from visualizer.views.predict.verdicts import position, verdict, verdict_on_token
from visualizer.work.membership import is_student

say = texts_of(__name__)

MOST_BUTTONS = 40
"""Up to so many tokens have a button each."""


def asked_bar(
    question: CellQuestion | TokenQuestion,
    of: Hashable,
    *,
    kinds: Sequence[Kind] = (),
    places: Mapping[str, tuple[int, Sequence[str]]] | None = None,
    shown_with: Sequence[Hashable] = (),
) -> None:
    """One line: which layer and head the question is about, which question it is, and Reveal.

    Args:
        question: what is asked.
        of: what was run.
        kinds: the questions that can be asked about the cells.
        places: for ``layer`` and ``head``, as far as they are chosen here, the one chosen and the names of all.
        shown_with: the results that are in sight with this one.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="asked"):
        for name, (index, labels) in (places or {}).items():
            _choose(name, index, labels)
        if len(kinds) > 1 and isinstance(question, CellQuestion):
            _choose_question(kinds, question.kind)
        _reveal(of, (question.result, *shown_with))


def ask_cells(question: CellQuestion, of: Hashable) -> bool:
    """Ask about the cells of a matrix; whether the result is still covered.

    Args:
        question: what is asked.
        of: what was run.
    """
    bring_back(question, of)
    shape = (len(question.panel.rows.labels), len(question.panel.columns.labels))
    expected = expectation_at(of, question.place).flags(shape)
    if is_revealed(question, of):
        _show_computed(question, expected, of)
        return False

    def mark(event: object) -> None:
        cells = parse_marks(event, shape, one_per_row=question.kind == "most")
        if cells is not None:
            expect(of, question.place, cells=cells)

    key = "expectation"
    st.caption(_task(question))
    with _beside_class(question, of):
        mount(
            expectation(
                expected,
                rows=question.panel.rows,
                columns=question.panel.columns,
                kind=question.kind,
                row=question.row,
                one_row=bool(state.chosen().selection.class_code),
                blocked=None if question.kind == "seen" else question.panel.blocked,
                scope=question.scope,
                seq=state.last_seq(key),
                key=key,
            ),
            mark=mark,
        )
    return True


def _show_computed(question: CellQuestion, expected: Flags, of: Hashable) -> None:
    """Say what came of it, and draw the cells as expected and as computed: those that differ are outlined."""
    _say(verdict(question, expected))
    found = codes(question, expected)
    differs = found > AS_EXPECTED
    if differs.any():
        st.caption(say("outlined"))
    computed = replace(question.panel, title=say("computed", title=question.panel.title), marked=differs)
    panels = [_as_panel(question, expected, differs), computed] if found.any() else [computed]
    with _beside_class(question, of):
        mount(tensor_grid(panels, key="revealed"))


def _as_panel(question: CellQuestion, expected: Flags, differs: Flags) -> Panel:
    """The cells as expected."""
    panel = question.panel
    return replace(
        panel,
        name="expected",
        title=say("expected"),
        subtitle="",
        array=expected.astype(np.uint8),
        role="neutral",
        palette="sequential",
        bounds=(0, 1),
        blocked=None if question.kind == "seen" else panel.blocked,
        marked=differs,
    )


def is_revealed(question: CellQuestion | TokenQuestion, of: Hashable) -> bool:
    """True if the result was revealed before."""
    return expectation_at(of, question.result).revealed


def ask_token(question: TokenQuestion, of: Hashable, title: str) -> bool:
    """Ask for the most likely token; whether the result is still covered.

    Args:
        question: what is asked.
        of: what was run.
        title: the question, in Markdown.
    """
    bring_back(question, of)
    expectation, revealed = expectation_at(of, question.place), is_revealed(question, of)
    with _beside_class(question, of):
        if revealed:
            _say(verdict_on_token(question, expectation.token))
        else:
            _choose_token(question, expectation, title, lambda token: expect(of, question.place, token=token))
    return not revealed


def _beside_class(question: CellQuestion | TokenQuestion, of: Hashable) -> AbstractContextManager[None]:
    """Put what is drawn meanwhile beside the answers of a class, where there is one."""
    code = state.chosen().selection.class_code
    return beside_answers(question, of, code, revealed=is_revealed(question, of)) if code else nullcontext()


def _task(question: CellQuestion) -> str:
    rows, columns = question.panel.rows.name, question.panel.columns.name
    if state.chosen().selection.class_code:
        return _task_of_class(question, position(question.panel.rows, question.row), columns)
    if question.kind == "seen":
        return say("mark_seen", row=rows, column=columns)
    return say("mark_most", row=rows, column=columns) if question.of_weights else say("mark_largest")


def _task_of_class(question: CellQuestion, row: str, columns: str) -> str:
    """The same where the answer of one row is counted."""
    if question.kind == "seen":
        return say("class_seen", row=row, column=columns)
    return say("class_most", row=row, column=columns) if question.of_weights else say("class_largest", row=row)


def _choose_token(
    question: TokenQuestion, expectation: Expectation, title: str, choose: Callable[[int | None], None]
) -> None:
    name = "expected_token"
    changed = state.on_change(name, lambda token: choose(token if isinstance(token, int) else None))
    key, labels = give_emptiable(name, expectation.token), [markdown_safe(label) for label in question.labels]
    if len(question.offered) <= MOST_BUTTONS:
        st.pills(title, question.offered, format_func=labels.__getitem__, key=key, on_change=changed)
    else:
        names = question.labels.__getitem__
        st.selectbox(title, question.offered, index=None, format_func=names, key=key, on_change=changed)


def _say(sentence: str) -> None:
    """Say what came of it, in sight and for screen readers."""
    st.markdown(f"**{sentence}**")


def _reveal(of: Hashable, results: Sequence[Hashable]) -> None:
    now_asked(of, results)
    revealed = expectation_at(of, results[0]).revealed
    if is_student():
        if not revealed:
            st.caption(say("teacher_reveals"), width="content")
        return
    st.button(
        say("cover") if revealed else say("reveal"),
        icon=":material/visibility_off:" if revealed else ":material/visibility:",
        key="reveal",
        type="secondary" if revealed else "primary",
        on_click=state.callback(reveal, of, results, revealed=not revealed),
    )
    hide_nothing()


def _choose_question(kinds: Sequence[Kind], chosen: Kind) -> None:
    name = "asked_question"
    st.segmented_control(
        FIELDS["question"].label,
        kinds,
        default=chosen,
        format_func=FIELDS["question"].choices.__getitem__,
        label_visibility="collapsed",
        width="content",
        key=give(name, chosen),
        on_change=state.on_change(name, lambda kind: state.select(question=kind or chosen)),
    )


def _choose(name: str, index: int, labels: Sequence[str]) -> None:
    """A menu for the layer or the head."""
    control = f"asked_{name}"

    def choose(chosen: object) -> None:
        if isinstance(chosen, int):  # an option that is gone comes back as its text
            state.select(**{name: chosen})

    st.selectbox(
        FIELDS[name].label,
        range(len(labels)),
        index=index,
        format_func=labels.__getitem__,
        label_visibility="collapsed",
        width=210,
        key=give(control, index),
        on_change=state.on_change(control, choose),
    )
