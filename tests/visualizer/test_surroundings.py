"""The changes that leave header and sidebar as they are, and that only the picture is drawn then."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from tests.test_app import assert_healthy, components, in_link, open_app
from visualizer.page import surroundings
from visualizer.page.surroundings import around, foreseen
from visualizer.server.turns import Turns
from visualizer.settings.settings import Selection, Settings
from visualizer.state.state import Choices

CHOICES = Choices(Settings(text="a b c", weights="random"), Selection(view="step"))


def are_the_same_after(name: str, value: object, before: Choices = CHOICES) -> bool:
    """True if what was drawn before is what should be seen after a control was given another value."""
    return around(before).after(name, value) == around(foreseen(before, name, value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "one two"),
        ("seed", 7),
        ("n_layers", 3),
        ("scale_scores", False),
        ("mask", ["causal"]),
        ("fault", "left_out"),
    ],
)
def test_what_stands_around_the_picture_is_the_same(name, value):
    assert are_the_same_after(name, value)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("norm", "pre", "the last norm is offered after the other norm alone"),
        ("mask", ["sliding_window"], "its size is offered"),
        ("mask", ["padding", "causal"], "the masks have an order"),
        ("architecture", "decoder", "a decoder has other controls, or another one's value"),
        ("n_heads", 3, "the widths that they can share are others"),
        ("pad", 2, "the side is offered"),
        ("weights", "hand_built", "they have no seed"),
        ("view", None, "a pressed choice cannot be left without one"),
    ],
)
def test_something_around_the_picture_follows(name, value, why):
    before = replace(CHOICES, settings=replace(CHOICES.settings, architecture="encoder-decoder"))
    assert not are_the_same_after(name, value, before), why


@pytest.mark.parametrize("changes", [{"present": True}, {"stop": 2}, {"view": "train"}, {"asked_width": 30}])
def test_the_selection_is_seen_around_the_picture(changes):
    after = replace(CHOICES, selection=replace(CHOICES.selection, **changes))
    assert around(after) != around(CHOICES)


def test_a_change_that_touches_nothing_else_draws_the_picture_alone(monkeypatch):
    monkeypatch.setattr(surroundings, "is_warm", lambda: True)
    app = open_app(view="heads", weights="random", text="a b c")
    picture = bytes_of(app, "headlight_attention_heads")
    app.number_input(key="seed").set_value(3).run()
    assert_healthy(app)
    assert in_link(app, "seed") == "3"
    assert not app.sidebar.text_area
    assert bytes_of(app, "headlight_attention_heads") != picture
    assert "headlight_token_strip" in components(app)


def test_a_change_that_touches_more_draws_the_whole_page(monkeypatch):
    monkeypatch.setattr(surroundings, "is_warm", lambda: True)
    app = open_app(view="heads", text="a b c")
    app.segmented_control(key="norm").set_value("pre").run()
    assert_healthy(app)
    assert not [one for one in app.toggle if one.key == "final_norm"]
    assert app.sidebar.text_area


def test_of_two_changes_at_once_neither_hides_what_the_other_touches(monkeypatch):
    monkeypatch.setattr(surroundings, "is_warm", lambda: True)
    app = open_app(view="heads", weights="random", text="a b c")
    app.number_input(key="seed").set_value(3)
    app.segmented_control(key="norm").set_value("pre").run()
    assert_healthy(app)
    assert (in_link(app, "seed"), in_link(app, "norm")) == ("3", "pre")
    assert not [one for one in app.toggle if one.key == "final_norm"]
    assert app.sidebar.text_area


def bytes_of(app: Any, name: str) -> bytes:
    found = [one.proto.bytes for one in app.get("bidi_component") if one.proto.component_name == name]
    assert len(found) == 1
    return found[0]


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
    turns, drawn = NoticedTurns(), []
    monkeypatch.setattr(surroundings, "_TURNS", turns)
    monkeypatch.setattr(surroundings, "around", lambda choices: (drawn.append(choices), around(choices))[1])
    with ThreadPoolExecutor() as threads:
        with turns.turn():
            turns.asked.clear()
            opening = threads.submit(open_app, text="a b")
            assert turns.asked.wait(600)
            assert not drawn
        assert_healthy(opening.result())
    assert drawn
    assert turns.n_asked == 1 + 2, "what stands around the picture, and the picture"
