"""The words of Compare: numbers that add up; and what its pictures and its masks choose."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_app import assert_healthy, in_link, open_app
from tests.visualizer.sample_runs import BASE
from tests.visualizer.told import dials_in, tell
from visualizer.pictures.compare import ComparePicture, compared_settings
from visualizer.pictures.heads import heads_picture
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import without_layer
from visualizer.settings.fields import changed
from visualizer.settings.settings import Selection, Settings
from visualizer.views.compare import dials_of_both
from visualizer.views.comparison import downstream, shift
from visualizer.views.what_changed import in_hundredths

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
        selection = changed(Selection(), mask_a=("sliding_window",), mask_b=("padding", "prefix"), **changes)
        a, b = (compute_run(each) for each in compared_settings(BASE, selection))
        picture = ComparePicture(heads_picture(a, kind, selection), heads_picture(b, kind, selection))
        return [dial.name for dial in dials_of_both(a, picture, selection)]

    assert turned() == ["mask_a", "mask_b", "n_heads", "temperature", "window", "prefix", "pad"]
    meant = turned(attention="encoder", intent="prefix:3", against_intent=True)
    assert meant == ["mask_a", "n_heads", "temperature", "window"]


LINK = {"view": "compare", "weights": "random", "seed": "5"}


def compared():
    """The runs of A and B of the link."""
    return (compute_run(Settings(weights="random", seed=5, mask=mask)) for mask in ((), ("causal",)))


def test_the_words_tell_of_the_cell_that_was_clicked_with_the_models_numbers():
    app = open_app(**LINK)
    tell(app, "compare_grids", "select", layer=0, head=1, query=3, key=0)
    assert dict(app.query_params) == {**LINK, "head": "1", "query": "3", "key": "0"}
    (account,) = (one.value for one in app.markdown if one.value.startswith("**Layer 0, head 1, query 3 “on”.**"))
    moved = shift(*compared(), "encoder.layers.0.self_attention", batch=0, head=1, query=3)
    before, _, said = account.partition("removed ")
    assert before.endswith("Blocking these 7 keys ")
    freed, *gains = (float(number) for number in re.findall(r"\d\.\d\d", said))
    assert [int(key) for key in re.findall(r"key (\d)", said)] == [key for key, _ in moved.gains]
    assert "and 1 other (" in said
    expected = [moved.freed, *(gain for _, gain in moved.gains), *moved.other_gains]
    assert [freed, *gains] == pytest.approx(expected, abs=0.01)
    assert sum(gains) == pytest.approx(freed)


def test_a_key_whose_gain_rounds_to_nothing_is_one_of_the_others():
    app = open_app(view="compare", mask_a="causal", mask_b="causal,sliding_window")
    said = " ".join(one.value for one in app.markdown if "removed" in one.value)
    assert "and 1 other (less than +0.01)" in said
    assert "+0.00" not in said


def test_a_stage_downstream_is_chosen_by_its_row():
    app = open_app(**LINK)
    tell(app, "downstream", "select", row=3, column=2)
    assert in_link(app, "stage") == without_layer(downstream(*compared(), batch=0, prefix="encoder").paths[3])
    assert in_link(app, "query") == "2"


def test_the_most_likely_tokens_stand_before_and_after():
    app = open_app(**LINK)
    a, b = compared()
    before, after = (run.trace["probabilities"].value[0] for run in (a, b))
    best = after.max(-1)
    changed = before.argmax(-1) != best.indices
    assert any(f"another one at {int(changed.sum())} of 11 positions" in one.value for one in app.caption)
    table = app.dataframe[-1].value
    assert [said == "yes" for said in table["Changed"]] == changed.tolist()
    word = b.vocabulary[int(best.indices[0])]
    assert table["B"][0].startswith(f"{word} {best.values[0].item():.1%}")


def test_a_dial_that_rests_is_in_the_link_of_both_runs():
    app = open_app(**LINK, layer="1")
    tell(app, "compare_grids", "shown", layer=1, turned={"temperature": 10})
    assert dict(app.query_params) == {**LINK, "layer": "1", "score": "score / 10"}


def test_what_is_said_of_the_numbers_stands_below_the_picture():
    drawn = [str(getattr(one, "proto", "")) for one in open_app(**LINK).main]
    picture, said = (
        [place for place, one in enumerate(drawn) if part in one]
        for part in ("headlight_compare_grids", '"A, layer 0: ')
    )
    assert len(picture) == len(said) == 1
    assert picture < said


def test_the_masks_are_pressed_in_the_picture_and_in_the_link():
    app = open_app(view="compare")

    def press(name, *pressed):
        """Press masks in a dial, and return those that are pressed then and the link's parameter for it."""
        tell(app, "compare_grids", "shown", turned={name: list(pressed)})
        assert_healthy(app)
        return dials_in(app, "compare_grids")[name], app.query_params.get(f"compare.{name}")

    assert press("mask_a", "padding") == (["padding"], "padding")
    assert press("mask_b") == ([], "none")
    assert press("mask_a") == ([], None)


@pytest.mark.parametrize(
    ("architecture", "where"), [("decoder", "After token 1 “b”:"), ("encoder", "In place of token 1 “b”:")]
)
def test_the_token_that_both_runs_are_asked_for_follows_or_stands_in_place_of_the_chosen_one(architecture, where):
    app = open_app(view="compare", architecture=architecture, text="a b c", query="1")
    assert [block.value for block in app.markdown if "token 1" in block.value] == [where]
