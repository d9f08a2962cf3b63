"""The poll of a class: the way of the students to the question, and the tally beside the grid."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.controls import control_named, open_menu
from tests.test_app import assert_healthy, components, in_link, open_app
from tests.visualizer.routes.test_routes import unpacked
from tests.visualizer.told import tell
from tests.visualizer.views.watched.test_watched_view import pictures
from tests.visualizer.work.test_live import picture_at
from visualizer.components.packing import header_of
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Selection, Settings
from visualizer.state import state
from visualizer.state.state import Choices
from visualizer.views.predict.class_answers import address_for_students
from visualizer.views.predict.questions import largest, question_at
from visualizer.work.classroom import CLASSROOM, code_of

WEIGHTS = "encoder.layers.0.self_attention.weights"
LINK = {"text": "the cat sat", "view": "heads", "query": "1", "hidden": "on"}


def in_class(code: str, **link: str) -> AppTest:
    return open_app(**LINK, class_code=code, **link)


def code_of_teacher(name: str) -> str:
    return code_of(_key_of(name))


def _key_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Opens the poll of a teacher by name, in a session that knows nothing of it: as a reload does."""

    def opened(name: str, **link: str) -> AppTest:
        code = code_of_teacher(name)
        with monkeypatch.context() as browser:
            browser.setattr(type(st.context), "cookies", {f"headlight_class_{code}": _key_of(name)})
            return open_app(**LINK | link, class_code=code)

    return opened


def in_menu(app: AppTest) -> AppTest:
    return open_menu(app, "audience_menu")


def kept_by_browser(monkeypatch: pytest.MonkeyPatch, app: AppTest) -> None:
    """Have every page opened from now on find what this one had its browser keep."""
    name, _, value = str(pictures(app)["headlight_page_keys"]["cookie"]).partition(";")[0].partition("=")
    monkeypatch.setattr(type(st.context), "cookies", {name: value})


def marks(*cells: int) -> dict[str, object]:
    """The event of these cells, of three by three, marked."""
    return {"cells": base64.b64encode(np.packbits([i in cells for i in range(9)])).decode(), "seq": 1}


def marked(app: AppTest) -> list[int]:
    """The cells that are marked."""
    (drawn,) = (one.proto.bytes for one in app.get("bidi_component") if one.proto.id.endswith("-expectation"))
    _, arrays = unpacked(drawn)
    return np.flatnonzero(np.unpackbits(arrays["expected"].astype(np.uint8), count=9)).tolist()


def in_html(app: AppTest) -> str:
    return "".join(element.proto.body for element in app.get("html"))


def pictures_by_key(app: AppTest) -> dict[str, dict[str, Any]]:
    return {header["key"]: header for header in (header_of(one.proto.bytes) for one in app.get("bidi_component"))}


def tally_in(app: AppTest) -> dict[str, Any]:
    return pictures_by_key(app)["class_tally"]


def captions(app: AppTest) -> str:
    return " ".join(caption.value for caption in app.caption)


def test_a_student_sees_the_grid_and_that_the_answer_counts():
    app = in_class("quiet")
    assert_healthy(app)
    assert "headlight_expectation" in components(app)
    assert "counts your answer for query 1 “cat”" in captions(app)
    assert "data:image/svg+xml" not in in_html(app)


def test_the_answer_is_the_teachers_to_reveal_while_a_class_is_polled(poll):
    student = in_class(code_of_teacher("Ada"))
    assert "Your teacher reveals the answer." in captions(student)
    tell(student, "page_keys", "act", {"acts": [[1, "reveal"], [2, "hide"]], "seq": 2})
    menu = in_menu(student)
    controls = {element.key for element in (*menu.button, *menu.toggle)}
    assert not controls & {"reveal", "hide_nothing", "show_class", "hidden", "teach_class"}
    assert in_link(student, "hidden") == "on"

    teacher = poll("Ada")
    assert {element.key for element in teacher.button} >= {"reveal", "hide_nothing"}
    left = in_menu(student).button(key="leave_class").click().run()
    assert_healthy(left)
    assert left.button(key="reveal").label == "Reveal"
    assert left.button(key="hide_nothing")


def test_the_poll_has_code_and_picture_beside_the_grid_until_the_result_is_revealed(poll):
    app, code = poll("Grace"), f"<p>{code_of_teacher('Grace')}</p>"
    assert_healthy(app)
    assert code in in_html(app)
    assert in_html(app).count("data:image/svg+xml") == 1
    grid, join, tally = app.columns[-3:]
    assert [element.proto.component_name for element in grid.get("bidi_component")] == ["headlight_expectation"]
    assert join.get("html")
    assert tally_in(app)["above"] == "Nobody has answered for query 1 “cat” yet."

    app.button(key="reveal").click().run()
    assert_healthy(app)
    assert code not in in_html(app), "the marks and what was computed need the room"
    assert tally_in(app)["above"].startswith("Nobody has answered")
    assert app.columns[-1].weight == tally.weight, "the room of the code goes to what was computed"


def test_the_tally_counts_each_answer_also_when_the_result_is_revealed(poll):
    for _ in range(2):
        tell(in_class(code_of_teacher("Emmy")), "expectation", "mark", marks(0, 4, 8))
    app = poll("Emmy")
    tally = tally_in(app)
    assert "2 people have answered" in tally["above"]
    assert tally["bars"] == [{"label": "key 1 “cat”", "text": "key 1 “cat”: 2", "fraction": 1.0}]
    app.button(key="reveal").click().run()
    assert [bar["text"] for bar in tally_in(app)["bars"]] == ["✓ key 1 “cat”: 2"]


def test_the_tally_has_an_address_that_follows_the_class_until_the_page_asks_something_else(poll):
    app = poll("Sofia")
    address = tally_in(app)["address"]
    tell(in_class(code_of_teacher("Sofia")), "expectation", "mark", marks(4))
    assert "1 person has answered" in header_of(picture_at(address).data)["above"]
    app.button(key="reveal").click().run()
    assert tally_in(app)["address"] != address, "what is right is told from then on alone"


def test_the_question_of_the_teacher_has_an_address_that_ends_where_another_is_asked(poll):
    poll("Vera")
    student = in_class(code_of_teacher("Vera"))
    address = pictures_by_key(student)["class_question"]["address"]
    assert picture_at(address) is not None
    assert "to_the_class" not in {button.key for button in student.button}
    poll("Vera", query="2")
    assert picture_at(address) is None
    assert student.run().button(key="to_the_class")
    poll("Vera")
    assert "to_the_class" not in {button.key for button in student.run().button}


def test_a_student_elsewhere_is_shown_the_way_to_the_question_of_the_teacher(poll):
    poll("Maria", query="2", head="1", present="on")
    student = in_class(code_of_teacher("Maria"))
    assert "This page asks about query 1 “cat”" in captions(student)
    student.button(key="to_the_class").click().run()
    assert_healthy(student)
    assert (in_link(student, "query"), in_link(student, "head"), "present" in student.query_params) == (
        "2",
        "1",
        False,
    )
    assert "This page asks about query 2 “sat”" in captions(student)
    assert "to_the_class" not in {button.key for button in student.button}


@pytest.mark.parametrize(
    ("cells", "question"), [([4], "most"), ([3, 5], "seen"), ([], "most")], ids=["most", "seen", "taken back"]
)
def test_a_person_who_loads_the_page_again_has_the_answer_back_and_counts_once(monkeypatch, cells, question):
    code = f"again{len(cells)}"
    before = in_class(code, question=question)
    tell(before, "expectation", "mark", marks(3, 8))
    tell(before, "expectation", "mark", marks(8, *cells) | {"seq": 2})
    assert marked(before) == sorted([8, *cells])
    kept_by_browser(monkeypatch, before)
    after = in_class(code, question=question)
    assert marked(after) == cells, "what counts is the row that the class is asked about"
    tell(after, "expectation", "mark", marks(3))
    assert [place[0] for place in CLASSROOM._answers].count(code) == 1
    tell(after, "expectation", "mark", marks() | {"seq": 2})
    assert marked(after) == [], "what is taken back stays so"


def test_the_token_that_was_answered_is_chosen_again(monkeypatch):
    link = LINK | {"view": "generate", "architecture": "decoder", "class_code": "token"}
    before = open_app(**link)
    before.pills(key="expected_token").set_value(2).run()
    kept_by_browser(monkeypatch, before)
    assert control_named(open_app(**link).pills, "expected_token").value == 2


@pytest.mark.parametrize(
    ("link", "asked"),
    [
        ({"question": "seen"}, "mark every key that it sees"),
        ({"question": "most"}, "mark the key that it looks at most"),
        ({"view": "step", "stage": "encoder.layers.self_attention.scaled_scores"}, "mark its largest number"),
    ],
    ids=["cells", "weights", "numbers"],
)
def test_a_class_is_asked_about_the_row_that_counts(link, asked):
    app = open_app(**LINK | link, class_code="oneof")
    assert any(f"This page asks about query 1 “cat”: {asked}" in each.value for each in app.caption)


@pytest.mark.parametrize(("query", "asked"), [(8, 9), (6, 6)], ids=["of a tie", "of a clear answer"])
def test_a_class_begins_with_a_question_that_has_one_answer(query, asked):
    run = compute_run(Settings())
    right = largest(question_at(run, WEIGHTS, kind="most", head=2, batch=0, row=0).panel, of_weights=True)
    assert (right[8].sum(), right[asked].sum()) == (2, 1)
    app = open_app(view="heads", query=str(query))
    in_menu(app).button(key="begin_class").click().run()
    assert_healthy(app)
    assert app.button(key="reveal"), "who begins it teaches it"
    assert in_link(app, "query") == str(asked)


@pytest.mark.parametrize(
    ("link", "view"),
    [
        ({"view": "way"}, "heads"),
        ({"view": "lab"}, "heads"),
        ({"view": "train"}, "heads"),
        ({"view": "compare"}, "compare"),
    ],
    ids=["the opening", "the lab", "another model", "a view that asks"],
)
def test_a_class_begins_where_a_question_can_be_asked(link, view):
    app = open_app(**link)
    in_menu(app).button(key="begin_class").click().run()
    assert_healthy(app)
    assert app.button(key="reveal")
    assert "data:image/svg+xml" in in_html(app)
    assert in_link(app, "view") == view


def test_students_open_the_question_covered_and_on_a_screen_of_their_own():
    selection = Selection(view="heads", query=1, present=True, hidden=False, class_code="bcd23")
    choices = Choices(Settings(text="50 % & +1"), selection)
    address = address_for_students("https://example.org/app/", choices)
    assert address.startswith("https://example.org/app/?")
    found = state.read(parse_qs(urlsplit(address).query))
    assert found.settings == choices.settings
    assert found.selection == replace(selection, present=False, hidden=True)


def test_in_place_of_a_code_that_no_phone_can_open_stands_why(monkeypatch, poll):
    monkeypatch.setattr(type(st.context), "url", "http://localhost:8501/")
    app = poll("Hedy")
    assert "data:image/svg+xml" not in in_html(app)
    assert app.warning[0].value.startswith("Phones cannot open this address")


def test_an_address_too_long_for_a_qr_code_is_said_to_be(poll):
    app = poll("Lise", text="漢字" * 200)
    assert_healthy(app)
    assert "too long for a QR code" in captions(app)
