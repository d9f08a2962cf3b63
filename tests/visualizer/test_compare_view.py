"""The words of Compare: numbers that add up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.visualizer.sample_runs import BASE
from visualizer.pictures.compare import ComparePicture, compared_settings
from visualizer.pictures.heads import heads_picture
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Selection
from visualizer.views.compare import dials_of_both, in_hundredths
from visualizer.views.comparison import shift

TWELVE = "the cat saw the dog and then it ran to the tree"
MODULES = [f"encoder.layers.{layer}.self_attention" for layer in range(2)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_parts_in_hundredths_add_up_and_stay_near(parts):
    shown = in_hundredths(parts)
    assert sum(shown) == round(100 * sum(parts))
    assert all(abs(hundredths - 100 * part) < 1.0001 for hundredths, part in zip(shown, parts, strict=True))


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("masks", [((), ("causal",)), (("causal",), ("causal", "sliding_window"))])
def test_what_was_freed_and_lost_is_what_was_gained(module, masks):
    a, b = (compute_run(replace(BASE, text=TWELVE, pad=0, window=3, mask=mask)) for mask in masks)
    for query in range(12):
        moved = shift(a, b, module, batch=0, head=0, query=query)
        gained = sum(gain for _, gain in moved.gains) + sum(moved.other_gains)
        assert gained == pytest.approx(moved.freed + sum(moved.other_losses), abs=1e-4)
        change = (b.trace[f"{module}.weights"].value - a.trace[f"{module}.weights"].value)[0, 0, query]
        assert len(moved.gains) + len(moved.other_gains) == int((change > 1e-6).sum())
        if module == MODULES[0]:
            assert not moved.other_losses, "in the first layer the scores are the same"


def test_what_can_be_turned_is_what_either_mask_has_and_never_what_a_mask_should_be():
    kind = "encoder.self_attention"

    def turned(**changes: object) -> list[str]:
        selection = replace(Selection(mask_a=("sliding_window",), mask_b=("padding", "prefix")), **changes)
        a, b = (compute_run(each) for each in compared_settings(BASE, selection))
        picture = ComparePicture(heads_picture(a, kind, selection), heads_picture(b, kind, selection))
        return [dial.name for dial in dials_of_both(a, picture, selection)]

    assert turned() == ["temperature", "window", "prefix", "pad"]
    assert turned(attention="encoder", intent="prefix:3", against_intent=True) == ["temperature", "window"]
