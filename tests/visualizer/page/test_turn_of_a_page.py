"""A page among others: it is drawn when its turn has come."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

from tests.test_app import assert_healthy, open_app
from visualizer.page import sidebar
from visualizer.server import tuning
from visualizer.server.tuning import Turns


class NoticedTurns(Turns):
    """Says when a page has asked for a turn, and how many it has asked for."""

    def __init__(self) -> None:
        super().__init__(longest=600)
        self.n_asked = 0
        self.asked = Event()

    @contextmanager
    def turn(self) -> Iterator[None]:
        self.n_asked += 1
        self.asked.set()
        with super().turn():
            yield


def test_a_page_is_drawn_when_its_turn_has_come(monkeypatch):
    noticed, drawn, controls = NoticedTurns(), [], sidebar.controls
    monkeypatch.setattr(tuning, "PAGES", noticed)
    monkeypatch.setattr(sidebar, "controls", lambda: (drawn.append("controls"), controls()))
    with ThreadPoolExecutor() as threads:
        with noticed.turn():
            noticed.asked.clear()
            opening = threads.submit(open_app, text="a b")
            assert noticed.asked.wait(600)
            assert not drawn
        assert_healthy(opening.result())
    assert drawn
    assert noticed.n_asked == 1 + 1, "the whole page has one turn"
