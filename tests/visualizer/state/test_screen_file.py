"""A screen as a file: what no link carries is there again when the file is opened."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visualizer.settings.settings import Selection, Settings
from visualizer.state.screen_file import MAX_BYTES, read_screen, write_screen
from visualizer.state.state import Choices

LONG = "donaudampfschifffahrt " * 400


def test_a_screen_that_a_link_carries_needs_no_file():
    assert write_screen(Choices(Settings(text="a b c"), Selection())) == ""


@given(
    text=st.text(min_size=1, max_size=200), head=st.integers(0, 15), view=st.sampled_from(["heads", "step", "lab"])
)
def test_what_is_written_is_read_again(text, head, view):
    choices = Choices(Settings(text=LONG + text, n_heads=16), Selection(view=view, head=head))
    found = read_screen(write_screen(choices).encode("utf-8", "surrogatepass"))
    assert (found.settings, found.selection) == (choices.settings, choices.selection)
    assert not found.notices


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"{}", 'begins with "headlight_screen"'),
        (b'{"headlight_screen": 2, "link": {}}', 'begins with "headlight_screen"'),
        (b'{"headlight_screen": 1, "link": {"text": 7}}', 'begins with "headlight_screen"'),
        (b" " * (MAX_BYTES + 1), "at most"),
    ],
)
def test_another_file_gets_one_sentence(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_screen(data)


def test_a_bad_value_in_a_file_is_said_as_that_of_a_link():
    found = read_screen(json.dumps({"headlight_screen": 1, "link": {"n_heads": "x"}}).encode())
    assert found.notices
    assert replace(found, notices=(), named=frozenset()) == Choices(Settings(), Selection())
