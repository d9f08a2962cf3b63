import base64
from dataclasses import FrozenInstanceError, replace
from typing import Literal, get_args, get_origin, get_type_hints
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.masks.destinations import DESTINATIONS
from headlight.masks.translations import TRANSLATIONS
from visualizer.masks import MASK_NAMES
from visualizer.routes.address import Part
from visualizer.settings.fields import TEXTS, WORKED_EXAMPLES, changed, fields_of, value_in
from visualizer.settings.fitting import fitted, offered, width_to_come_back_to, widths
from visualizer.settings.link import MAX_URL_TEXT, chosen_in, left_out_of_link, read_query, write_query
from visualizer.settings.settings import FIELDS, Selection, Settings, default_stage, in_mask_order
from visualizer.settings.sources import view_in
from visualizer.settings.training_settings import TrainingChoice
from visualizer.settings.view_choices import CompareChoice, GenerateChoice, HeadsChoice, LabChoice
from visualizer.settings.watched_settings import WatchedChoice

modest = settings(derandomize=True, max_examples=60, deadline=None)

masks = st.sets(st.sampled_from(MASK_NAMES)).map(in_mask_order)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
cells = st.binary(max_size=40).map(lambda packed: base64.urlsafe_b64encode(packed).decode().rstrip("="))


def values_of(field):
    """Every good value of a field."""
    match field.kind:
        case "integer":
            return st.integers(int(field.least), int(field.most))
        case "fraction":
            return st.floats(field.least, field.most)
        case "choice":
            return st.sampled_from(list(field.choices))
        case "switch":
            return st.booleans()
        case "names":
            return masks
        case "text":
            return texts
        case "cells":
            return cells
        case "interventions":
            return st.sampled_from(["", "decoder.layers.0.norm1-r3-mean~encoder.layers.1.norm2-other"])
        case "identifier":
            return st.sampled_from(["", "0123456789abcdef"])
        case "places":
            places = st.sets(st.integers(int(field.least), int(field.most)))
            return places.map(sorted).map(tuple)
        case "intent":
            return st.sampled_from(
                [
                    "unsaid",
                    "causal",
                    "window",
                    "window:4+padding",
                    "prefix:0+documents",
                    "expression:k <= q + 1",
                    "array",
                ]
            )
        case "stage":
            return st.from_regex(r"\A[a-z_0-9.]{1,40}\Z")


def parts_of(kind):
    """Every value of a dataclass whose fields are settings."""
    values = {name: values_of(field) for name, field in fields_of(kind).items()}
    return st.fixed_dictionaries(values).map(lambda chosen: changed(kind(), **chosen))


wishes = parts_of(Settings)
good_settings = wishes.map(fitted)
good_selections = parts_of(Selection).map(lambda one: replace(one, view=view_in(one.source, one.view)))
given_values = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["", "nan", "inf", "-inf", "1e309", "-5", "2.5", "9" * 5000, "none", "causal,", "ON", "é", "\ud800"]
    ),
    st.sampled_from([choice for field in FIELDS.values() for choice in field.choices]),
)
queries = st.dictionaries(
    st.sampled_from([*FIELDS, "embed", ""]), st.lists(given_values, max_size=3), max_size=len(FIELDS)
)


def read_one(name, *values):
    """One parameter's value and the notices."""
    chosen, selection, notices = read_query({name: list(values)})
    return value_in(chosen if hasattr(chosen, name) else selection, name), notices


OF_VIEWS = (HeadsChoice, CompareChoice, LabChoice, GenerateChoice)


def own_fields(kind):
    """The parameters of a dataclass itself."""
    return {name: field for name, field in fields_of(kind).items() if name in kind.__dataclass_fields__}


@pytest.mark.parametrize("kind", [Settings, Selection, *OF_VIEWS, TrainingChoice])
def test_every_field_has_a_label_a_sentence_and_a_default_that_is_good(kind):
    types = get_type_hints(kind)
    for name, field in own_fields(kind).items():
        assert field.label
        assert field.help.endswith(".")
        if field.kind in ("integer", "fraction"):
            assert field.least <= field.default <= field.most
        if field.kind == "choice":
            assert field.default in field.choices
        if get_origin(types[name]) is Literal:
            assert tuple(field.choices) == get_args(types[name]), "in the order of the type"


def test_no_parameter_has_the_name_of_another_one():
    kinds = (Settings, Selection, *OF_VIEWS, TrainingChoice, WatchedChoice)
    names = [name for kind in kinds for name in own_fields(kind)]
    assert sorted(names) == sorted({*FIELDS, *fields_of(TrainingChoice), *fields_of(WatchedChoice)})


def test_a_parameter_is_read_and_replaced_in_the_value_that_holds_it():
    looked_at = changed(Selection(), layer=1, mask_a=("causal",), claim="causal")
    assert (looked_at.layer, looked_at.compare.mask_a, looked_at.lab.claim) == (1, ("causal",), "causal")
    assert changed(looked_at, layer=0, mask_a=(), claim="intended") == Selection()
    assert value_in(looked_at, "claim") == "causal"
    with pytest.raises(KeyError):
        changed(looked_at, claims="causal")


def test_the_defaults_can_be_combined():
    assert fitted(Settings()) == Settings()
    assert Selection().stage == default_stage(Settings().architecture)


def test_masks_and_worked_examples_are_choices():
    assert tuple(FIELDS["mask"].choices) == MASK_NAMES
    assert set(WORKED_EXAMPLES) < set(FIELDS["weights"].choices)
    assert FIELDS["library"].choices == {name: each.title for name, each in TRANSLATIONS.items()}


def test_both_values_are_frozen_and_hashable():
    assert len({Settings(), Settings(), Settings(seed=1)}) == 2
    assert len({Selection(), Selection()}) == 1
    with pytest.raises(FrozenInstanceError):
        Settings().seed = 1


@pytest.mark.parametrize("n_heads", range(1, 17))
def test_every_width_can_be_shared_by_the_heads(n_heads):
    offered = widths(n_heads, 2 * n_heads + 1)
    assert len(offered) >= 5
    assert sorted(set(offered)) == list(offered)
    assert all(width % n_heads == 0 and width % 2 == 0 and 8 <= width <= 768 for width in offered)


@pytest.mark.parametrize(("n_heads", "width"), [(8, 512), (4, 128), (4, 64), (12, 768), (1, 8), (16, 768)])
def test_the_usual_widths_are_offered(n_heads, width):
    assert width in widths(n_heads, 64)


def test_a_width_that_the_heads_can_share_is_left_as_it_is():
    assert fitted(Settings(n_heads=4, d_model=80)).d_model == 80
    assert 80 in widths(4, 80)
    assert fitted(Settings(n_heads=4, d_model=82)).d_model == 96
    assert fitted(Settings(n_heads=4, d_model=82, head_dim=5)).d_model == 82, "these heads share nothing"


def test_the_feed_forward_width_in_use_is_offered_too():
    assert 100 in offered("d_ff", 100)
    assert offered("d_ff", 100) == tuple(sorted(offered("d_ff", 100)))


def test_nothing_given_is_the_default_without_a_notice():
    assert read_query({}) == (Settings(), Selection(), ())
    assert write_query(Settings(), Selection()) == {}


@pytest.mark.parametrize(
    ("name", "given", "value", "notice"),
    [
        ("n_heads", "-5", 1, "n_heads=-5 is not between 1 and 16: 1 is used."),
        ("n_heads", "1e309", 16, "n_heads=1e309 is not between 1 and 16: 16 is used."),
        ("n_heads", "nan", 4, "n_heads=nan is not a number: 4 is used."),
        ("n_heads", "four", 4, "n_heads=four is not a number: 4 is used."),
        ("n_heads", "", 4, "n_heads is empty: 4 is used."),
        ("n_layers", "2.7", 3, "n_layers=2.7 is not a whole number: 3 is used."),
        (
            "seed",
            "4294967296",
            2**32 - 1,
            "seed=4294967296 is not between 0 and 4,294,967,295: 4294967295 is used.",
        ),
        ("seed", "9" * 5000, 2**32 - 1, None),
        ("d_model", "65", 64, "d_model=65 is not a width that n_heads=4 can share evenly: 64 is used."),
        ("d_model", "-5", 8, "d_model=-5 is not between 8 and 768: 8 is used."),
        ("d_ff", "5000", 4096, "d_ff=5000 is not between 1 and 4,096: 4096 is used."),
        ("prefix", "-1", 0, "prefix=-1 is not between 0 and 1,024: 0 is used."),
        ("window", "0", 1, "window=0 is not between 1 and 1,024: 1 is used."),
        ("pad", "65", 64, "pad=65 is not between 0 and 64: 64 is used."),
        ("dropout", "1", 0.9, "dropout=1 is not between 0 and 0.9: 0.9 is used."),
        ("dropout", "-inf", 0.0, "dropout=-inf is not between 0 and 0.9: 0 is used."),
        ("dropout", "nan", 0.0, "dropout=nan is not a number: 0 is used."),
        ("scale_scores", "OFF", False, "scale_scores=OFF is not on or off: off is used."),
        ("scale_scores", "0", False, "scale_scores=0 is not on or off: off is used."),
        ("scale_scores", "x", True, "scale_scores=x is not on or off: on is used."),
        ("norm", "Pre", "pre", "norm=Pre is not one of post, pre: pre is used."),
        ("tokens", "byte", "bytes", "tokens=byte is not one of words, characters, bytes: bytes is used."),
        ("weights", "zzz", "hand_built", None),
        (
            "view",
            "?",
            "step",
            "view=? is not one of way, step, heads, compare, lab, train, generate: step is used.",
        ),
        ("mask", "", (), "mask is empty: none is used."),
        ("mask", "padding,foo", ("padding",), None),
        ("mask", "Causal,paddin", ("causal", "padding"), None),
        ("mask", "causal,causal", ("causal",), None),
        ("mask", "none,causal", ("causal",), None),
        ("custom", "~a!", "", "custom=~a! is not base64url: none is used."),
        ("custom", "k\n", "", None),
        ("custom", "*.1:q;k", "k;*.1:q", "custom=*.1:q;k is not in its shortest form: k;*.1:q is used."),
        ("stage", "logits ", "logits", "stage=logits· is not the name of a stage: logits is used."),
        ("stage", "../x", "encoder.self_attention.weights", None),
        ("query", "-3", 0, "query=-3 is not between 0 and 9,999,999: 0 is used."),
        ("layer", "1e309", 255, "layer=1e309 is not between 0 and 255: 255 is used."),
        ("text", "a\ud800", "a\ufffd", None),
    ],
)
def test_a_bad_value_becomes_the_nearest_good_one_with_a_notice(name, given, value, notice):
    taken, notices = read_one(name, given)
    assert taken == value
    assert len(notices) == 1
    assert notices[0].startswith(name)
    assert notice in (None, *notices)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("n_heads", "8", 8),
        ("n_heads", "8.0", 8),
        ("n_heads", " 8", 8),
        ("d_ff", "100", 100),
        ("dropout", "0.25", 0.25),
        ("text", "", ""),
        ("target", "", ""),
        ("text", "\u202e<b>$x$", "\u202e<b>$x$"),
        ("mask", "none", ()),
        ("mask", "padding,causal", ("causal", "padding")),
        ("scale_scores", "off", False),
        ("custom", "", ""),
        ("custom", "k <= q;1.*:~AAKA", "k <= q;1.*:~AAKA"),
        ("architecture", "encoder-decoder", "encoder-decoder"),
    ],
)
def test_a_good_value_is_taken_without_a_notice(name, given, value):
    assert read_one(name, given) == (value, ())


def test_unknown_parameters_are_ignored():
    assert read_query({"embed": ["true"], "": ["x"], "n_head": ["3"]}) == (Settings(), Selection(), ())


def test_of_a_repeated_parameter_the_first_good_value_counts():
    assert read_one("seed", "x", "7", "8") == (
        7,
        ("seed is given more than once: the first good value, 7, is used.",),
    )
    assert read_one("seed", "-7", "x") == (
        0,
        ("seed is given more than once and never as a good value: 0 is used.",),
    )


def test_a_width_that_the_heads_cannot_share_is_replaced_and_told_once():
    chosen, _, notices = read_query({"n_heads": ["6"], "d_model": ["64"]})
    assert chosen.d_model == 72
    assert notices == ("d_model=64 is not a width that n_heads=6 can share evenly: 72 is used.",)
    assert len(read_query({"n_heads": ["6"], "d_model": ["nan"]})[2]) == 1


def test_a_width_that_was_not_asked_for_follows_the_heads_silently():
    chosen, _, notices = read_query({"n_heads": ["6"]})
    assert chosen.d_model == 72
    assert notices == ()


def test_a_text_too_long_for_a_link_is_cut():
    text, notices = read_one("text", "word " * 20_000)
    assert text == ("word " * 20_000)[:MAX_URL_TEXT]
    assert "its first 8,000 characters are used" in notices[0]
    assert len(notices[0]) < 150


def test_a_notice_shows_what_is_hidden_and_shortens_what_is_long():
    (notice,) = read_one("n_heads", "\u202e\n" + "x" * 100_000)[1]
    assert "⟨202E⟩↵xxx" in notice
    assert len(notice) < 150


def test_the_stage_follows_the_architecture_unless_it_is_given():
    assert read_query({"architecture": ["decoder"]})[1].stage == "decoder.self_attention.weights"
    assert read_query({"architecture": ["encoder-decoder"]})[1].stage == "decoder.self_attention.weights"
    assert read_query({"architecture": ["decoder"], "stage": ["logits"]})[1].stage == "logits"


def test_a_link_holds_what_differs_in_short():
    link = write_query(
        Settings(mask=(), scale_scores=False, dropout=0.5, n_heads=2),
        changed(Selection(), mask_b=("causal", "padding")),
    )
    assert link == {
        "mask": "none",
        "scale_scores": "off",
        "dropout": "0.5",
        "n_heads": "2",
        "compare.mask_b": "causal,padding",
    }


@pytest.mark.parametrize("text", ["x" * (MAX_URL_TEXT + 1), "é" * (MAX_URL_TEXT // 6 + 1)])
def test_what_is_too_long_for_a_link_is_left_out_and_named(text):
    chosen = Settings(text=text, seed=3)
    assert write_query(chosen, Selection()) == {"seed": "3"}
    assert left_out_of_link(chosen) == ("text",)
    assert left_out_of_link(Settings(text="x" * MAX_URL_TEXT)) == ()


@pytest.mark.parametrize(
    ("link", "mask"),
    [
        ({"task": ["match_brackets"]}, ()),
        ({"task": ["match_brackets"], "pad": ["2"]}, ("padding",)),
        ({"task": ["reverse"]}, ("causal",)),
        ({"task": ["reverse"], "pad": ["2"]}, ("causal", "padding")),
        ({"task": ["reverse"], "mask": ["none"]}, ()),
        ({"task": ["match_brackets"], "mask": ["causal"]}, ("causal",)),
    ],
)
def test_without_a_mask_in_the_link_a_trained_model_has_the_mask_of_its_training(link, mask):
    link = {"weights": ["trained"]} | link
    chosen, selection, notices = read_query(link)
    assert (chosen.mask, notices) == (mask, ())
    assert write_query(chosen, selection).get("mask") == link.get("mask", [None])[0]


def test_the_link_of_a_shipped_model_names_the_task_alone():
    chosen, selection, _ = read_query({"weights": ["trained"], "task": ["add"]})
    assert chosen.text == "68+57"
    assert write_query(chosen, selection) == {"weights": "trained", "task": "add"}


def test_a_lone_surrogate_does_not_break_the_link():
    urlencode(write_query(Settings(text="\ud800", target="\udfff" * 9000), Selection()))


def test_what_a_widget_brings_is_fitted():
    assert fitted(Settings(n_heads=5)).d_model == 60
    assert fitted(Settings(mask=("padding", "causal"))).mask == ("causal", "padding")


@modest
@given(wishes, good_selections)
def test_a_link_brings_back_what_wrote_it(wish, selection):
    chosen, selection = fitted(wish), replace(selection, asked_width=width_to_come_back_to(wish))
    address = urlencode(write_query(chosen, selection))
    assert read_query(parse_qs(address, keep_blank_values=True)) == (chosen, selection, ())


def test_the_width_asked_for_is_in_the_link_where_it_can_have_become_the_one_there_is():
    link = {"n_heads": ["5"], "d_model": ["60"], "asked_width": ["64"]}
    assert read_query(link)[1:] == (Selection(asked_width=64), ())
    assert read_query({"n_heads": ["5"], "d_model": ["64"]})[1].asked_width == 64
    _, selection, notices = read_query(link | {"asked_width": ["128"]})
    assert (selection.asked_width, len(notices)) == (0, 1)
    assert read_query({"asked_width": ["64"]})[1].asked_width == 0


@modest
@given(queries)
def test_any_link_gives_good_choices(query):
    chosen, selection, notices = read_query(query)
    assert chosen.d_model in widths(1 if chosen.head_dim else chosen.n_heads, chosen.d_model)
    assert all(isinstance(notice, str) and notice.endswith(".") for notice in notices)
    assert len(notices) <= len(query)
    link = {name: [value] for name, value in write_query(chosen, selection).items()}
    assert read_query(link) == (chosen, selection, ())


@modest
@given(st.text(max_size=50))
def test_any_value_of_any_parameter_is_read(value):
    read_query({name: [value, value[::-1]] for name in FIELDS})
    read_query(dict.fromkeys(FIELDS, value))


def test_the_places_of_a_mask_are_those_of_the_model_package():
    titles = {name: destination.title for name, destination in DESTINATIONS.items()}
    assert {name: title for name, title in FIELDS["passed_to"].choices.items() if name != "ask"} == titles


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("window:4+padding", "window:4+padding"),
        ("window:04", "window:4"),
        ("window", "window"),
        ("window:0", "unsaid"),
        ("causal:3", "unsaid"),
        ("prefix:0", "prefix:0"),
        ("everything", "unsaid"),
        ("expression:k <= q + 1", "expression:k <= q + 1"),
        ("causal+padding+documents", "unsaid"),
        ("block_causal:1025", "unsaid"),
    ],
)
def test_an_intention_of_a_link(given, taken):
    _, selection, notices = read_query({"intent": [given]})
    assert selection.lab.intent == taken
    assert bool(notices) == (given != taken)


def test_what_a_component_says_is_read_as_a_link_is():
    event = {"drawn": "lines", "shown": "0,2", "least_weight": "0.05", "seq": 4, "layer": 1, "curve": 7}
    assert chosen_in(event, ("drawn", "shown", "least_weight", "curve", "pinned")) == {
        "drawn": "lines",
        "shown": (0, 2),
        "least_weight": 0.05,
    }
    assert chosen_in({"shown": ""}, ("shown",)) == {"shown": ()}
    for bad in (None, [], "lines", {"shown": "999,x"}, {"drawn": None}):
        assert chosen_in(bad, ("shown",)) in ({}, {"shown": ()})


@pytest.mark.parametrize(
    ("given", "value", "notice"),
    [
        (
            "2,0,2",
            (0, 2),
            "shown=2,0,2 is not a list of different numbers from 0 to 255, the smallest first: 0,2 is used.",
        ),
        (
            "256",
            (),
            "shown=256 is not a list of different numbers from 0 to 255, the smallest first: all are used.",
        ),
        ("x", (), "shown=x is not a list of whole numbers: all are used."),
    ],
)
def test_a_list_of_heads_that_is_none_is_told(given, value, notice):
    taken, (said,) = read_one("shown", given)
    assert taken == value
    assert said.startswith(f"shown={given} is not")
    assert said.endswith(notice)


@pytest.mark.parametrize("kind", [Settings, Selection, *OF_VIEWS, TrainingChoice, WatchedChoice, Part])
def test_the_texts_are_those_of_the_settings_and_of_their_choices(kind):
    texts = TEXTS[kind.__name__]
    assert texts.keys() == own_fields(kind).keys()
    for name, field in own_fields(kind).items():
        assert texts[name].get("choices", {}).keys() <= field.choices.keys()
        assert field.label
        assert field.help.endswith((".", "?"))
