"""The messages of the Heads view to its picture, and what it chooses by what is done there."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.test_app import assert_healthy, open_app
from tests.visualizer.told import tell

CROSS = "decoder.cross_attention.weights"


def picture(app: AppTest) -> dict[str, Any]:
    """Return the data that the component received, without its arrays."""
    found = [each.proto for each in app.get("bidi_component") if each.proto.component_name.endswith("_heads")]
    data = found[0].bytes
    (length,) = struct.unpack_from("<I", data)
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    return header


@pytest.mark.parametrize(
    ("link", "rows"),
    [
        ({"task": "reverse", "text": "abc", "stage": CROSS}, ["<sos> → c", "c → b", "b → a", "a → <eos>"]),
        ({"task": "reverse", "text": "ab", "stage": "encoder.self_attention.weights"}, ["a", "b", "<eos>"]),
        ({"task": "match_brackets", "text": "()"}, ["(", ")", "<eos>"]),
        ({"task": "small_english", "text": "the cat"}, ["<sos>", "the", "cat"]),
        ({"task": "reverse", "text": "ab", "pad": "1"}, ["<sos> → b", "b → a", "a → <eos>", "<pad>"]),
    ],
    ids=["decoder", "encoder beside it", "encoder", "decoder alone", "padding"],
)
def test_rows_of_a_decoder_that_answers_a_source_carry_what_is_read_and_then_predicted(link, rows):
    app = open_app(view="heads", weights="trained", mask="causal,padding", **link)
    assert_healthy(app)
    assert picture(app)["rows"]["labels"] == rows


@pytest.mark.parametrize(
    ("painted", "name"), [("", "next token (causal: mostly itself)"), ("q != k", "next token")]
)
def test_a_painting_that_blocks_nothing_changes_no_name_of_a_head(painted, name):
    app = open_app(view="heads", text="a b c", mask="causal,custom", custom=painted)
    assert name in picture(app)["head_names"][0]


def test_weights_that_learned_nothing_predict_nothing_worth_a_label():
    app = open_app(view="heads", architecture="decoder", text="the cat")
    assert picture(app)["rows"]["labels"] == ["the", "cat"]


@pytest.mark.parametrize(
    ("event", "value", "link"),
    [
        ("shown", {"layer": 1, "head": 3}, {"layer": "1", "head": "3"}),
        (
            "select",
            {"layer": 1, "head": 3, "query": 6, "key": 0},
            {"layer": "1", "head": "3", "query": "6", "key": "0"},
        ),
        ("shown", {"head": 2, "turned": {"temperature": 10}}, {"score": "score / 10"}),
        ("shown", {"head": 2, "turned": {"window": 5, "temperature": 2}}, {"window": "5", "score": "score / 2"}),
    ],
    ids=["a layer", "a cell", "the temperature", "a mask"],
)
def test_what_is_done_in_the_picture_is_in_the_link(event, value, link):
    given = {"view": "heads", "mask": "sliding_window"}
    app = open_app(**given)
    tell(app, "attention_heads_encoder_self_attention", event, **value)
    assert dict(app.query_params) == given | link
    dials = {dial["name"]: dial["value"] for dial in picture(app)["dials"]}
    assert value.get("turned", {}).items() <= dials.items()


def test_the_query_is_chosen_among_the_tokens():
    app = open_app(view="heads")
    tell(app, "token_strip", "select", sequence="source", index=4)
    assert dict(app.query_params) == {"view": "heads", "query": "4"}


def test_the_measure_of_the_task_that_was_learned_stands_first_in_the_table():
    link = {"view": "heads", "weights": "trained", "task": "repeat_block"}
    assert not open_app(**link).dataframe
    app = open_app(**link, chart="measures")
    assert_healthy(app)
    (table,) = app.dataframe
    titles = list(table.value.columns)
    assert titles.index("On the expected token") < titles.index("Entropy (bits)")
    assert table.value.notna().all(axis=None)
