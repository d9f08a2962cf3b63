"""A path: what its file may hold, which stops a run has, and that every number in its words is one of the run."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.glossary import GLOSSARY
from visualizer.guide import walking
from visualizer.guide.facts import percent
from visualizer.guide.known_paths import FIRST_PATH, keep_path, path_named
from visualizer.guide.path import read_path, write_path
from visualizer.guide.walking import facts_of_stop, is_at, light_at, nearest_stop, place_of, stage_in, stops_of
from visualizer.guide.words import Said, told
from visualizer.runs.compute import compute_run
from visualizer.session.state import Choices
from visualizer.settings.examples import OPENING
from visualizer.settings.settings import Selection, Settings

ENTRIES = frozenset(GLOSSARY)
STOP = {"title": "A stop", "view": "step", "stage": "weights", "words": "Look."}
TITLES = [stop.title for stop in FIRST_PATH.stops]
OF_TWO_TEXTS = ("The other text is read first", "Looking into the other text")


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
        said = told(stop.words, facts_of_stop(run, stop, place), ENTRIES)
        found[stop.title] = "".join(part.text for part in said)
        assert found[stop.title]
        assert not {"{", "}", "["} & set(found[stop.title])
    return run, found


def test_the_words_of_the_opening_hold_the_numbers_of_its_run():
    run, said = walked(OPENING.settings)
    assert len(said) == 11
    layers = [run.trace[f"decoder.layers.{layer}.self_attention.weights"].value[0] for layer in (0, 1)]
    largest = layers[0][2, 9].max()
    assert (
        f"“was” gives {100 * largest:.0f} % of its attention to “sat” (place 3)" in said["Attention is shared out"]
    )
    assert "“was” sees all 10 tokens" in said["What may not be seen"]
    assert {run.tokens["source"].tokens[int(row.argmax())] for row in layers[1][:, 9]} == {"the", "sat"}, (
        OPENING.what_to_see
    )
    active = int((run.trace["decoder.layers.0.feed_forward.activation"].value[0, 9] > 0).sum())
    assert f"these are {active}." in said["Each token by itself"]
    probabilities = run.trace["probabilities"].value[0, 9]
    likely = [run.vocabulary[int(token)] for token in probabilities.topk(3).indices]
    assert all(f"“{token}”" in OPENING.what_to_see for token in likely)
    assert f"{100 * probabilities.max():.0f} % for “{likely[0]}”" in said["The answer"]
    token_id = run.tokens["source"].ids[9]
    assert f"row {token_id} of a table with {len(run.vocabulary)} rows" in said["Tokens become numbers"]


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        (Settings(mask=()), {"What may not be seen", *OF_TWO_TEXTS}),
        (Settings(architecture="encoder-decoder", norm="pre"), set()),
        (Settings(architecture="decoder", positions="none", n_heads=1, text="one"), {
            "Where it stands", "Many heads, many questions", "What may not be seen", *OF_TWO_TEXTS,
        }),
        (Settings(architecture="attention"), {
            "One token on its way", "Added, not replaced", "Each token by itself", "The answer",
            *OF_TWO_TEXTS,
        }),
        (Settings(weights="trained", task="reverse", architecture="encoder-decoder", text="abc"), set()),
    ],
    ids=["encoder", "encoder-decoder", "bare decoder", "attention alone", "trained"],
)  # fmt: skip
def test_stops_that_a_run_does_not_have_are_left_out(settings, left_out):
    _, said = walked(settings)
    assert set(TITLES) - set(said) == left_out


def test_in_an_encoder_decoder_the_encoder_is_visited_before_it_is_looked_into():
    settings = Settings(architecture="encoder-decoder", text="The cat sat", target="Die Katze")
    run, said = walked(settings, Selection(query=1, head=0))
    weights = run.trace["encoder.layers.0.self_attention.weights"].value[0, 0, 1]
    best = int(weights.argmax())
    told_there = said["The other text is read first"]
    assert f"“cat” of the source gives {percent(float(weights[best]))} of its attention to “" in told_there
    assert f"(place {best})" in told_there
    titles = list(said)
    assert titles.index("Looking into the other text") == titles.index("The other text is read first") + 1


@pytest.mark.parametrize("settings", [
    Settings(text="the cat saw the cat", architecture="decoder"),
    Settings(text="the cat saw the cat", target="die Katze sah die Katze", architecture="encoder-decoder"),
])  # fmt: skip
def test_a_word_that_stands_in_a_text_twice_is_told_with_its_place(settings):
    run, said = walked(settings, Selection(query=3, head=0))
    twice = {label for one in run.tokens.values() for label in one.labels if one.labels.count(label) > 1}
    assert len(twice) >= 2
    for title in said.keys() - {"One token on its way", "Where it stands", "The answer"}:  # which say it otherwise
        for word in twice:
            first = said[title].partition(f"“{word}”")[2]
            assert not first or re.match(r" \(place \d| is token \d", first), said[title]
    assert re.search(r"the value of “[^”]+” \(place \d\) counts for", said["What attention brings"])


def test_the_sub_layers_of_a_layer_are_counted_and_the_target_is_not_called_the_text():
    _, one = walked(Settings(architecture="decoder", text="the cat sat"))
    _, two = walked(Settings(architecture="encoder-decoder", text="the cat sat", target="die Katze"))
    assert "Attention and this are one layer." in one["Each token by itself"]
    assert "Self-attention, cross-attention and this are one layer of the decoder." in two["Each token by itself"]
    assert "The text has 3 tokens here." in one["Tokens become numbers"]
    assert "The target has 3 tokens." in two["Tokens become numbers"]
    _, smooth = walked(Settings(architecture="decoder", text="the cat sat", activation="gelu"))
    assert "above zero" not in smooth["Each token by itself"]


def test_only_what_is_predicted_after_the_last_token_is_said_to_be_added():
    settings = Settings(architecture="decoder", text="the cat sat", pad=2)
    for query, sentence in ((1, "The text goes on with “sat” there."), (2, "this token is added to the text")):
        assert sentence in walked(settings, Selection(query=query))[1]["The answer"]


def test_no_choice_is_named_that_a_trained_model_does_not_have():
    for settings, is_named in ((OPENING.settings, False), (Settings(architecture="decoder"), True)):
        run = compute_run(settings)
        trials = [told(stop.trial, facts_of_stop(run, stop, Selection()), ENTRIES) for stop in FIRST_PATH.stops]
        assert any("“None”" in part.text for trial in trials for part in trial) is is_named


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
    visit = 1 + TITLES.index("The other text is read first")
    for number in (visit, visit + 1, visit, visit - 1):
        walking.go_to(number)
    assert [choices.selection.query for choices in seen] == [5, 1, 5, 1, 5]


def test_every_run_can_be_walked_and_a_worked_example_has_the_stops_of_an_attention():
    for name in VARIANTS:
        run = run_of(name)
        assert len(stops_of(run, FIRST_PATH, Selection(query=3, batch=1))) >= 6, name
    example = compute_run(Settings(weights="two_causal_heads"))
    assert {TITLES[number - 1] for number in stops_of(example, FIRST_PATH, Selection())} >= {
        "Attention is shared out", "Many heads, many questions",
    }  # fmt: skip


def test_a_stop_that_is_not_there_is_the_one_before_it():
    assert nearest_stop((1, 3, 7), 6) == 3
    assert nearest_stop((3, 7), 1) == 3


def test_a_path_is_written_as_it_was_read_and_found_again_by_its_name():
    assert read_path(write_path(FIRST_PATH).encode()) == FIRST_PATH
    mine = read_path(file_of(head=3, query=1, key=0, layer=1, light="row", **{"if": "masked and causal"}))
    assert read_path(write_path(mine).encode()) == mine
    assert path_named(keep_path(mine)) is mine
    assert path_named("") is FIRST_PATH
    assert path_named("nothing") is None
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
        (b" " * 100_001, "at most 100,000 bytes"),
        (b"[]", 'begins with {"headlight_path": 1'),
        (b'{"headlight_path": 1, "title": "x", "stops": []}', "a list of 1 to 40 stops"),
        (file_of(title=3), "Stop 1 needs a title"),
        (file_of(view="train"), "The view of stop 1 is none of way, step, heads"),
        (file_of(light="stream"), "What stop 1 lights is none of cell, row, column"),
        (file_of(stage=""), "Stop 1 needs the name of a stage"),
        (file_of(head=True), "The head of stop 1 is no whole number from 0 to 15"),
        (file_of(words=[]), "Stop 1 has no words"),
        (file_of(words="{token.__class__}"), "has {token.__class__} in it, which is no value of a run"),
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
        said = told(stop.words, facts_of_stop(run, stop, replace(OPENING.selection, query=query)), ENTRIES)
        assert said[0] == Said(label, "", True)
        assert Said("query", "query") in said
        assert "".join(part.text for part in said).endswith(" [nothing]")
