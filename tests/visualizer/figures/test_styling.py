"""Shared parts of all figures."""

import pytest

from visualizer.figures.styling import MOST_TICKS, token_ticks


def test_equal_tokens_keep_places_of_their_own_and_are_no_markup():
    ticks = token_ticks(["a", "<b>", "a"])
    assert ticks == {"tickvals": [0, 1, 2], "ticktext": ["a", "&lt;b&gt;", "a"]}


@pytest.mark.parametrize("n_tokens", [1, MOST_TICKS, MOST_TICKS + 1, 512])
def test_of_many_tokens_so_many_are_written_that_they_can_be_read(n_tokens):
    ticks = token_ticks([f"t{i}" for i in range(n_tokens)])
    assert len(ticks["tickvals"]) <= MOST_TICKS
    for place, text in zip(ticks["tickvals"], ticks["ticktext"], strict=True):
        assert text.split()[-1] == f"t{place}"
