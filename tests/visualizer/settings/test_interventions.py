"""Replacements of tensors: written into a link and read again, and refused where it is no edit."""

from __future__ import annotations

from typing import get_args
from urllib.parse import quote

import pytest
from hypothesis import given, strategies

from visualizer.settings.interventions import (
    MOST,
    Becomes,
    Intervention,
    read_interventions,
    write_interventions,
)

PLACES = strategies.one_of(strategies.none(), strategies.integers(0, 999))
INTERVENTIONS = strategies.builds(
    Intervention,
    path=strategies.from_regex(r"[a-z_0-9.]{1,100}", fullmatch=True),
    becomes=strategies.sampled_from(get_args(Becomes)),
    head=PLACES,
    row=PLACES,
)


@given(strategies.lists(INTERVENTIONS, max_size=MOST))
def test_what_is_written_is_read_again_and_needs_no_quoting(interventions):
    text = write_interventions(interventions)
    assert read_interventions(text) == tuple(interventions)
    assert quote(text, safe="") == text


@pytest.mark.parametrize("text", ["logits", "logits-half", "logits-h1-h2-zero", "lo gits-zero", "logits-zero~"])
def test_what_is_no_edit_is_refused(text):
    with pytest.raises(ValueError, match="holds something that is not an edit"):
        read_interventions(text)


def test_too_many_are_refused():
    with pytest.raises(ValueError, match="more than 32"):
        read_interventions("~".join(["logits-zero"] * 33))


@pytest.mark.parametrize(
    ("intervention", "place", "is_covered"),
    [
        (Intervention("x", "zero"), (3, 4), True),
        (Intervention("x", "zero", head=3), (3, 4), True),
        (Intervention("x", "zero", head=2), (3, 4), False),
        (Intervention("x", "zero", head=3, row=5), (3, 4), False),
    ],
)
def test_an_edit_covers_its_head_and_its_row(intervention, place, is_covered):
    assert intervention.covers(*place) == is_covered
