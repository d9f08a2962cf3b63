from dataclasses import replace

import pytest

from tests.visualizer.sample_runs import problem_with
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import with_layer
from visualizer.runs.prepare import prepare
from visualizer.runs.tokens import encode
from visualizer.settings.examples import EXAMPLES, USUAL, note_on
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.fitting import fitted
from visualizer.settings.link import read_query, write_query
from visualizer.settings.settings import Selection, Settings

by_name = {example.name: example for example in EXAMPLES}
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def test_there_are_eight_of_different_names_and_titles():
    assert len(EXAMPLES) == len(by_name) == len({example.title for example in EXAMPLES}) == 8


@every_example
def test_it_can_be_run(example):
    assert problem_with(example.settings) is None
    assert fitted(example.settings) == example.settings


@every_example
def test_its_link_brings_it_back(example):
    link = {name: [value] for name, value in write_query(example.settings, example.selection).items()}
    assert read_query(link) == (example.settings, example.selection, ())


@every_example
def test_it_names_a_place_that_its_run_has_or_its_note_would_be_gone_on_a_page_loaded_anew(example):
    assert compute_run(example.settings).nearest(example.selection) == example.selection


@every_example
def test_it_says_what_to_see_in_one_sentence(example):
    assert example.what_to_see.endswith(".")
    assert example.what_to_see.count(". ") == 0


@every_example
def test_it_looks_at_tokens_and_heads_that_exist(example):
    if example.settings.weights in WORKED_EXAMPLES:
        return
    tokens = prepare(example.settings).encoded
    queries = (tokens.targets or tokens.sources)[0]
    assert example.selection.query < len(queries)
    assert example.selection.key < len(tokens.sources[0])
    assert example.selection.head < example.settings.n_heads


def test_the_repeated_word_is_looked_at():
    example = by_name["repeated_words"]
    tokens = encode(example.settings).sources[0].tokens
    assert tokens[example.selection.query] == tokens[example.selection.key] == "cat"


def test_padding_is_looked_at():
    example = by_name["padding"]
    assert encode(example.settings).sources[0].is_padding[example.selection.key]


def test_the_single_token_is_single():
    assert len(encode(by_name["single_token"].settings).sources[0]) == 1


def test_the_learned_letter_is_looked_at():
    example = by_name["reverse"]
    tokens = prepare(example.settings).encoded
    written = tokens.targets[0].tokens[example.selection.query + 1]
    assert tokens.sources[0].tokens[example.selection.key] == written == "t"


def weight_at(example):
    """The attention weight that an example selects."""
    run = compute_run(example.settings)
    chosen = example.selection
    path = with_layer(run.trace, chosen.stage, chosen.layer)
    return run, float(run.trace[path].value[0, chosen.head, chosen.query, chosen.key])


def test_what_the_usual_picture_says_is_so():
    run, weight = weight_at(USUAL)
    assert weight == pytest.approx(0.5, abs=0.01)
    assert run.names_of(4)[USUAL.selection.head] == "same token"
    tokens = run.tokens["source"].tokens
    assert tokens[USUAL.selection.query] == tokens[USUAL.selection.key] == "cat"


def test_what_the_translation_says_is_so():
    run, weight = weight_at(by_name["translation"])
    chosen, target = by_name["translation"].selection, run.tokens["target"].tokens
    assert weight > 0.99
    assert (target[chosen.query], target[chosen.query + 1]) == ("müde", "war")
    assert run.tokens["source"].tokens[chosen.key] == "was"


@pytest.mark.parametrize("change", [{"head": 0}, {"query": 3}, {"key": 0}, {"layer": 1}, {"view": "heads"}])
def test_the_usual_note_goes_when_something_else_is_looked_at(change):
    assert note_on([USUAL], Settings(), Selection()) == USUAL.what_to_see
    assert not note_on([USUAL], Settings(), replace(Selection(), **change))


def test_a_note_stays_while_it_is_true_of_what_is_seen():
    example = by_name["single_token"]
    elsewhere = replace(example.selection, head=1, layer=1, numbers=True)
    assert note_on(EXAMPLES, example.settings, elsewhere) == example.what_to_see
    padding = by_name["padding"]
    assert note_on(EXAMPLES, padding.settings, replace(padding.selection, query=1)) == padding.what_to_see
    assert not note_on(EXAMPLES, padding.settings, replace(padding.selection, head=0))
