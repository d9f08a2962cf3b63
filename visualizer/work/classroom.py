"""The answers of a class: counted for everybody who opens a link with the same code on this server.

Nobody is named: a person is a random text that their browser alone knows. No answer is kept longer than an hour,
and there is a bound to the answers and letters that are kept.
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

MOST_ANSWERS = 10_000
MOST_CLASSES = 64
LONGEST_ANSWER = 200
"""The bounds: answers of all classes, classes whose question is known, characters of an answer."""

_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
_CODE_LENGTH = 5


class _Answer(NamedTuple):
    text: str
    given_at: float


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
        self._answers: OrderedDict[tuple[str, str, str], _Answer] = OrderedDict()  # the oldest first
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

        The same answer once more is kept no longer than it was. Where there is no room, the oldest answer is
        forgotten.
        """
        place, text = (code, question, person), text[:LONGEST_ANSWER]
        with self._lock:
            self._forget_old()
            before = self._answers.get(place)
            if before is None or before.text != text:
                self._answers.pop(place, None)
                if text:
                    self._answers[place] = _Answer(text, self._clock())
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
            self._forget_later()

    def answer_of(self, code: str, question: str, person: str) -> str:
        """Return a person's answer; "" where nothing is kept."""
        with self._lock:
            self._forget_old()
            answer = self._answers.get((code, question, person))
        return answer.text if answer else ""

    def counts(self, code: str, question: str) -> Mapping[str, int]:
        """Count the people who give each answer, the most frequent first."""
        with self._lock:
            self._forget_old()
            found = Counter(one.text for place, one in self._answers.items() if place[:2] == (code, question))
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def _forget_old(self) -> None:
        limit = self._clock() - KEPT_SECONDS
        while self._answers and self._oldest.given_at <= limit:
            self._answers.popitem(last=False)

    @property
    def _oldest(self) -> _Answer:
        return next(iter(self._answers.values()))

    def _forget_later(self) -> None:
        """See to it that the oldest answer is forgotten, though nobody asks any more."""
        if self._answers and not self._will_forget:
            self._will_forget = True
            self._after(self._oldest.given_at + KEPT_SECONDS - self._clock(), self._forget_now)

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
