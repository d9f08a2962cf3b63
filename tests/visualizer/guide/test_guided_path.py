"""A path: what its file may hold, which stops a run has, and that every number in its words is one of the run."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.glossary import GLOSSARY
from visualizer.guide import walking
from visualizer.guide.known_paths import FIRST_PATH, OF_CHECKPOINT, chosen_path, keep_path
from visualizer.guide.path import read_path, write_path
from visualizer.guide.walking import facts_of_stop, is_at, light_at, nearest_stop, place_of, stage_in, stops_of
from visualizer.guide.words import Said, words_of_stop
from visualizer.runs.compute import compute_run
from visualizer.settings.examples import OPENING
from visualizer.settings.settings import Selection, Settings
from visualizer.shares import percent
from visualizer.state.state import Choices

ENTRIES = frozenset(GLOSSARY)
STOP = {"title": "A stop", "view": "step", "stage": "weights", "words": "Look."}
TITLES = [stop.title for stop in FIRST_PATH.stops]
OF_ENCODER = ("The encoder reads the source", "Source tokens look at each other")
OF_TWO_TEXTS = (*OF_ENCODER, "Looking into the source")


def file_of(**changes):
    """A file with one stop."""
    return json.dumps({"headlight_path": 1, "title": "Mine", "stops": [STOP | changes]}).encode()


def walked(settings, selection=OPENING.selection):
    """The title, the words and the selection of each stop of a run, as they are shown when one goes there."""
    run = compute_run(settings)
    found = {}
    for number in stops_of(run, FIRST_PATH, selection):
        stop = FIRST_PATH.stops[number - 1]
        place = place_of(run, stop, number, selection)
        assert is_at(run, stop, place)
        assert light_at(run, place) == stop.light
        said = words_of_stop(stop.words, facts_of_stop(run, stop, place), ENTRIES)
        found[stop.title] = "".join(part.text for part in said)
        assert re.search("so that|because|, so ", found[stop.title]), stop.title
        assert not {"{", "}", "["} & set(found[stop.title])
    return run, found


def test_the_words_of_the_opening_hold_the_numbers_of_its_run():
    run, said = walked(OPENING.settings)
    assert len(said) == 11
    layers = [run.trace[f"decoder.layers.{layer}.self_attention.weights"].value[0] for layer in (0, 1)]
    largest = layers[0][2, 9].max()
    assert f"“was” gives {100 * largest:.0f}% to “sat”." in said["Scores become weights"]
    assert "“was” sees all 10 tokens. “on” sees 5." in said["What a token may not see"]
    score = run.trace["decoder.layers.0.self_attention.scores"].value[0, 2, 9, 3]
    assert f"gives {score:.3g}. Divided by √16" in said["A query meets every key"]
    assert f"it is {score / 4:.3g}:" in said["A query meets every key"]
    assert "multiplied by √64 = 8." in said["Where a token is"]
    assert {run.tokens["source"].tokens[int(row.argmax())] for row in layers[1][:, 9]} == {"the", "sat"}, (
        OPENING.what_to_see
    )
    active = int((run.trace["decoder.layers.0.feed_forward.activation"].value[0, 9] > 0).sum())
    assert f"{active} are above zero for “was”" in said["Each token alone"]
    probabilities = run.trace["probabilities"].value[0, 9]
    likely = [run.vocabulary[int(token)] for token in probabilities.topk(3).indices]
    assert all(f"“{token}”" in OPENING.what_to_see for token in likely)
    assert f"“{likely[0]}” gets {100 * probabilities.max():.0f}%" in said["The answer"]
    token_id = run.tokens["source"].ids[9]
    assert f"row {token_id} of {len(run.vocabulary)} is its embedding" in said["Tokens become numbers"]


def test_repeated_tokens_are_named_with_their_places_and_no_others():
    _, said = walked(OPENING.settings, replace(OPENING.selection, query=5))  # the second “the”
    for title, words in said.items():
        assert words.count("“the”") == words.count("“the” at position ") > 0, title
        assert "“sat” at" not in words


def test_where_the_columns_are_no_keys_a_key_that_tells_something_is_named():
    run = compute_run(OPENING.settings)
    stop = FIRST_PATH.stops[TITLES.index("What attention brings")]
    of_column_8 = replace(place_of(run, stop, 1, OPENING.selection), key=8, cell=True)
    assert facts_of_stop(run, stop, of_column_8).values["key"] == "sat"


def test_the_cell_that_is_outlined_among_the_heads_is_the_one_that_is_spoken_of():
    run = compute_run(OPENING.settings)
    stop = FIRST_PATH.stops[TITLES.index("Many heads")]
    place = place_of(run, stop, 1, OPENING.selection)
    assert facts_of_stop(run, stop, place).values["key"] == run.tokens["source"].labels[place.key] == "sat"


def test_a_position_is_the_one_that_the_model_counts():
    _, said = walked(Settings(pad=2, pad_side="left"), Selection(query=5))
    assert "at position 3." in said["Where a token is"]


@pytest.mark.parametrize(
    ("changes", "sums_to_one", "hides"),
    [
        ({}, True, True),
        ({"fault": "before_softmax"}, True, False),
        ({"fault": "after_softmax", "weights": "random"}, False, False),
        ({"edits": "encoder.layers.0.self_attention.weights-zero"}, False, True),
        ({"mask": ("custom",), "custom": "k > q + 99"}, False, True),
    ],
    ids=["as it should be", "mask before the softmax", "mask after it", "edited weights", "no key"],
)
def test_what_is_said_of_softmax_and_hatched_cells_holds_of_this_run(changes, sums_to_one, hides):
    _, said = walked(Settings(**changes), Selection(query=5))
    assert ("They sum to 1" in said["Scores become weights"]) == sums_to_one
    assert ("get the score −∞" in said["What a token may not see"]) == hides


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        (Settings(mask=()), {"What a token may not see", *OF_TWO_TEXTS}),
        (Settings(architecture="encoder-decoder", norm="pre"), set()),
        (Settings(architecture="decoder", positions="none", n_heads=1, text="one"), {
            "Where a token is", "Many heads", "What a token may not see", *OF_TWO_TEXTS,
        }),
        (Settings(architecture="attention"), {
            "One token through the model", "Added, not replaced", "Each token alone", "The answer",
            *OF_TWO_TEXTS,
        }),
        (Settings(weights="trained", task="reverse", architecture="encoder-decoder", text="abc"), set()),
    ],
    ids=["encoder", "encoder-decoder", "bare decoder", "attention alone", "trained"],
)  # fmt: skip
def test_stops_that_a_run_does_not_have_are_left_out(settings, left_out):
    _, said = walked(settings)
    assert set(TITLES) - set(said) == left_out


def test_in_an_encoder_decoder_the_encoder_comes_first():
    settings = Settings(architecture="encoder-decoder", text="The cat sat", target="Die Katze")
    run, said = walked(settings, Selection(query=1, head=0))
    weights = run.trace["encoder.layers.0.self_attention.weights"].value[0, 0, 1]
    best = int(weights.argmax())
    told_there = said["Source tokens look at each other"]
    assert f"“cat” gives {percent(float(weights[best]))} of its attention to “" in told_there
    assert f"“{run.tokens['source'].labels[best]}”" in told_there
    assert tuple(said)[:2] == OF_ENCODER


def test_a_stop_of_anybody_looks_for_the_head_with_the_most_of_a_measure():
    words = "if foremost: {first_token}"
    stop = {"view": "heads", "stage": "self_attention.weights", "measure": "first_token", "words": words}
    path = read_path(file_of(**stop))
    run = compute_run(Settings(architecture="decoder", text="a b c"))
    assert stops_of(run, path, Selection()) == (1,)
    place = place_of(run, path.stops[0], 1, Selection())
    assert run.names_of(4)[place.head] == "first token"
    facts = facts_of_stop(run, path.stops[0], place)
    assert "".join(part.text for part in words_of_stop(path.stops[0].words, facts, ENTRIES)) == "over 99%"
    another = facts_of_stop(run, path.stops[0], replace(place, head=0))
    assert {"foremost", "another_head"} & another.holding == {"another_head"}
    assert not stops_of(
        compute_run(Settings(text="a b", architecture="decoder")),
        read_path(file_of(**stop | {"measure": "induction"})),
        Selection(),
    )
    with pytest.raises(ValueError, match="“measure” of stop 1 is none of"):
        read_path(file_of(measure="entropy"))


@pytest.mark.parametrize(
    ("architecture", "predicts_next"), [("decoder", True), ("encoder", False), ("attention", False)]
)
def test_a_model_is_said_to_predict_later_tokens_only_if_it_does(architecture, predicts_next):
    told = walked(Settings(architecture=architecture, text="a b c"))[1]["What a token may not see"]
    assert "hide all later tokens" in told
    assert ("has to predict" in told) == predicts_next


def test_only_what_is_predicted_after_the_last_token_is_said_to_be_added():
    settings = Settings(architecture="decoder", text="the cat sat", pad=2)
    for query, sentence in ((1, "The text goes on with “sat” there"), (2, "put at the end of the text")):
        assert sentence in walked(settings, Selection(query=query))[1]["The answer"]


def test_a_visit_to_the_encoder_leaves_the_token_of_the_target(monkeypatch):
    settings = Settings(architecture="encoder-decoder", text="my dog", target="mein Hund mag alte Knochen")
    kept, seen = {}, [Choices(settings, Selection(view="heads", stage="decoder.self_attention.weights", query=5))]
    monkeypatch.setattr(walking.drafts, "put_by", kept.__setitem__)
    monkeypatch.setattr(walking.drafts, "put_by_before", kept.get)
    monkeypatch.setattr(walking, "cached_run", compute_run)
    monkeypatch.setattr(walking.state, "chosen", lambda: seen[-1])
    monkeypatch.setattr(
        walking.state,
        "select",
        lambda **changes: seen.append(replace(seen[-1], selection=replace(seen[-1].selection, **changes))),
    )
    for number in (1, 2, 3, 2, 3):
        walking.go_to(number)
    assert [choices.selection.query for choices in seen] == [5, 1, 1, 5, 1, 5]


def test_every_run_can_be_walked_and_a_worked_example_has_the_stops_of_an_attention():
    for name in VARIANTS:
        run = run_of(name)
        assert len(stops_of(run, FIRST_PATH, Selection(query=3, batch=1))) >= 6, name
    example = compute_run(Settings(weights="two_causal_heads"))
    assert {TITLES[number - 1] for number in stops_of(example, FIRST_PATH, Selection())} >= {
        "Scores become weights", "Many heads",
    }  # fmt: skip


def test_a_stop_that_is_not_there_is_the_one_before_it():
    assert nearest_stop((1, 3, 7), 6) == 3
    assert nearest_stop((3, 7), 1) == 3


def test_a_path_is_written_as_it_was_read_and_found_again_by_its_name():
    assert read_path(write_path(FIRST_PATH).encode()) == FIRST_PATH
    mine = read_path(file_of(head=3, query=1, key=0, layer=1, light="row", **{"if": "masked and causal"}))
    assert read_path(write_path(mine).encode()) == mine
    assert chosen_path(Selection(path=keep_path(mine))) is mine
    assert chosen_path(Selection()) is FIRST_PATH
    assert chosen_path(Selection(source="pretrained")) is OF_CHECKPOINT
    assert chosen_path(Selection(path="nothing")) is None
    run = compute_run(OPENING.settings)
    place = place_of(run, mine.stops[0], 1, OPENING.selection)
    assert (place.layer, place.head, place.query, place.key) == (1, 3, 1, 0)
    assert stage_in(run, mine.stops[0]) == "decoder.layers.1.self_attention.weights"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff\xfe\x00", "UTF-8"),
        (b"{", "A path is a JSON file"),
        (b"[" * 100_000, "JSON"),
        (b" " * (2**20 + 1), "at most 1,048,576 bytes"),
        (b"[]", 'begins with {"headlight_path": 1'),
        (b'{"headlight_path": 1, "title": "x", "stops": []}', "a list of 1 to 40 stops"),
        (file_of(title=3), "Stop 1 needs a title"),
        (file_of(view="train"), "The view of stop 1 is none of way, step, heads"),
        (file_of(light="stream"), "What stop 1 lights is none of cell, row, column"),
        (file_of(stage=""), "Stop 1 needs the name of a stage"),
        (file_of(head=True), "The head of stop 1 is not a whole number from 0 to 15"),
        (file_of(words=[]), "Stop 1 has no words"),
        (file_of(words="{token.__class__}"), "has {token.__class__} in it, which is not a value of a run"),
        (file_of(words="{token"), "a brace that is not closed"),
        (file_of(words="if raining: stay"), "asks for “raining”, which cannot hold"),
        (file_of(html="<b>"), "Stop 1 has “html”, which is none of"),
        (file_of(**{"if": "raining"}), "The “if” of stop 1 asks for “raining”"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(data, sentence):
    with pytest.raises(ValueError, match=f"{re.escape(sentence)}[^\\n]*\\.$"):
        read_path(data)


def test_no_token_is_read_as_a_mark_or_as_a_name_in_braces():
    settings = Settings(architecture="decoder", text="[query] {id} **b** x")
    run = compute_run(settings)
    stop = read_path(file_of(words="{token} [query] [nothing]")).stops[0]
    labels = run.tokens["source"].labels
    for query, label in enumerate(labels):
        said = words_of_stop(stop.words, facts_of_stop(run, stop, replace(OPENING.selection, query=query)), ENTRIES)
        assert said[0] == Said(label, "", True)
        assert Said("query", "query") in said
        assert "".join(part.text for part in said).endswith(" [nothing]")
