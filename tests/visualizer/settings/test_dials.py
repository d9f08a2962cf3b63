"""The dials in the picture of the heads: which there are, and what turning one changes."""

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest

from visualizer.masks import MASK_NAMES
from visualizer.settings.dials import before_turning, dials_of, turned
from visualizer.settings.fields import MAX_TOKENS
from visualizer.settings.fitting import fitted
from visualizer.settings.link import read_unchanged, write_query
from visualizer.settings.settings import FIELDS, Selection, Settings

KIND = "decoder.self_attention"
BOTH = Settings(
    architecture="encoder-decoder", mask=("padding", "sliding_window"), window=4, pad=2, score="score / 2"
)


def test_the_sizes_of_the_masks_chosen_can_be_turned_as_far_as_they_change_something():
    (masks, *others) = dials_of(BOTH, KIND, 9, 9)
    dials = {dial.name: (dial.value, dial.least, dial.most) for dial in others}
    assert (masks.name, masks.value, tuple(masks.offered)) == ("mask", BOTH.mask, MASK_NAMES)
    assert dials == {"n_heads": (4, 1, 16), "temperature": (2, 0.1, 10), "window": (4, 1, 9), "pad": (2, 0, 64)}
    assert [dial.name for dial in dials_of(BOTH, "decoder.cross_attention", 9, 9)] == ["n_heads", "pad"]
    assert [dial.name for dial in dials_of(replace(BOTH, mask=("prefix",), score="q"), KIND, 9, 9)] == [
        "mask",
        "n_heads",
        "prefix",
    ]
    assert dials_of(replace(BOTH, weights="one_head"), KIND, 9, 9) == ()


def test_a_dial_never_leads_to_more_tokens_than_are_drawn_and_never_below_where_it_stands():
    (*_, window, pad) = dials_of(replace(BOTH, window=40), KIND, MAX_TOKENS - 1, MAX_TOKENS - 1)
    assert pad.most == 3
    assert dials_of(replace(BOTH, window=40), KIND, 9, 9)[3].most == window.value == 40


def test_an_event_changes_the_setting_that_its_dial_stands_for():
    dials = dials_of(BOTH, KIND, 9, 9)
    assert turned({"turned": {"window": 6}}, dials) == {"window": 6}
    assert turned({"turned": {"temperature": 0.5, "mask": ["padding", "causal", "no such"]}}, dials) == {
        "score": "score / 0.5",
        "mask": ("causal", "padding"),
    }
    assert before_turning(BOTH, Selection(), dials)[0] == replace(BOTH, mask=("causal",), window=3, pad=0, score="")


@pytest.mark.parametrize(("d_model", "asked_width"), [(16, 0), (16, 32), (20, 0), (48, 50)])
def test_each_number_of_heads_has_the_address_of_what_is_run_then(d_model, asked_width):
    settings = replace(BOTH, d_model=d_model)
    dials = dials_of(settings, KIND, 9, 9, asked_width=asked_width)
    unturned = write_query(*before_turning(settings, Selection(), dials))
    of_the_others = {"mask": "padding,sliding_window", "score": "score / 2", "window": "4", "pad": "2"}
    (heads,) = (dial for dial in dials if dial.name == "n_heads")
    assert len(heads.parameters) == 16
    for n_heads, said in enumerate(heads.parameters, start=1):
        query = {name: [value] for name, value in (unturned | of_the_others | dict(parse_qsl(said))).items()}
        read, _ = read_unchanged(query, FIELDS.values())
        assert read == fitted(replace(settings, n_heads=n_heads, d_model=asked_width or d_model))


def test_a_trained_model_has_the_heads_that_it_learned_with():
    names = [dial.name for dial in dials_of(Settings(weights="trained", task="repeat_block"), KIND, 9, 9)]
    assert "n_heads" not in names


@pytest.mark.parametrize(
    "event",
    [
        None,
        {},
        {"turned": ["window"]},
        {"turned": {"prefix": 3}},
        {"turned": {"window": None}},
        {"turned": {"window": 0}},
        {"turned": {"window": "3"}},
        {"turned": {"pad": 65}},
        {"turned": {"pad": float("nan")}},
        {"turned": {"temperature": 11}},
        {"turned": {"mask": "causal"}},
    ],
)
def test_an_event_that_is_none_changes_nothing(event):
    assert turned(event, dials_of(BOTH, KIND, 9, 9)) == {}
