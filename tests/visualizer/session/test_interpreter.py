import sys

from visualizer.session.interpreter import TURN, take_short_turns


def test_turns_are_shorter_than_those_of_python(monkeypatch):
    given = []
    monkeypatch.setattr(sys, "setswitchinterval", given.append)
    take_short_turns()
    assert given == [TURN]
    assert sys.getswitchinterval() > TURN
