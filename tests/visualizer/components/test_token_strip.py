"""The events that the token strip accepts from the browser."""

import pytest

from visualizer.components.token_strip.element import Token, TokenSequence, parse_token

SEQUENCES = (
    TokenSequence("source", "Source", (Token(0, "the", 4), Token(1, "cat", 7))),
    TokenSequence("target", "Target", (Token(0, "⟨start⟩", 1, special=True),)),
)


def test_a_good_choice_from_the_browser():
    value = {"sequence": "source", "index": 1, "seq": 3}
    assert parse_token(value, SEQUENCES) == ("source", 1)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "source",
        {},
        {"sequence": "source", "index": 1},
        {"sequence": "source", "index": 2, "seq": 0},
        {"sequence": "target", "index": 1, "seq": 0},
        {"sequence": "other", "index": 0, "seq": 0},
        {"sequence": ["source"], "index": 0, "seq": 0},
        {"sequence": "source", "index": -1, "seq": 0},
        {"sequence": "source", "index": 0.0, "seq": 0},
        {"sequence": "source", "index": True, "seq": 0},
        {"sequence": "source", "index": 0, "seq": "1"},
    ],
)
def test_a_bad_choice_from_the_browser_is_none(value):
    assert parse_token(value, SEQUENCES) is None


def test_without_sequences_there_is_nothing_to_choose():
    assert parse_token({"sequence": "source", "index": 0, "seq": 1}, ()) is None
