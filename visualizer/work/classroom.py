"""The answers of a class: counted for everybody who opens a link with the same code on this server.

Nobody is named: a person is a random text that their browser alone knows. No answer is kept longer than an hour,
and there is a bound to the classes, questions, people and letters that are kept.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock, Timer
from typing import NamedTuple

KEPT_SECONDS = 3600.0
"""The seconds for which an answer counts."""

MOST_CLASSES = 64
MOST_QUESTIONS = 16
MOST_PEOPLE = 200
LONGEST_ANSWER = 200
"""The bounds: classes, questions of a class, people who answered one, characters of an answer."""

_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
_CODE_LENGTH = 5


class _Answer(NamedTuple):
    text: str
    given_at: float


_Question = OrderedDict[str, _Answer]
"""The answers of one question by person, the oldest first."""


def _after(seconds: float, act: Callable[[], None]) -> None:
    timer = Timer(seconds, act)
    timer.daemon = True
    timer.start()


class Classroom:
    """The answers of all classes, for any number of threads.

    Args:
        clock: seconds, from any beginning.
        after: calls something once, so many seconds later.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        after: Callable[[float, Callable[[], None]], None] = _after,
    ) -> None:
        self._clock, self._after = clock, after
        self._lock = Lock()
        self._classes: OrderedDict[str, OrderedDict[str, _Question]] = OrderedDict()
        self._asked: OrderedDict[str, tuple[str, Mapping[str, str]]] = OrderedDict()
        self._will_forget = False

    def ask(self, code: str, question: str, link: Mapping[str, str]) -> None:
        """Note which question the teacher of a class shows, and the link to it."""
        with self._lock:
            self._asked[code] = (question, link)
            self._asked.move_to_end(code)
            while len(self._asked) > MOST_CLASSES:
                self._asked.popitem(last=False)

    def asked(self, code: str) -> tuple[str, Mapping[str, str]]:
        """Return the last question of a class and the link to it; empty before there is one."""
        with self._lock:
            return self._asked.get(code, ("", {}))

    def answer(self, code: str, question: str, person: str, text: str) -> None:
        """Count what a person answers in place of what they answered before; "" takes it away.

        The same answer once more is kept no longer than it was.

        Where there is no room, the class or the question that was answered longest ago is forgotten; a person more
        than a question has room for is not counted.
        """
        with self._lock:
            self._forget_old()
            answers = self._room_for(code, question)
            before = answers.get(person)
            if before is None or before.text != text[:LONGEST_ANSWER]:
                answers.pop(person, None)
                if text and len(answers) < MOST_PEOPLE:
                    answers[person] = _Answer(text[:LONGEST_ANSWER], self._clock())
            self._drop_empty()
            self._forget_later()

    def answer_of(self, code: str, question: str, person: str) -> str:
        """Return a person's answer; "" where nothing is kept."""
        with self._lock:
            self._forget_old()
            questions = self._classes.get(code)
            answers = questions.get(question) if questions else None
            answer = answers.get(person) if answers else None
        return answer.text if answer else ""

    def counts(self, code: str, question: str) -> Mapping[str, int]:
        """Count the people who give each answer, the most frequent first."""
        with self._lock:
            self._forget_old()
            questions = self._classes.get(code)
            answers = questions.get(question) if questions else None
            found = Counter(answer.text for answer in answers.values()) if answers else Counter()
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @property
    def n_kept(self) -> int:
        """Count the answers that are kept."""
        with self._lock:
            return sum(len(answers) for questions in self._classes.values() for answers in questions.values())

    def _room_for(self, code: str, question: str) -> _Question:
        questions = self._classes.setdefault(code, OrderedDict())
        self._classes.move_to_end(code)
        answers = questions.setdefault(question, OrderedDict())
        questions.move_to_end(question)
        while len(questions) > MOST_QUESTIONS:
            questions.popitem(last=False)
        while len(self._classes) > MOST_CLASSES:
            self._classes.popitem(last=False)
        return answers

    def _forget_old(self) -> None:
        limit = self._clock() - KEPT_SECONDS
        for questions in self._classes.values():
            for answers in questions.values():
                while answers and next(iter(answers.values())).given_at <= limit:
                    answers.popitem(last=False)
        self._drop_empty()

    def _drop_empty(self) -> None:
        for code, questions in list(self._classes.items()):
            for question, answers in list(questions.items()):
                if not answers:
                    del questions[question]
            if not questions:
                del self._classes[code]

    def _forget_later(self) -> None:
        """See to it that the oldest answer is forgotten, though nobody asks any more."""
        if self._will_forget or not self._classes:
            return
        self._will_forget = True
        oldest = min(
            next(iter(answers.values())).given_at
            for questions in self._classes.values()
            for answers in questions.values()
        )
        self._after(max(0.0, oldest + KEPT_SECONDS - self._clock()), self._forget_now)

    def _forget_now(self) -> None:
        with self._lock:
            self._will_forget = False
            self._forget_old()
            self._forget_later()


CLASSROOM = Classroom()
"""The one of this process."""


def code_of(key: str) -> str:
    """The code of a class, short enough to be called out and without letters that are read as others.

    Args:
        key: what its teacher alone knows.
    """
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in hashlib.sha256(key.encode()).digest()[:_CODE_LENGTH])


def name_of_question(*parts: object) -> str:
    """A short name of a question, the same in every session, of whatever tells it from others."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
