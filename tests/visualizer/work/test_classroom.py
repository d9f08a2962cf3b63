"""The answers of a class: counted once for each person, forgotten after an hour, bounded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from visualizer.settings.link import read_query
from visualizer.work import classroom
from visualizer.work.classroom import KEPT_SECONDS, Classroom, code_of, name_of_question


class Hours:
    """A clock that is set by hand, and what waits for it."""

    def __init__(self):
        self.now = 0.0
        self.waiting = []

    def after(self, seconds, act):
        self.waiting.append((self.now + seconds, act))

    def set(self, now):
        self.now = now
        due = [act for at, act in self.waiting if at <= now]
        self.waiting = [(at, act) for at, act in self.waiting if at > now]
        for act in due:
            act()


@pytest.fixture
def hours():
    return Hours()


@pytest.fixture
def room(hours):
    return Classroom(lambda: hours.now, hours.after)


def test_each_person_counts_once_with_the_last_answer(room):
    for person, text in (("a", "key 0"), ("b", "key 1"), ("c", "key 1"), ("a", "key 2"), ("d", "key 0"), ("d", "")):
        room.answer("k7f3", "head 0", person, text)
    assert list(room.counts("k7f3", "head 0").items()) == [("key 1", 2), ("key 2", 1)]
    assert not room.counts("k7f3", "head 1")
    assert not room.counts("other", "head 0")
    assert len(room._answers) == 3
    assert [room.answer_of("k7f3", "head 0", person) for person in "ade"] == ["key 2", "", ""]


def test_an_answer_is_forgotten_after_an_hour_though_nobody_asks(room, hours):
    room.answer("k7f3", "q", "a", "early")
    hours.set(1000)
    room.answer("k7f3", "q", "b", "late")
    hours.set(KEPT_SECONDS - 1)
    assert len(room._answers) == 2
    hours.set(KEPT_SECONDS)
    assert len(room._answers) == 1, "the clock alone took the first away"
    hours.set(KEPT_SECONDS + 1000)
    assert len(room._answers) == 0
    assert not hours.waiting, "nothing is waited for where nothing is kept"
    room.answer("k7f3", "q", "a", "again")
    assert len(hours.waiting) == 1


def test_another_answer_begins_its_hour_anew_and_the_same_one_does_not(room, hours):
    room.answer("k7f3", "q", "a", "one")
    room.answer("k7f3", "q", "b", "one")
    hours.set(3000)
    room.answer("k7f3", "q", "a", "two")
    room.answer("k7f3", "q", "b", "one")
    hours.set(KEPT_SECONDS + 1)
    assert room.counts("k7f3", "q") == {"two": 1}


def test_what_is_kept_has_bounds(room, hours, monkeypatch):
    for name, bound in (("MOST_ANSWERS", 4), ("LONGEST_ANSWER", 5)):
        monkeypatch.setattr(classroom, name, bound)
    for person in range(9):
        room.answer("first", "q", str(person), "an answer that is long")
    assert room.counts("first", "q") == {"an an": 4}
    assert [bool(room.answer_of("first", "q", str(person))) for person in range(9)] == [False] * 5 + [True] * 4
    hours.set(10)
    room.answer("first", "q", "5", "other")
    room.answer("first", "q", "5", "other")
    for question in range(3):
        room.answer("second", str(question), "a", "x")
    assert room.counts("first", "q") == {"other": 1}, "the oldest answers gave their room"
    assert [room.counts("second", str(question)) for question in range(3)] == [{"x": 1}] * 3
    room.answer("third", "q", "a", "x")
    assert not room.counts("first", "q"), "of another class too"
    assert len(room._answers) == 4


def test_the_question_of_a_class_is_the_one_that_was_asked_last(room, monkeypatch):
    monkeypatch.setattr(classroom, "MOST_CLASSES", 2)
    for code, question in (("first", "q"), ("second", "q"), ("first", "r"), ("third", "q")):
        room.ask(code, question, {"text": question})
    found = [room.asked(code) for code in ("first", "second", "third")]
    assert found == [("r", {"text": "r"}), ("", {}), ("q", {"text": "q"})]


def test_many_threads_lose_no_answer(room):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda person: room.answer("k7f3", "q", str(person), f"key {person % 2}"), range(150)))
    assert room.counts("k7f3", "q") == {"key 0": 75, "key 1": 75}


def test_codes_are_short_stand_in_a_link_and_differ():
    codes = {code_of(str(key)) for key in range(200)}
    assert len(codes) > 190
    assert {len(code) for code in codes} == {5}
    for code in list(codes)[:20]:
        assert read_query({"class_code": [code]})[1].class_code == code


def test_a_question_has_one_name_in_every_session():
    name = name_of_question(("heads", 0), 3)
    assert name == name_of_question(("heads", 0), 3) != name_of_question(("heads", 0), 4)
    assert len(name_of_question("x" * 10_000)) == 32
